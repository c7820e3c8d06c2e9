"""Evaluator: verification of kernels on several sets of inputs, and their timing in a worker process.

The memory around the arrays is checked, which shows kernels that leave their arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from planish.core import Candidate, Failed, Measured, Outcome, PlanishError, StageClock, Target
from planish.levels.loops.backends import (
    BoundKernel,
    Executable,
    backend_of,
    executable_of,
    library_of,
    schedule_of,
)
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.element_types import INTEGER, numpy_type
from planish.levels.loops.lang.program import Program, TensorType
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.bounds import limits
from planish.levels.loops.reference.cases import Case, choose_cases, shows_all, special_cases
from planish.levels.loops.reference.checking import Expected, check
from planish.levels.loops.reference.covering import varied_cases
from planish.levels.loops.reference.inputs import ALIGNMENT
from planish.levels.loops.reference.numpy_baseline import numpy_callable
from planish.levels.loops.reference.views import Array, Arrays, same_bits
from planish.levels.loops.roofline import DeviceRoofline, Roofline
from planish.measure import SEARCH_TIMING, Clocks, Timing, time_call
from planish.measure.timing import CLOCKS

MARGIN_BYTES = 64 * ALIGNMENT
"""Bytes on either side."""


class _Surrounded:
    """An array of arbitrary content that starts at a cache line, in memory of its own with margins."""

    def __init__(self, kind: TensorType) -> None:
        dtype = numpy_type(kind.dtype)
        size = kind.size * dtype.itemsize
        memory = np.empty(size + 2 * MARGIN_BYTES + ALIGNMENT, np.uint8)
        start = MARGIN_BYTES + -memory.ctypes.data % ALIGNMENT
        self.array: Array = memory[start : start + size].view(dtype).reshape(kind.shape)
        self._around = (
            memory[start - MARGIN_BYTES : start],
            memory[start + size : start + size + MARGIN_BYTES],
        )

    def surround(self, byte: int) -> None:
        """Fill what is around the array."""
        for part in self._around:
            part.fill(byte)

    def surrounded_by(self, byte: int) -> bool:
        """Return whether that is what is still around it."""
        # As bytes: to compare so few by NumPy takes several times as long.
        return all(part.tobytes() == _filled(byte) for part in self._around)


@cache
def _filled(byte: int) -> bytes:
    return bytes([byte]) * MARGIN_BYTES


SEARCH_SEED = 0
"""Of the sets that every candidate is verified on."""
KEPT_SEED = 1
"""Of the further set for what is about to be kept."""
SEARCH_VARIED, KEPT_VARIED = 16, 96
"""Random sets of small programs, in the search and at the end."""
LARGE = 1 << 24
"""Elements of inputs and outputs that take a second and more to be made and checked."""
MANY = 1 << 18
"""Elements that take a millisecond: memory is then filled once, and not anew for each set."""
NAN_BYTES, LARGE_BYTES, SMALL_BYTES, SMALL_INTEGER_BYTES = 0xFF, 0x7B, 0xFB, 0x84
"""Bytes that memory is filled with, beside 0: NaN; numbers above all others, and below, of any type of
floats; of integers below, while 0x7B makes large ones of them too."""


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

    def poison(self, byte: int = 0xFF) -> None:
        """Make it anew, as its memory is out of reach."""
        del byte
        self.prepare()

    def repeat(self, times: int) -> None:
        """Call it a number of times."""
        for _ in range(times):
            self._call()


class _Round(NamedTuple):
    """A run of a kernel in verification.

    Args:
        byte: what all memory is filled with; None leaves what the run before left there.
        number: of the input set, from 1 on.
        case: the input set.
    """

    byte: int | None
    number: int
    case: Case


class Verifier:
    """Verifies kernels of one program, each on the same sets of inputs.

    Args:
        program: what they compute.
        cases: the sets; on the first one kernels are timed.
        special: sets with special values and random ones, which are run once; libraries are not verified on
            them.
        final: whether to compare the inputs after each run, not after the last one alone.

    Attributes:
        inputs: the arrays that kernels are to read.
        outputs: the arrays that they are to write.
    """

    def __init__(
        self, program: Program, cases: Sequence[Case], special: Sequence[Case] = (), *, final: bool = True
    ) -> None:
        self._surrounded = {
            name: _Surrounded(program.type[name]) for name in (*program.inputs, *program.outputs)
        }
        self.inputs = {name: self._surrounded[name].array for name in program.inputs}
        self.outputs = {name: self._surrounded[name].array for name in program.outputs}
        self._program, self._sets, self._final = program, len(cases) + len(special), final
        rounds = _rounds(program, cases, special)
        self._usual, self._last = [each for each in rounds[:-1] if each.number <= len(cases)], rounds[-1]
        self._special = [each for each in rounds[:-1] if each.number > len(cases)]
        self._around = 0
        self._load(cases[0])

    def wrong(self, runs: BoundKernel) -> str | None:
        """Describe what is wrong with a kernel's outputs; None if they are correct on every set.

        Outputs are poisoned before each run, so that an element which is not written shows; so are the
        kernel's own memory and what is around the arrays. In some runs a kernel finds what the run before, on
        other inputs, left in its own memory, so that it shows where that is read. Inputs must be unchanged.
        """
        if wrong := self.wrong_at_first(runs):
            return wrong
        self.begin_last(runs)
        runs.repeat(1)
        return self.wrong_at_last()

    def wrong_at_first(self, runs: BoundKernel) -> str | None:
        """Describe what is wrong with a kernel's outputs on any set but the one that it is timed on."""
        special = () if isinstance(runs, Called) else self._special
        with np.errstate(all="ignore"):
            for number, each in enumerate((*self._usual, *special), 1):
                self._begin(runs, each, number)
                runs.repeat(1)
                if wrong := self._wrong(each):
                    return wrong
        return None

    def begin_last(self, runs: BoundKernel) -> None:
        """Load the inputs that a kernel is timed on, which it has not seen, and poison its outputs."""
        self._begin(runs, self._last, len(self._special) + len(self._usual) + 1)

    def wrong_at_last(self) -> str | None:
        """Describe what is wrong with the outputs of the calls since `begin_last`."""
        return self._wrong(self._last)

    def _begin(self, runs: BoundKernel, each: _Round, number: int) -> None:
        self._load(each.case)
        if each.byte is None:
            runs.prepare()
        else:
            self._around = each.byte
            for array in self._surrounded.values():
                array.surround(each.byte)
            runs.poison(each.byte)
        for name, array in self.outputs.items():
            _poison(array, each.case.outputs.expected[name], number)

    def _wrong(self, each: _Round) -> str | None:
        wrong = check(self._program, self.outputs, each.case.outputs)
        if not wrong:
            around = (n for n, array in self._surrounded.items() if not array.surrounded_by(self._around))
            wrong = next((f"memory beside {name} is written" for name in around), None)
        if not wrong and (self._final or each is self._last):
            changed = (n for n, array in self.inputs.items() if not same_bits(array, each.case.inputs[n]))
            wrong = next((f"input {name} is changed" for name in changed), None)
        return wrong and f"{wrong}, on input set {each.number} of {self._sets}"

    def _load(self, case: Case) -> None:
        for name, array in self.inputs.items():
            np.copyto(array, case.inputs[name])


def _rounds(program: Program, cases: Sequence[Case], special: Sequence[Case]) -> list[_Round]:
    """List what is run, on each set at least once, the first set last.

    Where NaN may be hidden, memory that was never written shows by what is above all numbers, or below, or 0,
    and for each of them on several inputs: sets with special values and random ones, and where these are few,
    the usual ones again.
    """
    usual, further = ([*enumerate(sets, start)] for sets, start in ((cases, 1), (special, len(cases) + 1)))
    usual = [*usual[1:], usual[0]]
    first = LARGE_BYTES if program.arithmetic == INTEGER else NAN_BYTES
    if shows_all(program) or _elements(program) > MANY:
        found = [_Round(None if i else first, *each) for i, each in enumerate(usual)]
        return [*(_Round(first, *each) for each in further), *found]
    bytes_ = None, LARGE_BYTES, SMALL_INTEGER_BYTES if program.arithmetic == INTEGER else SMALL_BYTES, 0
    again = islice(cycle(usual), max(1, len(bytes_) * len(cases) - len(further)))
    found = [_Round(byte, *each) for byte, each in zip(cycle(bytes_), (*further, *again), strict=False)]
    return [*(_Round(first, *each) for each in usual), *found[:-1], _Round(0, *usual[-1])]


def _elements(program: Program) -> int:
    return sum(program.type[name].size for name in (*program.inputs, *program.outputs))


def _poison(array: Array, expected: Expected, number: int) -> None:
    """Fill with NaN at first; later with huge numbers of both signs, which no `max` or `min` hides.

    And with zeros now and then: a test for zero distinguishes NaN from huge numbers as little as from others.
    """
    if number == 1 and array.dtype.kind != "i" and not expected.has_nan:
        array.fill(np.nan)
        return
    if number % 4 == 3:
        array.fill(0)
        return
    pair = _huge_pair(array.dtype, number % 2)
    flat = array.reshape(-1)
    if flat.dtype.itemsize <= 4:
        # Two at once: every other element alone takes ten times as long.
        word = f"u{2 * flat.itemsize}"
        flat[: flat.size // 2 * 2].view(word).fill(pair.view(word)[0])
        flat[flat.size // 2 * 2 :] = pair[0]
    else:
        flat[0::2], flat[1::2] = pair


@cache
def _huge_pair(dtype: np.dtype[Any], odd: int) -> Array:
    """Return a huge number of each sign; kept, as to make them takes as long as a small kernel's run."""
    huge = np.iinfo(dtype).max // 4 if dtype.kind == "i" else float(limits(dtype.name).max) / 4
    return np.array([huge, -huge] if odd else [-huge, huge], dtype)


def search_verifier(program: Program) -> Verifier:
    """Build the verifier of candidates; raises ProgramError where no inputs separate right from wrong."""
    cases = choose_cases(program, SEARCH_SEED)
    special = special_cases(program, SEARCH_SEED, cases)
    return Verifier(
        program, cases, [*special, *varied_cases(program, SEARCH_SEED, SEARCH_VARIED)], final=False
    )


def final_verifier(program: Program) -> Verifier:
    """Build the verifier of candidates that are about to be kept, with sets that the search did not see.

    The search's sets come before them, but not where tensors are large: to make those takes seconds, which
    the comparison at the end may not have.
    """
    if _elements(program) > LARGE:
        return Verifier(program, choose_cases(program, KEPT_SEED))
    cases = [*choose_cases(program, SEARCH_SEED), *choose_cases(program, KEPT_SEED, least=1)]
    special = special_cases(program, SEARCH_SEED, cases)
    special += special_cases(program, KEPT_SEED, [*cases, *special], apart=True)
    return Verifier(program, cases, [*special, *varied_cases(program, KEPT_SEED, KEPT_VARIED)])


def verify_again(kernel: Executable) -> str | None:
    """Verify a kernel that is about to be kept, on inputs that the search did not see.

    Args:
        kernel: compiled for this machine.

    Returns:
        None if its outputs are correct; else what is wrong.

    Raises:
        ProgramError: no inputs separate right outputs from wrong ones.
    """
    program = kernel.program
    cases = choose_cases(program, KEPT_SEED, least=1)
    verifier = Verifier(program, cases, special_cases(program, KEPT_SEED, cases))
    return verifier.wrong(kernel.bind(verifier.inputs, verifier.outputs))


def refuse_wrong(kernel: Executable) -> None:
    """Verify a kernel that is exported or called from now on; raises PlanishError where it is wrong."""
    if wrong := verify_again(kernel):
        raise PlanishError(
            f"this kernel computes a wrong answer: {wrong}",
            "Tune anew: the version of planish that measured it did not see the mistake.",
        )


LAST_TIMING = Timing(budget_s=0.02, fewest=3, slow_factor=math.inf)
"""For the comparison at the end: nothing is cut short."""


class LoopsEvaluator:
    """Builds, verifies and times candidates.

    In the search a schedule that was measured already is not measured again, however it is reached.

    Args:
        program: whose schedules are evaluated.
        target: where; its cores and back end count.
        final: for candidates that are about to be kept: they are verified on further inputs, and measured
            each time.
        library: makes the baseline's call of a program and its arrays.
        clocks: by which calls are timed.
        build: makes the kernel of a candidate.
    """

    def __init__(
        self,
        program: Program,
        target: Target,
        *,
        final: bool = False,
        library: Callable[[Program, Arrays], Callable[[], object]] = numpy_callable,
        clocks: Clocks = CLOCKS,
        build: Callable[[Program, Candidate, Target, LoopTree], Executable] = executable_of,
    ) -> None:
        # The baseline must not use more cores than the target has. Nor may the reference: on a busy machine,
        # threads of BLAS that wait for each other make it ten times slower.
        threadpool_limits(target.cores, user_api="blas")
        self._program, self._target = program, target
        self._library, self._clocks, self._build = library, clocks, build
        self._timing = LAST_TIMING if final else SEARCH_TIMING
        self._remember = not final
        # In a search processor time decides nothing, and trials are many.
        self._weighed = target.cores == 1 and final
        self._verifier = (final_verifier if final else search_verifier)(program)
        self._roofline: Roofline | DeviceRoofline | None = Roofline(program, target.cores)
        self._best = math.inf
        self._known: dict[tuple[str, str | None], Outcome] = {}

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Build, verify, then time a candidate; another way to the same schedule has the same outcome."""
        if library_of(candidate):
            with clock("build"):
                arrays = {**self._verifier.inputs, **self._verifier.outputs}
                called = Called(lambda: self._library(self._program, arrays))
            return self._measured(called, clock)
        with clock("transform"):
            schedule = schedule_of(self._program, candidate)
        same = schedule.text, backend_of(candidate)
        if self._remember and same in self._known:
            return self._known[same]
        with clock("transform"):
            tree = lower(schedule)
        with clock("build"):
            kernel = self._build(self._program, candidate, self._target, tree)
            bound = kernel.bind(self._verifier.inputs, self._verifier.outputs)
        outcome = self._known[same] = self._measured(bound, clock)
        return outcome

    def _measured(self, runs: BoundKernel, clock: StageClock) -> Outcome:
        """Verify and time what computes the program; the answers of the timed calls are verified, too."""
        with clock("verify"):
            wrong = self._verifier.wrong_at_first(runs)
            if wrong is None:
                self._verifier.begin_last(runs)
        if wrong:
            return Failed("verify", "wrong answer", wrong)
        with clock("run"):
            timed = time_call(runs.repeat, self._timing, self._best, clocks=self._clocks)
        with clock("verify"):
            wrong = self._verifier.wrong_at_last()
        if wrong:
            return Failed("verify", "wrong answer", f"{wrong}, after the timed calls")
        if self._roofline and (too_fast := self._roofline.refuses(timed.median, clock)):
            return Failed("run", "faster than the machine", too_fast)
        self._best = min(self._best, timed.median)
        billions = self._program.flops / 1e9
        return Measured(
            {"time_s": timed.median, "gflops": billions / timed.median},
            timed.named({"time_s": float, "gflops": lambda s: billions / s}, one_core=self._weighed),
        )
