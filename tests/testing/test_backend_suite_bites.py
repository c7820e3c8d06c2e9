"""The conformance suite of back ends refuses those that break a rule, and says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from planish.core import Machine
from planish.levels.loops.backends import Backend, Bound, Executable, backend_named
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.program import Program
from planish.testing.backends import BackendConformance

Arrays = Mapping[str, Any]


class Run:
    """A right kernel with its arrays."""

    def __init__(self, kernel: Executable, inputs: Arrays, outputs: Arrays) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.bound: Bound = kernel.bind(inputs, outputs)

    def prepare(self) -> None:
        self.bound.prepare()

    def poison(self, byte: int = 0xFF) -> None:
        self.bound.poison(byte)
        self.prepare()

    def repeat(self, times: int) -> None:
        self.bound.repeat(times)


class CopiesInputs(Run):
    """Copies inputs when it is prepared, which constants alone may be."""

    copied: tuple[str, ...] = ("A", "B")

    def __init__(self, kernel: Executable, inputs: Arrays, outputs: Arrays) -> None:
        copies = {n: a.copy() if n in self.copied else a for n, a in inputs.items()}
        super().__init__(kernel, copies, outputs)
        self.originals = inputs

    def prepare(self) -> None:
        for name in set(self.copied) & self.inputs.keys() if hasattr(self, "originals") else ():
            np.copyto(self.inputs[name], self.originals[name])
        self.bound.prepare()


class CopiesOne(CopiesInputs):
    """Copies one of two."""

    copied = ("B",)


class LastElement(Run):
    """Is wrong in one element."""

    def repeat(self, times: int) -> None:
        self.bound.repeat(times)
        next(iter(self.outputs.values())).reshape(-1)[-1] += 1


class WritesInputs(Run):
    """Destroys an input."""

    def repeat(self, times: int) -> None:
        self.bound.repeat(times)
        next(iter(self.inputs.values()))[...] = 0


class Made:
    """A right kernel that is run in some way."""

    def __init__(self, kernel: Executable, run: type[Run]) -> None:
        self.program, self.allocate = kernel.program, kernel.allocate
        self._kernel, self._run = kernel, run

    def bind(self, inputs: Arrays, outputs: Arrays) -> Run:
        return self._run(self._kernel, inputs, outputs)


class Faulty:
    """Our own portable back end, whose kernels are run in some way."""

    packages = ()

    def __init__(self, run: type[Run]) -> None:
        self._run, self._own = run, backend_named("portable")

    @property
    def machine(self) -> Machine:
        return self._own.machine

    def works(self) -> bool:
        return True

    def compile(self, program: Program, tree: LoopTree, cores: int) -> Executable:
        return Made(self._own.compile(program, tree, cores), self._run)


class Suite(BackendConformance):
    """Not collected, for it is not named Test."""

    def __init__(self, run: type[Run]) -> None:
        self._run = run

    def backend(self) -> Backend:
        return Faulty(self._run)


def reads(suite: Suite) -> None:
    suite.test_it_reads_its_inputs_each_time("product")


def computes(suite: Suite) -> None:
    suite.test_candidates_compute_what_their_program_says("product")


BROKEN: list[tuple[type[Run], Callable[[Suite], None], str]] = [
    (CopiesInputs, reads, r"C\[.* elements are wrong, after its inputs changed"),
    (CopiesOne, reads, r"C\[.* elements are wrong, after its inputs changed"),
    (LastElement, computes, r"C\[4, 6\] is .*; 1 of 35 elements are wrong"),
    (WritesInputs, computes, "input A is changed"),
]


@pytest.mark.parametrize(("run", "test", "message"), BROKEN)
def test_a_broken_back_end_is_refused(run: type[Run], test: Callable[[Suite], None], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        test(Suite(run))
    test(Suite(Run))
