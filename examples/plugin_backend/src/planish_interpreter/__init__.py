"""Loop trees executed by an interpreter: a back end that needs no code generator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from planish.core import Machine
from planish.levels.loops.ir.annotated import AnnotatedTree, Vectors
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.regalloc import annotate
from planish.levels.loops.testing.annotated_interpreter import emulate

Arrays = Mapping[str, NDArray[Any]]
VECTORS = Vectors(lanes=4, registers=16, masks=True)
"""The machine that is played: what lowering decides with."""


class Interpreter:
    """The back end."""

    machine = Machine(vector_bytes=16, vector_registers=16)
    packages = ("planish-interpreter",)

    def works(self) -> bool:
        """Whether this machine runs it: any does."""
        return True

    def compile(self, program: Program, tree: LoopTree, cores: int) -> Interpreted:
        """Decide which loops are vectors, what is unrolled, and what is in which register."""
        del cores
        return Interpreted(program, annotate(tree, VECTORS))


class Interpreted:
    """A program with the decisions that are carried out."""

    def __init__(self, program: Program, annotated: AnnotatedTree) -> None:
        self.program = program
        self.annotated = annotated

    def allocate(self) -> None:
        """Make no memory: the interpreter has its own in each run."""

    def bind(self, inputs: Arrays, outputs: Arrays) -> Run:
        """Attach it to arrays."""
        return Run(self.annotated, inputs, outputs)


class Run:
    """A program with its arrays."""

    def __init__(self, annotated: AnnotatedTree, inputs: Arrays, outputs: Arrays) -> None:
        self._annotated = annotated
        self._inputs = inputs
        self._outputs = outputs

    def prepare(self) -> None:
        """Take in nothing: what is packed ahead of time is packed in each run."""

    def poison(self, byte: int = 0xFF) -> None:
        """Fill nothing: the interpreter refuses to read what was not written."""
        del byte

    def repeat(self, times: int) -> None:
        """Execute the tree so many times."""
        for _ in range(times):
            found = emulate(self._annotated, self._inputs)
            for name, array in self._outputs.items():
                array[...] = found[name].reshape(array.shape)
