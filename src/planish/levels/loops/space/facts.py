"""Facts of a program and a target that the template space needs before any schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from planish.core import Machine, Target
from planish.levels.loops.ir.graph import Graph, Nest, graph_of
from planish.levels.loops.ir.schedule import Order
from planish.levels.loops.lang.program import DTYPES, Access, Program
from planish.levels.loops.lang.subscripts import tables

OTHER_REGISTERS = 4
"""Vector registers that hold operands; results may have the others."""
WIDE, NARROW = Machine(64, 32), Machine(32, 16)  # AVX-512 and AVX2
"""What a target has of which nothing is known but its features."""


def machine_of(target: Target) -> Machine:
    """Return the vector registers of a target's processor; of a stored one, as far as its features say."""
    wide = any("avx512" in feature for feature in target.features)
    return target.machine or (WIDE if wide else NARROW)


@dataclass(frozen=True)
class Moves:
    """Strides of a tensor of a nest by its axes.

    Args:
        tensor: its name.
        strides: axis to elements of memory for each of its steps; without axes that do not move it.
        alone: the axes that subscript a dimension alone, so that a packed tile has them in sequence.
        elements: how many elements the nest touches.
        single: whether the nest reads or writes it in one way, so that it can be packed.
        padded: whether it is read beyond its edges, from a copy with these if it is not packed.
    """

    tensor: str
    strides: Mapping[str, int]
    alone: frozenset[str]
    elements: int
    single: bool
    padded: bool


@dataclass(frozen=True)
class Facts:
    """A nest, its tensors and the target's processor.

    Args:
        program: what is scheduled.
        machine: the processor.
        cores: how many may be used.
        other: number of the nest, where it is not the main one.
        around: loops around what is looked at; its axes are as long as one iteration of these.
    """

    program: Program
    machine: Machine
    cores: int
    other: int | None = None
    around: Order = ()

    @staticmethod
    def of(program: Program, target: Target) -> Facts:
        """Collect the facts."""
        return Facts(program, machine_of(target), target.cores)

    @property
    def vector_bytes(self) -> int:
        """Of a vector register."""
        return self.machine.vector_bytes

    @cached_property
    def graph(self) -> Graph:
        """The program's."""
        return graph_of(self.program)

    @property
    def number(self) -> int:
        """The nest's, in the graph."""
        return self.graph.main if self.other is None else self.other

    @property
    def nest_name(self) -> str:
        """The nest's, as steps name it: empty for the main one."""
        return "" if self.other is None else self.nest.name

    @cached_property
    def nest(self) -> Nest:
        """Return what is looked at."""
        return self.graph.nests[self.number]

    @cached_property
    def size(self) -> Mapping[str, int]:
        """Axis to extent, of the nest's axes that the loops around leave."""
        steps = dict(self.around)  # the innermost loop of an axis comes last
        extents = {axis: steps.get(axis, self.program.size[axis]) for axis in self.nest.axes}
        return {axis: extent for axis, extent in extents.items() if steps.get(axis) != 1}

    @cached_property
    def reduced(self) -> frozenset[str]:
        """The axes that the target lacks: unlike its own, they leave a result where it is."""
        return self.nest.reduced.difference(self.nest.statement.output_axes)

    @cached_property
    def parallel_axes(self) -> tuple[str, ...]:
        """The axes that are not reduced."""
        return tuple(axis for axis in self.size if axis not in self.reduced)

    @cached_property
    def reduced_axes(self) -> tuple[str, ...]:
        """The others, in program order."""
        return tuple(axis for axis in self.size if axis in self.reduced)

    def apart(self, axes: Iterable[str]) -> bool:
        """Return whether each axis is the longest of those that it may meet: these do not meet one another.

        A tile over a short one, as over a window, meets the next tile at once, and what was just stored is
        not ready to be loaded in another vector.
        """
        size = self.program.size
        return all(
            axis == max(sorted(self.beside(axis)), key=lambda n: size[n], default=axis) for axis in axes
        )

    def beside(self, axis: str) -> frozenset[str]:
        """Return the axes whose iterations may write what those of an axis write, with the axis itself."""
        target = self.nest.statement.target
        spread = [frozenset(a for a, _ in target.index[d].terms) for d in self.nest.scattered]
        return next((axes for axes in spread if axis in axes), frozenset())

    def fits(self, axis: str, step: int) -> bool:
        """Return whether an axis can be split so: the steps of its loops divide one another."""
        return 1 < step < self.size[axis] and not (dict(self.around).get(axis, step) % step)

    @cached_property
    def lanes(self) -> int:
        """Elements of a vector register."""
        return self.machine.lanes(DTYPES[self.program.arithmetic])

    def permutes(self, tensor: str) -> bool:
        """Return whether lanes of two registers make one, of a tensor that is computed with as it lies."""
        return self.vector_bytes == 64 and self.program.type[tensor].dtype == self.program.arithmetic

    @cached_property
    def registers(self) -> int:
        """Vector registers that can hold results."""
        return self.machine.vector_registers - OTHER_REGISTERS

    @cached_property
    def output(self) -> Moves:
        """The tensor that the nest writes."""
        return self._moves(self.nest.statement.target)

    @cached_property
    def operands(self) -> tuple[Moves, ...]:
        """Return what the nest reads, each distinct access once."""
        return tuple(self._moves(operand.access) for operand in self.nest.operands)

    def _moves(self, access: Access) -> Moves:
        type_ = self.program.type[access.tensor]
        strides: dict[str, int] = {}
        for index, stride in zip(access.index, type_.strides(), strict=True):
            for axis, coefficient in index.terms:
                if axis in self.size:
                    strides[axis] = strides.get(axis, 0) + coefficient * stride
        pairs = [[axis for axis, _ in index.terms if axis in self.size] for index in access.index]
        used = [axis for axes in pairs for axis in axes]
        # An axis of two dimensions walks a diagonal, which no packed tile has in sequence.
        alone = frozenset(axes[0] for axes in pairs if len(axes) == 1 and used.count(axes[0]) == 1)
        ways = sum(operand.access.tensor == access.tensor for operand in self.nest.operands)
        # Windows that overlap, as y + ky, touch an element more than once.
        elements = min(type_.size, prod(self.size[axis] for axis in strides))
        is_index = access.tensor in self.program.integer_indices
        gathers = is_index or access in tables(self.nest.statement.value)
        single = ways <= 1 and not gathers
        return Moves(access.tensor, strides, alone, elements, single, access.pad is not None)
