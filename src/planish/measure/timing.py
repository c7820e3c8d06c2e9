"""Timing protocol: warm-up, then repeated blocks, each long enough for the clock.

A sample is the mean time of a call in one block of calls. The statistic is the median of the samples: a
block that the system disturbed moves it little. All samples are kept.

Each block has its processor time beside its wall time. On a busy machine, a call that takes longer than the
system lets a process run (some 3 ms) takes now once, now three times as long by the clock; its processor time
varies by some percent. So the time spent on a candidate is counted without what other processes did on its
core, and where a block had to wait, more blocks are taken, until most did not wait.
"""

from __future__ import annotations

import math
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from planish.core import PlanishError

if TYPE_CHECKING:
    from planish.sandbox.shared_cache import SharedCache

CLEARLY = 0.5
"""Processor time counts where it is at most this number of times as uncertain as the time by the clock."""


@dataclass(frozen=True)
class Samples:
    """The times of one candidate.

    Args:
        seconds: mean seconds of a call, for each block, in the order measured.
        calls: calls in a block.
        cut: whether measuring was ended early, because the candidate is slow.
        processor: the same by processor time; empty where that is not known.
        paired: whether both are shares of what a baseline took in the same moments, in its seconds. Then both
            stand for the same, and processor time is taken where it is clearly more precise.
    """

    seconds: tuple[float, ...]
    calls: int
    cut: bool = False
    processor: tuple[float, ...] = ()
    paired: bool = False

    @property
    def median(self) -> float:
        """The statistic: median seconds of a call."""
        return statistics.median(self.decisive)

    @property
    def decisive(self) -> tuple[float, ...]:
        """The samples that count: by the clock, or by processor time where that is clearly more precise."""
        clearer = self.paired and error(self.processor) <= CLEARLY * error(self.seconds)
        return self.processor if clearer else self.seconds

    def named(
        self, quantities: Mapping[str, Callable[[float], float]], *, one_core: bool
    ) -> Mapping[str, tuple[float, ...]]:
        """Return the samples as an outcome keeps them.

        Args:
            quantities: objective name to a function that turns seconds into a value.
            one_core: whether one core does all the work; the processor time of several does not show how long
                they took, and is left out.
        """
        found = {name: tuple(map(make, self.seconds)) for name, make in quantities.items()}
        # Several cores' processor time adds up: twice the threads would look twice as slow.
        if not one_core or not self.processor:
            return found
        return found | {
            by_processor_time(name): tuple(map(make, self.processor)) for name, make in quantities.items()
        }


def by_processor_time(objective: str) -> str:
    """Name the samples of an objective that were made of processor time in place of time by the clock."""
    return f"{objective}, by processor time"


def error(samples: Sequence[float]) -> float:
    """Estimate the standard error of the median, as a share of it, from the median deviation.

    It is infinite where there are no samples, and 0 where all are equal.
    """
    if not samples:
        return math.inf
    middle = statistics.median(samples)
    # Not the standard deviation, which a single interruption would make as large as itself.
    deviation = statistics.median(abs(sample - middle) for sample in samples)
    # 1.253 = sqrt(pi / 2): the median's standard error over the mean's; 1.483: a deviation over the median
    # deviation. Both hold for a normal distribution.
    return 1.253 * 1.483 * deviation / middle / math.sqrt(len(samples))


Runs = Callable[[int], object]
"""Makes n calls."""

_GROWTH = 10  # a block grows by no more at once: one short reading of the clock would mislead


_STILL = 1000
"""Calls in which every clock advances."""


class ClockError(PlanishError):
    """The clock does not advance, so nothing can be timed by it."""

    exit_code = 5


class Clocks(NamedTuple):
    """Clocks that a duration is read from.

    Args:
        wall: the time, in nanoseconds.
        processor: the processor time of this process, or of the one that does the work, in nanoseconds.
    """

    wall: Callable[[], int] = time.perf_counter_ns
    processor: Callable[[], int] = time.process_time_ns


CLOCKS = Clocks()
"""The clocks of this process."""


class Took(NamedTuple):
    """Duration in seconds, by each clock."""

    wall: float
    processor: float


def repeated(call: Callable[[], object]) -> Runs:
    """Return a function that makes n calls, as `time_call` takes it."""

    def run(calls: int) -> None:
        for _ in range(calls):
            call()

    return run


def timed(run: Runs, clocks: Clocks) -> Callable[[int], Took]:
    """Return a function that makes n calls and returns how long they took, by both clocks."""

    def block(calls: int) -> Took:
        # The wall clock is read innermost: processor time is a system call, whose cost is not the block's.
        before, start = clocks.processor(), clocks.wall()
        run(calls)
        end, after = clocks.wall(), clocks.processor()
        return Took((end - start) * 1e-9, (after - before) * 1e-9)

    return block


def calls_of(block: Callable[[int], float], length: float) -> int:
    """Warm up, and return how many calls fill a number of seconds.

    Args:
        block: makes n calls and returns the seconds they took.
        length: seconds to fill.
    """
    block(1)  # what is cold may take a thousand times as long, and does not show how short a call is
    return filled(length, block)


def filled(length: float, block: Callable[[int], float]) -> int:
    """Find how many calls fill a block, which warms up; the last block has this number.

    Raises:
        ClockError: the clock does not advance.
    """
    calls, least = 1, block(1)  # of a call; one interruption shall not make short blocks look long enough
    while calls * least < length:
        # Twice as many at least, or the estimate would creep up on the length block by block.
        calls = math.ceil(calls * min(_GROWTH, max(2, length / max(calls * least, 1e-9))))
        took = block(calls)
        if took <= 0 and calls >= _STILL:
            raise ClockError(
                f"the clock does not advance: {calls} calls took {took:g} s",
                "Check the machine's clock source.",
            )
        least = min(least, took / calls)
    return calls


STEP_S = 1e-3
_TASKS = Path("/proc/self/task")
_LOOK_S = 0.02
"""A running thread's processor time is counted a few times in so long: every 4 ms or so."""
_BUSY = 0.3
"""Of a look; threads that look for work use all of it."""


def wait_for_idle_threads(longest_s: float) -> bool:
    """Wait until no other thread of this process runs; return whether one did.

    OpenBLAS's threads look for work during up to 0.1 s after a multiplication, and take the cores from
    code that uses several after it: that then seems to take 10 times as long, or more.

    Args:
        longest_s: seconds to wait at most.
    """
    start, ran = time.perf_counter(), False
    time.sleep(STEP_S)
    while _others_run():
        ran = True
        if time.perf_counter() - start > longest_s:
            break
        time.sleep(STEP_S)
    return ran


def _others_run() -> bool:
    """Return whether a thread other than the calling one runs, or would if it had a core."""
    if sys.platform == "linux":
        own = str(threading.get_native_id())
        for task in _TASKS.iterdir():
            with suppress(OSError):  # it has ended meanwhile
                stat = (task / "stat").read_text(encoding="ascii", errors="replace")
                # The thread's name, before the bracket, may have spaces and brackets.
                if task.name != own and stat.rpartition(")")[2].split()[0] == "R":
                    return True
        return False
    before, began = time.process_time(), time.perf_counter()
    time.sleep(_LOOK_S)
    return (time.process_time() - before) / (time.perf_counter() - began) > _BUSY


_LONG = 10  # blocks: a first call that fills these shows as much as a later one
_WAITED = 1.5  # a block that lasted longer than this multiple of its processor time had to wait
_PATIENCE = 20  # budgets by the clock, after which even blocks that waited must do


@dataclass(frozen=True)
class Timing:
    """Timing protocol of one candidate: its budget, blocks and samples.

    The clock and the call from Python cost some 0.4 microseconds a block; in the shortest block of
    100 microseconds that is under half a percent.

    Args:
        budget_s: seconds to spend on one candidate, the warm-up too; a candidate with slow calls
            may take more, to have the fewest samples.
        block_s: seconds that a block lasts at least.
        fewest: samples to take at least.
        most: samples to take at most; blocks grow longer where the budget allows more.
        slow_factor: a candidate slower than the best one so far by this factor is measured no further.
    """

    budget_s: float = 2e-3
    block_s: float = 1e-4
    fewest: int = 2
    most: int = 100
    slow_factor: float = 3.0


SEARCH_TIMING = Timing()
FINAL_TIMING = Timing(budget_s=0.05, fewest=5)


Timer = Callable[[Runs], Samples]
"""Times what makes n calls."""


def time_call(
    run: Runs,
    timing: Timing = SEARCH_TIMING,
    best_s: float = math.inf,
    clocks: Clocks = CLOCKS,
) -> Samples:
    """Measure how long a call takes.

    Enter the stage "run" first: it keeps other timed runs off the machine.

    Args:
        run: native code that loops has the least overhead.
        timing: how long to measure.
        best_s: the best candidate's seconds a call.
        clocks: that are read.

    Returns:
        The samples. The first call is none of them, unless it was long and showed by itself that the
        candidate is slow.
    """

    block, taken = timed(run, clocks), list[Took]()
    spent = 0.0

    def own(calls: int) -> float:
        nonlocal spent
        taken.append(block(calls))
        spent += _own(taken[-1])
        return _own(taken[-1])

    def over() -> bool:
        if len(taken) >= timing.most or clocks.wall() >= end:
            return True
        # One of two that waited would move their median by half of its wait.
        return spent >= timing.budget_s and 2 * sum(map(_waited, taken)) < len(taken)

    end = clocks.wall() + _PATIENCE * timing.budget_s * 1e9
    # Longer blocks where the budget would buy more samples than are of use.
    length = max(timing.block_s, timing.budget_s / timing.most)
    slow = timing.slow_factor * best_s
    own(1)
    # A slow candidate costs one call: to warm it up would take most of a search's time where most are slow.
    if _own(taken[-1]) > max(slow, _LONG * timing.block_s):
        return _samples(taken, 1, cut=True)
    calls = filled(length, own)
    del taken[:-1]  # of shorter blocks than the others
    # By the quickest block, for noise only adds time; by one alone it may: after a wait the caches are cold.
    while len(taken) < timing.fewest or min(map(_own, taken)) <= slow * calls:
        # The fewest even beyond the budget: one sample does not show whether it was disturbed.
        if len(taken) >= timing.fewest and over():
            return _samples(taken, calls)
        own(calls)
    return _samples(taken, calls, cut=True)


def _waited(took: Took) -> bool:
    return took.wall > _WAITED * _own(took)


def _own(took: Took) -> float:
    """Return the time of a block without the time in which others used its core.

    A process that has to wait for a core once, some milliseconds, must not look slow for that. Several
    threads have more processor time than the clock shows.
    """
    return min(took.wall, took.processor) if took.processor > 0 else took.wall


def _samples(blocks: Sequence[Took], calls: int, *, cut: bool = False) -> Samples:
    seconds, processor = (tuple(took / calls for took in clock) for clock in zip(*blocks, strict=True))
    # A clock that ticks seldom shows nothing of a short block.
    return Samples(seconds, calls, cut, processor if min(processor) > 0 else ())


PRECISE = 0.01
"""The standard error of the ratio at which measuring ends, as a share."""
PATIENCE = 30
"""Budgets that may be spent until it is so precise."""


_SECONDS = "seconds"


class SharedBaselineTime:
    """Seconds of a baseline, shared by all workers: the first one to measure them sets them for all.

    They are in a file that ends with the process, or the object, that made it; copies that are sent to other
    processes read that file. A copy on another machine begins with what is known when it is sent.
    """

    def __init__(self) -> None:
        from planish.sandbox.shared_cache import shared_cache  # of levels that time beside a baseline only

        self._cache = shared_cache()

    def __getstate__(self) -> tuple[SharedCache, float | None]:
        return self._cache, self.known

    def __setstate__(self, state: tuple[SharedCache, float | None]) -> None:
        self._cache, known = state
        if known is not None and self.known is None:
            self.set(known)

    @property
    def folder(self) -> Path:
        """Return the folder that copies in other processes read."""
        return self._cache.folder

    def seconds(self, found: float) -> float:
        """Return the seconds; where none are known, set those measured now.

        The caller holds the machine lock meanwhile.
        """
        if self.known is None:
            self.set(found)
        known = self.known
        return found if known is None else known

    @property
    def known(self) -> float | None:
        """The seconds; None where they are not known yet."""
        return self._cache.get_json(_SECONDS)

    def set(self, seconds: float) -> None:
        """Set the seconds, also where others are known; not while the baseline is measured."""
        self._cache.put_json(_SECONDS, seconds)


class PairedTimer:
    """Times candidates interleaved with a baseline: each block's time over the baseline's before it.

    With another worker busy, single times of one module vary by 14 %, and ratios of five by 3 %. Where they
    vary more it measures on, as long as `patience` allows. Where one core does the work, and processor time
    is clearly more precise, that counts. The timing's slow factor is one to the baseline.

    Args:
        baseline_time: seconds of the baseline, shared by all workers.
        timing: how long to measure both together.
        one_core: whether one core does all the work; else processor time does not show how long it takes.
        patience: how many budgets may be spent until the ratio is as precise as `PRECISE`.
        clocks: that are read.
    """

    def __init__(
        self,
        baseline_time: SharedBaselineTime,
        timing: Timing,
        *,
        one_core: bool = True,
        patience: int = PATIENCE,
        clocks: Clocks = CLOCKS,
    ) -> None:
        self._baseline_time, self._timing, self._clocks = baseline_time, timing, clocks
        self._one_core, self._patience = one_core, patience
        # By two: the baseline has half of the budget.
        self._length = max(timing.block_s, timing.budget_s / timing.most / 2)
        self._baseline_calls = 0

    def time(self, run: Runs, baseline: Runs) -> Samples:
        """Measure how long a call takes; enter the stage "run" first.

        Args:
            run: what is measured.
            baseline: what it is interleaved with, always the same.

        Returns:
            Samples in seconds, where the baseline takes `baseline_time`.
        """
        start = self._clocks.wall()
        base, own = timed(baseline, self._clocks), timed(run, self._clocks)
        # Once, for the baseline never changes; to warm it up for each candidate would take a share of each
        # budget.
        self._baseline_calls = self._baseline_calls or calls_of(lambda n: base(n).wall, self._length)
        calls, usual = calls_of(lambda n: own(n).wall, self._length), list[float]()
        wall, processor = list[float](), list[float]()
        while not (slow := self._is_slow(processor or wall)) and self._goes_on(wall, processor, start):
            # One directly after the other: the closer in time, the more of what disturbs is common to both.
            before, took = base(self._baseline_calls), own(calls)
            share = self._baseline_calls / calls
            usual.append(before.wall / self._baseline_calls)
            wall.append(took.wall / before.wall * share)
            if self._one_core and before.processor > 0:  # a clock that ticks seldom may show nothing
                processor.append(took.processor / before.processor * share)
        # One unit for all workers: ratios times what each worker measured itself would differ by chance.
        unit = self._baseline_time.seconds(statistics.median(usual))
        by_clock, by_processor = (tuple(unit * ratio for ratio in ratios) for ratios in (wall, processor))
        # All or none: medians of different rounds are not to be compared.
        known = len(processor) == len(wall)
        return Samples(by_clock, calls, slow, by_processor if known else (), paired=True)

    def _is_slow(self, ratios: Sequence[float]) -> bool:
        """Return whether it is so slow that two looks suffice; one may have been disturbed."""
        return len(ratios) > 1 and min(ratios) > self._timing.slow_factor

    def _goes_on(self, wall: Sequence[float], processor: Sequence[float], start: int) -> bool:
        timing = self._timing
        # The better of the two: either may be what the verdict rests on.
        precise = min(error(wall), error(processor)) <= PRECISE
        end = start + (1 if precise else self._patience) * timing.budget_s * 1e9
        return len(wall) < timing.fewest or (len(wall) < timing.most and self._clocks.wall() < end)
