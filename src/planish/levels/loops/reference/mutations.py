"""Mutations of programs: mistakes made on purpose, to choose inputs that reveal such mistakes.

Each changes the program, its inputs or what it computes on the way, so that the reference computes what a
mistaken kernel would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from math import isinf

import numpy as np

from planish.core.hashing import rng
from planish.levels.loops.lang.draft import index_ranges
from planish.levels.loops.lang.element_types import INTEGER
from planish.levels.loops.lang.program import (
    POSITIONS,
    Access,
    Apply,
    Const,
    Expr,
    Index,
    Program,
    Statement,
    TensorType,
    accesses,
    parts,
    rewritten,
)
from planish.levels.loops.reference.views import Array, Arrays, overhang

MOST = 64
EXCHANGED = {"max": "min", "min": "max", "<": "<=", "<=": "<", "==": "!=", "!=": "=="}
"""Functions to those that a mutation puts in their place."""
_STARTS = {"max": (0.0, 1.0, -1.0), "min": (0.0, 1.0, -1.0), "add": (1.0, -1.0), "mul": (2.0, -1.0)}
_INSTEAD = {"add": "max", "mul": "add", "max": "min", "min": "max"}
_CORRUPTIONS = (1.125, 0.0), (0.875, 0.0), (0.0, 2.0**30), (0.0, -(2.0**30)), (0.0, 0.0)
"""A little larger or smaller, above or below all others, and 0."""


@dataclass(frozen=True)
class Mutation:
    """A mutation; it changes the program, its inputs or its results on the way, and leaves the others."""

    def program(self, program: Program) -> Program:
        """Return the program with the mistake."""
        return program

    def inputs(self, program: Program, inputs: Arrays) -> Arrays:
        """Return the inputs with the mistake."""
        del program
        return inputs

    def changes(self, program: Program) -> Mapping[str, Callable[[Array], Array]]:
        """Return what becomes of tensors that are computed: name to change; see `reference`."""
        del program
        return {}


@dataclass(frozen=True)
class Misread(Mutation):
    """Read of a neighbor's element: a pointer that does not move, a step left out.

    Args:
        dimensions: (tensor, dimension) of what is misread: inputs, or one that is computed and no output. An
            input of one element is read as half as large again.
        index: the one that is not read.
    """

    dimensions: tuple[tuple[str, int], ...]
    index: int

    def inputs(self, program: Program, inputs: Arrays) -> Arrays:
        del program
        changed = dict(inputs)
        for tensor, dimension in self.dimensions:
            if tensor in inputs:
                changed[tensor] = self._misread(changed[tensor], dimension)
        return changed

    def changes(self, program: Program) -> Mapping[str, Callable[[Array], Array]]:
        computed = [(t, d) for t, d in self.dimensions if t not in program.inputs]
        return {t: partial(self._misread, dimension=d) for t, d in computed}

    def _misread(self, array: Array, dimension: int) -> Array:
        if array.size == 1:
            return array + array.dtype.type(1) if array.dtype.kind == "i" else array * array.dtype.type(1.5)
        order = np.arange(array.shape[dimension])
        order[self.index] = self.index - 1 if self.index else 1
        return np.take(array, order, dimension)


@dataclass(frozen=True)
class WrongOperator(Mutation):
    """A number is taken for a larger one, a function of one argument is left out, `max` and `min`
    exchanged, or `<` and `<=`, or `==` and `!=`.

    Args:
        position: which of them all, counted from the left, from 0.
    """

    position: int

    def program(self, program: Program) -> Program:
        numbers = count()

        def wrong(part: Expr) -> Expr | None:
            if not _is_mutable(part) or next(numbers) != self.position:
                return None
            if isinstance(part, Const):
                # 1.5 times 0 would not be a mistake.
                return Const(part.value * 1.5 if part.value else 0.5)
            assert isinstance(part, Apply)
            return part.args[0] if len(part.args) == 1 else Apply(EXCHANGED[part.function], part.args)

        changed = [replace(s, value=rewritten(s.value, wrong)) for s in program.statements]
        return replace(program, statements=tuple(changed))


@dataclass(frozen=True)
class WrongInit(Mutation):
    """A reduction starts from another number, such as `+=` from 1.

    Args:
        statement: which.
        number: from which.
    """

    statement: int
    number: float

    def program(self, program: Program) -> Program:
        """Reduce into a tensor of another name, and put what comes of one number more in the old one."""
        i, old = self.statement, program.statements[self.statement]
        target = old.target
        inner = replace(target, tensor=f"{target.tensor}'")  # a name that no program can have
        value = Apply(old.reduce or "", (inner, Const(self.number)))
        both = replace(old, target=inner), Statement(target, None, value)
        types = *program.types, (inner.tensor, program.type[target.tensor])
        statements = *program.statements[:i], *both, *program.statements[i + 1 :]
        return replace(program, statements=statements, types=types)


@dataclass(frozen=True)
class WrongReduction(Mutation):
    """A reduction is another one, such as `max=` instead of `+=`.

    Args:
        statement: which.
    """

    statement: int

    def program(self, program: Program) -> Program:
        old = program.statements[self.statement]
        return _with(program, self.statement, replace(old, reduce=_INSTEAD[old.reduce or ""]))


@dataclass(frozen=True)
class WrongPad(Mutation):
    """Around a tensor stands another number.

    Args:
        statement: which reads it.
        access: how.
        number: which.
        side: a dimension and whether the mistake is after its end, or before its start; None for all sides.
            Only an input has one: with its padding it becomes another input, with the number on that side.
    """

    statement: int
    access: Access
    number: float
    side: tuple[int, bool] | None = None

    def program(self, program: Program) -> Program:
        if self.side is None:
            return self._reading(program, replace(self.access, pad=self.number))
        around = self._around(program)
        index = [
            Index(i.terms, i.offset + low) for i, (low, _) in zip(self.access.index, around, strict=True)
        ]
        whole = Access(f"{self.access.tensor}'", tuple(index))
        shape = program.type[self.access.tensor].shape
        padded = tuple(n + low + high for n, (low, high) in zip(shape, around, strict=True))
        types = *program.types, (whole.tensor, TensorType(padded, program.arithmetic))
        return replace(self._reading(program, whole), types=types)

    def inputs(self, program: Program, inputs: Arrays) -> Arrays:
        if self.side is None:
            return inputs
        around, (dimension, at_end) = self._around(program), self.side
        pad = self.access.pad or 0.0
        whole = np.pad(inputs[self.access.tensor].astype(np.float64), around, constant_values=pad)
        before, behind = around[dimension]
        whole[(*[slice(None)] * dimension, slice(-behind, None) if at_end else slice(before))] = self.number
        # Of integers the nearest ones stand for infinities.
        bounded = np.clip(whole, -(2**31), 2**31 - 1) if program.arithmetic == INTEGER else whole
        return {**inputs, f"{self.access.tensor}'": bounded.astype(program.arithmetic)}

    def _around(self, program: Program) -> list[tuple[int, int]]:
        return overhang(self.access, program.type[self.access.tensor].shape, program.size)

    def _reading(self, program: Program, other: Access) -> Program:
        old = program.statements[self.statement]
        value = rewritten(old.value, lambda part: other if part == self.access else None)
        return _with(program, self.statement, replace(old, value=value))


@dataclass(frozen=True)
class Unclipped(Mutation):
    """An index that lies outside looks up what is one further inside than it should.

    Args:
        tensor: an input of indices.
        at_end: whether that is so after the end, or before the start.
    """

    tensor: str
    at_end: bool

    def inputs(self, program: Program, inputs: Arrays) -> Arrays:
        index, extent = inputs[self.tensor], index_ranges(program)[self.tensor]
        outside, other = (index >= extent, extent - 2) if self.at_end else (index < 0, 1)
        return {**inputs, self.tensor: np.where(outside, index.dtype.type(other), index)}


@dataclass(frozen=True)
class Corrupted(Mutation):
    """Of a tensor on the way to the outputs all elements are wrong, as memory is that nothing has written.

    Args:
        tensor: which.
        factor: what they are multiplied by.
        term: what is added then.
    """

    tensor: str
    factor: float
    term: float

    def changes(self, program: Program) -> Mapping[str, Callable[[Array], Array]]:
        del program
        return {self.tensor: self._corrupted}

    def _corrupted(self, array: Array) -> Array:
        if array.dtype.kind == "i" and self.factor:
            return array + array.dtype.type(1 if self.factor > 1 else -1)
        return (array * self.factor + self.term).astype(array.dtype)


@dataclass(frozen=True)
class LastOfEqual(Mutation):
    """Of equals the last is taken, where the first is meant: the greatest position instead of the least.

    Args:
        statement: which reduces positions.
    """

    statement: int

    def program(self, program: Program) -> Program:
        def other_end(part: Expr) -> Expr | None:
            # With the other sign an infinity still loses.
            return Const(-part.value) if isinstance(part, Const) and isinf(part.value) else None

        old = program.statements[self.statement]
        value = rewritten(old.value, other_end)
        return _with(program, self.statement, replace(old, reduce=EXCHANGED[old.reduce or ""], value=value))


def _with(program: Program, position: int, statement: Statement) -> Program:
    """Replace a statement."""
    statements = list(program.statements)
    statements[position] = statement
    return replace(program, statements=tuple(statements))


def _is_mutable(expr: Expr) -> bool:
    return isinstance(expr, Const) or (
        isinstance(expr, Apply) and (len(expr.args) == 1 or expr.function in EXCHANGED)
    )


def list_mutations(program: Program, seed: int) -> list[Mutation]:
    """List mutations of operators, starts, paddings and indices along dimensions and axes.

    Args:
        program: whose.
        seed: of the random ones.

    Returns:
        `MOST` at most, of all kinds.
    """
    # A stream of its own, beside that of `all_styles`, whose numbers are small.
    generator = rng(seed, len(program.inputs), 1 << 20)
    operators = sum(_is_mutable(part) for s in program.statements for part in parts(s.value))
    found: list[Mutation] = [WrongOperator(i) for i in range(operators)]
    for i, s in enumerate(program.statements):
        found += [WrongInit(i, number) for number in _STARTS.get(s.reduce or "", ())]
        found += [WrongReduction(i)] if s.reduce else []
        for access, side in _padded(s, program):
            pad = access.pad or 0.0
            # One below and one above, as either may be hidden.
            others = (0.0, 1.0) if isinf(pad) else (pad - 1, pad + 1)
            found += [WrongPad(i, access, number, side) for number in others]
    # Indices that may lie outside, and then be taken for another one inside.
    indices = [t for t, extent in index_ranges(program).items() if t in program.inputs and extent > 1]
    found += [Unclipped(tensor, at_end) for tensor in indices for at_end in (False, True)]
    found += [Corrupted(t, *how) for t in program.written if t not in program.outputs for how in _CORRUPTIONS]
    found += [LastOfEqual(i) for i, s in enumerate(program.statements) if _reduces_positions(s)]
    alone = [((t, d),) for t in program.inputs for d, n in enumerate(program.type[t].shape) if n > 1]
    for dimensions in dict.fromkeys((*alone, *_along_axes(program))):
        n = min(program.type[tensor].shape[dimension] for tensor, dimension in dimensions)
        some = {n - 1, int(generator.integers(n))}
        found += [Misread(dimensions, index) for index in sorted(some)]
    for name in program.inputs:
        if program.type[name].size == 1:
            found.append(Misread(((name, -1),), 0))
    # What is computed on the way, where a mistake may not show: what is subtracted before `exp` and divided
    # out again matters only where numbers overflow without it.
    between = [(t, program.type[t].shape) for t in program.written if t not in program.outputs]
    found += [Misread(((t, d),), n - 1) for t, shape in between for d, n in enumerate(shape) if n > 1]
    return [found[i] for i in sorted(generator.permutation(len(found))[:MOST])]


def _padded(statement: Statement, program: Program) -> Iterator[tuple[Access, tuple[int, bool] | None]]:
    """List the reads of a statement that leave their tensors, and on which sides."""
    for access in dict.fromkeys(accesses(statement.value)):
        around = overhang(access, program.type[access.tensor].shape, program.size)
        sides = [(d, at_end) for d, pair in enumerate(around) for at_end in (False, True) if pair[at_end]]
        if access.pad is not None and sides:
            yield access, None
        if access.pad is not None and len(sides) > 1 and access.tensor in program.inputs:
            yield from ((access, side) for side in sides)


def _along_axes(program: Program) -> Iterator[tuple[tuple[str, int], ...]]:
    """List for each axis all dimensions that it walks alone."""
    reads = [a for s in program.statements for a in accesses(s.value) if a.tensor in program.inputs]
    for axis in program.size:
        found = {
            (a.tensor, d) for a in reads for d, index in enumerate(a.index) if index.terms == ((axis, 1),)
        }
        if dimensions := [(t, d) for t, d in sorted(found) if program.type[t].shape[d] > 1]:
            yield tuple(dimensions)


def _reduces_positions(statement: Statement) -> bool:
    found = any(a.tensor == POSITIONS for a in accesses(statement.value))
    return found and statement.reduce in EXCHANGED
