"""Kernels that are written as Python functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from planish.network.ir import Array, Network, Node, Shape

FINE = 8
"""Iterations of a loop that are enough to be divided among cores; of fewer, cores may get unequal parts."""
_COUNTS = dict[Callable[..., None], tuple[str, ...]]()


def divisible(*counts: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a function whose loops over one of some counts have iterations that do not depend on each other.

    Args:
        counts: names of its parameters, that of the outermost loops first.
    """

    def mark(function: Callable[..., None]) -> Callable[..., None]:
        _COUNTS[function] = counts
        return function

    return mark


@dataclass(frozen=True)
class PythonProgram:
    """A plain function with the types of its arrays and its constants.

    Args:
        function: what is computed.
        arrays: (parameter, element type), in the order of the kernel's operands; the last ones are scratch.
        constants: (parameter, value), of the others.
        flops: arithmetic operations, about.
    """

    function: Callable[..., None]
    arrays: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, Any], ...] = ()
    flops: int = field(default=0, compare=False)

    @cached_property
    def text(self) -> str:
        """Return a text that identifies the program; equal programs have equal texts."""
        arrays = [f"{name}:{dtype}" for name, dtype in self.arrays]
        constants = [f"{name}={_shown(value)}" for name, value in self.constants]
        return f"{self.function.__name__}({', '.join([*arrays, *constants])})"

    @property
    def division(self) -> tuple[str, int]:
        """Return the count whose loops cores divide, and its value; no name and 1 where there is none."""
        known = dict(self.constants)
        counts = [(name, known[name]) for name in _COUNTS.get(self.function, ())]
        fine = [each for each in counts if each[1] >= FINE]
        return fine[0] if fine else max(counts, key=lambda each: each[1], default=("", 1))


def _shown(value: Any) -> str:
    return value.__name__ if callable(value) else repr(value)


@dataclass(frozen=True)
class PythonKernel:
    """A kernel of a Python kernel.

    Args:
        nodes: what it computes.
        program: how.
        operands: the program's arrays that are read to the tensors.
        outputs: those that are written, likewise.
        constants: constants that are the kernel's own, by tensor.
        scratch: those that are scratch, to their bytes.
    """

    nodes: tuple[Node, ...]
    program: PythonProgram
    operands: Mapping[str, str]
    outputs: Mapping[str, str]
    constants: Mapping[str, Array] = field(default_factory=dict[str, Array])
    scratch: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def output(self) -> str:
        """Return the first tensor that it computes."""
        return next(iter(self.outputs.values()))

    @property
    def flops(self) -> int:
        """Return the arithmetic operations of a call."""
        return self.program.flops

    @property
    def operators(self) -> str:
        """Name its operators."""
        return "+".join(node.operator for node in self.nodes)


def python_kernel(
    network: Network, node: Node, function: Callable[..., None], inputs: str, outputs: str = "out",
    scratch: Mapping[str, tuple[str, int]] = {}, flops: int = 0, **constants: Any,
) -> PythonKernel:  # fmt: skip
    """Write a kernel whose arrays are a node's inputs, its outputs, and then scratch.

    Args:
        network: with the types of the node's tensors.
        node: what is computed.
        function: what computes it.
        inputs: parameters that are the node's inputs; the last ones may lack.
        outputs: parameters that are its outputs.
        scratch: further parameters, each with its element type and its bytes.
        flops: arithmetic operations, about.
        constants: all other parameters.
    """
    read = dict(zip(inputs.split(), node.inputs, strict=False))
    written = dict(zip(outputs.split(), (node.output, *node.more), strict=False))
    arrays = [(name, network.types[tensor].dtype) for name, tensor in (*read.items(), *written.items())]
    arrays += [(name, dtype) for name, (dtype, _) in scratch.items()]
    program = PythonProgram(function, tuple(arrays), tuple(constants.items()), flops)
    sizes = {name: size for name, (_, size) in scratch.items()}
    return PythonKernel((node,), program, read, written, scratch=sizes)


def around(shape: Shape, d: int) -> dict[str, Any]:
    """Return the elements before a dimension, along it and after it, as constants of a kernel."""
    return {"before": prod(shape[:d]), "n": shape[d], "after": prod(shape[d + 1 :])}
