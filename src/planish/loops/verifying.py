"""Verifying kernels: outputs are compared with the reference's on several sets of inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Protocol

import numpy as np

from planish.core import PlanishError
from planish.loops.backends import Executable
from planish.loops.lang.program import Program
from planish.loops.lang.whole import WHOLE
from planish.loops.reference.bounds import limits
from planish.loops.reference.cases import Case, choose_cases, shows_all
from planish.loops.reference.checking import check
from planish.loops.reference.surrounded import Surrounded
from planish.loops.reference.views import Array, chunks

SEARCH_SEED = 0
"""Of the sets that every candidate is verified on."""
KEPT_SEED = 1
"""Of the further set for what is about to be kept."""
LARGE = 1 << 24
"""Elements of inputs and outputs that take a second and more to be made and checked."""
MANY = 1 << 18
"""Elements that take a millisecond: memory is then filled once, and not anew for each set."""
NAN_BYTES, LARGE_BYTES, SMALL_BYTES, SMALL_WHOLE_BYTES = 0xFF, 0x7B, 0xFB, 0x84
"""What memory is filled with, beside 0: NaN; numbers above all others, and below, of any type of floats; of
whole numbers below, while 0x7B makes large ones of them too."""


class Runs(Protocol):
    """What computes a program on the arrays of a `Verifier`."""

    def prepare(self) -> None:
        """Take in what the constants hold now."""
        ...

    def poison(self, byte: int) -> None:
        """Fill with a byte whatever memory is its own, and prepare."""
        ...

    def repeat(self, times: int) -> object:
        """Compute the outputs from what the inputs hold now, so many times."""
        ...


class Called:
    """A library's implementation, which takes in constants when it is made.

    Args:
        make: makes what computes the outputs.
    """

    def __init__(self, make: Callable[[], Callable[[], object]]) -> None:
        self._make = make
        self._call = make()

    def prepare(self) -> None:
        """Make it anew."""
        self._call = self._make()

    def poison(self, byte: int) -> None:
        """Make it anew; what memory it has nobody knows."""
        del byte
        self.prepare()

    def repeat(self, times: int) -> None:
        """Call it so many times."""
        for _ in range(times):
            self._call()


class Verifier:
    """Verifies kernels of one program, each on the same sets of inputs.

    Args:
        program: what they compute.
        cases: the sets; the arrays hold the first one's inputs when a kernel has passed, to time it on.

    Attributes:
        inputs: the arrays that kernels are to read.
        outputs: the arrays that they are to write.
    """

    def __init__(self, program: Program, cases: Sequence[Case]) -> None:
        self._places = {name: Surrounded(program.type[name]) for name in (*program.inputs, *program.outputs)}
        self.inputs = {name: self._places[name].array for name in program.inputs}
        self.outputs = {name: self._places[name].array for name in program.outputs}
        self._program, self._cases = program, (*cases[1:], cases[0])
        self._runs = _runs(program, self._cases)
        self._around = 0
        self._load(cases[0])

    def wrong(self, runs: Runs) -> str | None:
        """Say what is wrong with a kernel's answers; None if they are correct on every set.

        Outputs are poisoned before each run, so that an element which is not written shows; so are the
        kernel's own memory and what is around the arrays. In some runs a kernel finds what the run before, on
        other inputs, left in its own memory, so that it shows where that is read.
        """
        for number, (byte, (place, case)) in enumerate(self._runs, 1):
            self._load(case)
            if byte is None:
                runs.prepare()
            else:
                self._surround(byte)
                runs.poison(byte)
            for name, array in self.outputs.items():
                _poison(array, case.answer.expected[name].value, number)
            runs.repeat(1)
            if wrong := check(self._program, self.outputs, case.answer) or self._beside():
                return f"{wrong}, on input set {place} of {len(self._cases)}" if number > 1 else wrong
        return None

    def _surround(self, byte: int) -> None:
        self._around = byte
        for place in self._places.values():
            place.surround(byte)

    def _beside(self) -> str | None:
        for name, place in self._places.items():
            if not place.surrounded_by(self._around):
                return f"memory beside {name} is written"
        return None

    def _load(self, case: Case) -> None:
        for name, array in self.inputs.items():
            np.copyto(array, case.inputs[name])


def _runs(program: Program, cases: Sequence[Case]) -> list[tuple[int | None, tuple[int, Case]]]:
    """List what is run: the byte in all memory, None for what the run before left there, and the set.

    Where NaN may be hidden, memory that was never written shows by what is above all numbers, or below, or 0,
    and for each of them on other inputs.
    """
    numbered = list(enumerate(cases, 1))
    first = LARGE_BYTES if program.arithmetic == WHOLE else NAN_BYTES
    if shows_all(program) or _elements(program) > MANY:
        return [(None if i else first, each) for i, each in enumerate(numbered)]
    small = SMALL_WHOLE_BYTES if program.arithmetic == WHOLE else SMALL_BYTES
    return list(product(dict.fromkeys((first, None, LARGE_BYTES, small, 0)), numbered))


def _elements(program: Program) -> int:
    return sum(program.type[name].size for name in (*program.inputs, *program.outputs))


def _poison(array: Array, expected: Array, number: int) -> None:
    """Fill with NaN at first; later with huge numbers of both signs, which no `max` or `min` hides."""
    whole = array.dtype.kind == "i"
    if number == 1 and not whole and not any(np.isnan(chunk).any() for (chunk,) in chunks(expected)):
        array.fill(np.nan)
        return
    huge = np.iinfo(array.dtype).max // 4 if whole else float(limits(array.dtype.name).max) / 4
    array.fill(huge if number % 2 else -huge)
    array.reshape(-1)[1::2] *= -1


def search_verifier(program: Program) -> Verifier:
    """Make what candidates are verified by; raises ProgramError where no inputs tell right from wrong."""
    return Verifier(program, choose_cases(program, SEARCH_SEED))


def final_verifier(program: Program) -> Verifier:
    """Make what verifies on sets that the search did not see, for candidates that are about to be kept.

    The search's sets come before them, but not where tensors are large: to make those takes seconds, which
    the comparison at the end may not have.
    """
    if _elements(program) > LARGE:
        return Verifier(program, choose_cases(program, KEPT_SEED))
    return Verifier(
        program, [*choose_cases(program, SEARCH_SEED), *choose_cases(program, KEPT_SEED, least=1)]
    )


def verify_again(kernel: Executable, seed: int = KEPT_SEED) -> str | None:
    """Verify a kernel that is about to be kept, on inputs that the search did not see.

    Args:
        kernel: compiled for this machine.
        seed: of the inputs; not `SEARCH_SEED`.

    Returns:
        None if its answers are correct; else what is wrong.

    Raises:
        ProgramError: no inputs tell right from wrong.
    """
    verifier = Verifier(kernel.program, choose_cases(kernel.program, seed, least=1))
    return verifier.wrong(kernel.bind(verifier.inputs, verifier.outputs))


def refuse_wrong(kernel: Executable) -> None:
    """Verify a kernel that is exported or called from now on; raises PlanishError where it is wrong."""
    if wrong := verify_again(kernel):
        raise PlanishError(
            f"this kernel gives a wrong answer: {wrong}",
            "Tune anew: the version of planish that measured it did not see the mistake.",
        )
