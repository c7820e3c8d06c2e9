"""Sampling and timing of a program's versions, confined, in a child of its own each time.

To sample, the program is run with a sampler linked to it, by signals of a timer. Nothing is asked of the
system: `perf` needs rights, and counters that virtual machines lack.
"""

from __future__ import annotations

import os
import signal
import statistics
import struct
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, TypeVar

from planish.core import Ratio
from planish.levels.llvm.backend import open_backend
from planish.levels.llvm.backend.elf import Range, function_ranges
from planish.levels.llvm.execution import (
    CLOCKS,
    EndedError,
    LinkCommand,
    NotRunnableError,
    RunAnswer,
    Runner,
    compile_harness,
    find_linker,
    linker_folders,
)
from planish.levels.llvm.program import Harness, Running
from planish.measure import Evidence, exclusive
from planish.measure.intervals import ratio
from planish.measure.machine_lock import machine_lock, opened_lock
from planish.sandbox import ExitStatus, ForkLimits, SandboxPolicy, in_child
from planish.sandbox.confinement import apply_sandbox

ANCHOR = "planish_sampler"
ENOUGH = 400
SAMPLES = "planish-samples"


def sampler_source() -> str:
    """Return the C text of what is linked to the program."""
    return (files("planish.levels.llvm.hot") / "sampler.c").read_text(encoding="utf-8")


def counted(program: Path, notes: bytes) -> Counter[str]:
    """Count samples by function; what lies in none, as in a library, has the empty name.

    Args:
        program: the executable.
        notes: the file that the sampler wrote: distances from its own function.
    """
    ranges = sorted(function_ranges(program.read_bytes()), key=lambda each: each.start)
    anchor = next((each.start for each in ranges if each.name == ANCHOR), None)
    if anchor is None:
        return Counter()
    starts = [each.start for each in ranges]
    # By distances from a function of its own: a program may be loaded anywhere.
    places = (place + anchor for (place,) in struct.iter_unpack("=q", notes) if place)
    return Counter(_holding(ranges, starts, place) for place in places)


def _holding(ranges: list[Range], starts: list[int], place: int) -> str:
    at = bisect_right(starts, place) - 1
    return ranges[at].name if at >= 0 and place < ranges[at].start + ranges[at].size else ""


_LIMITS = ForkLimits(seconds=60.0)
_SLOWER, _LEAST_S = 20.0, 2.0
"""A version may run so many times longer than the baseline did, and so many seconds at least."""
_BLOCK_S = 2e-3
_FEWEST, _MOST = 5, 60
_LOOKS, _SLOW = 3, 1.005
"""What takes so many times as long in so many looks is not looked at any more."""
_SAMPLING_S = 3.0

T = TypeVar("T")


class Times(NamedTuple):
    """Seconds of a run of the baseline and of a version, measured in turns, by both clocks."""

    baseline: tuple[float, ...]
    own: tuple[float, ...]
    baseline_processor: tuple[float, ...]
    own_processor: tuple[float, ...]

    @property
    def median_s(self) -> float:
        """Return what a run of the baseline takes."""
        return statistics.median(self.baseline)


@dataclass(frozen=True)
class Bench:
    """Measures versions of a program beside its baseline.

    Args:
        running: how it is run.
        baseline: its object.
        expected: its answer.
        link: how it is linked; None: as `Runner` does it by itself.
    """

    running: Running
    baseline: bytes
    expected: RunAnswer
    link: LinkCommand | None = None

    def sampled(self) -> Counter[str]:
        """Count samples of the baseline by function.

        Raises:
            NotRunnableError: it cannot be run with the sampler.
        """
        return _sandboxed(self.running, self.link, partial(_sampled, self), Counter[str])

    def beside(self, code: bytes, seconds: float, *, patient: bool = False) -> Times | None:
        """Verify a version, and measure it in turns with the baseline; None where its answer is wrong.

        The machine is kept for the measuring alone, and a version that hangs there is ended in time.

        Args:
            code: its object.
            seconds: to measure.
            patient: whether what is slow is measured as long as what is fast.
        """
        lock = machine_lock()
        os.close(opened_lock(lock))  # it is there then: the child is confined, and could not make it
        work = partial(_beside, self, code, seconds, patient)
        try:
            return _sandboxed(self.running, self.link, work, Times, str(lock.parent))
        except NotRunnableError:
            return None


def answer_of(
    running: Running, reference: bytes, baseline: bytes, link: LinkCommand | None = None
) -> RunAnswer:
    """Run an unoptimised program, and its baseline, and give the answer that both have.

    Raises:
        NotRunnableError: it cannot be run, or answers differ.
    """
    work = partial(_answered, running, reference, baseline, link)
    return _sandboxed(running, link, work, RunAnswer)


def judged(all_times: list[Times]) -> Ratio:
    """Return the ratio to the baseline; of several processes, each is one witness."""
    wall = ratio([times.own for times in all_times], [times.baseline for times in all_times])
    owns = [times.own_processor for times in all_times]
    if any(not min(row) for row in owns):
        return wall
    return Evidence(wall, ratio(owns, [times.baseline_processor for times in all_times])).ratio


def _sandboxed(
    running: Running, link: LinkCommand | None, work: Callable[[], T], answer: type[T], *folders: str
) -> T:
    reads = (*(link.reads if link else linker_folders()), *folders)

    def confined() -> T | str:
        apply_sandbox(SandboxPolicy((*reads, *filter(os.path.isabs, running.args))))
        try:
            return work()
        except (NotRunnableError, EndedError) as error:
            return str(error)

    found = in_child(confined, answer | str, _LIMITS)
    if isinstance(found, ExitStatus):
        raise NotRunnableError(found.cause)
    if isinstance(found, str):
        raise NotRunnableError(found)
    return found


def _answered(running: Running, reference: bytes, baseline: bytes, link: LinkCommand | None) -> RunAnswer:
    runner = Runner(running, open_backend(), link)
    with runner.executable(reference) as path:
        first, second = runner.answer(path), runner.answer(path)
    if wrong := second.differs(first):
        raise NotRunnableError(f"two runs of the unoptimised program differ: {wrong}")
    with runner.executable(baseline) as path:
        found = runner.answer(path)
    if wrong := found.differs(first):
        raise NotRunnableError(f"with -O3 it answers otherwise than without: {wrong}")
    return found


def _sampled(bench: Bench) -> Counter[str]:
    backend, expected = open_backend(), bench.expected
    runner = Runner(bench.running, backend, bench.link)
    compiler = bench.link.compiler if bench.link else find_linker()
    sampler = compile_harness(Harness("c", sampler_source()), compiler, backend)
    found, end = Counter[str](), time.monotonic() + max(_SAMPLING_S, expected.seconds)
    with runner.executable(bench.baseline, sampler) as path:
        while found.total() < ENOUGH and time.monotonic() < end:
            runner.answer(path, max(_LEAST_S, _SLOWER * expected.seconds))
            notes = path.parent / SAMPLES
            if not notes.exists():
                raise NotRunnableError("it cannot be sampled here")
            found += counted(path, notes.read_bytes())
    return found


def _beside(bench: Bench, code: bytes, seconds: float, patient: bool) -> Times:
    runner = Runner(bench.running, open_backend(), bench.link)
    with runner.executable(bench.baseline) as before, runner.executable(code) as path:
        given = max(_LEAST_S, _SLOWER * bench.expected.seconds)
        if wrong := runner.answer(path, given).differs(bench.expected):
            raise NotRunnableError(wrong)
        with exclusive():
            return _in_turns(
                _ended_in_time(partial(runner.repeat, before, bench.expected.code), given),
                _ended_in_time(partial(runner.repeat, path, bench.expected.code), given),
                max(1, round(_BLOCK_S / max(bench.expected.seconds, 1e-4))),
                seconds,
                patient,
            )


def _ended_in_time(block: Callable[[int], None], seconds: float) -> Callable[[int], None]:
    """Return a block of calls that ends this process where they take so many seconds each."""

    def ended(calls: int) -> None:
        # By the alarm: to wait for a process with a limit is to look now and then, which is measured too.
        signal.setitimer(signal.ITIMER_REAL, calls * seconds)
        block(calls)
        signal.setitimer(signal.ITIMER_REAL, 0)

    return ended


def _in_turns(
    before: Callable[[int], None], own: Callable[[int], None], calls: int, seconds: float, patient: bool
) -> Times:
    rows: list[tuple[float, float, float, float]] = []
    end = time.monotonic() + seconds
    for block in (before, own):
        block(1)
    while len(rows) < _FEWEST or (len(rows) < _MOST and time.monotonic() < end):
        (base, base_cpu), (new, new_cpu) = _took(before, calls), _took(own, calls)
        rows.append((base, new, base_cpu, new_cpu))
        if not patient and len(rows) >= _LOOKS and _median_ratio(rows) > _SLOW:
            break
    return Times(*(tuple(column) for column in zip(*rows, strict=True)))


def _median_ratio(rows: list[tuple[float, float, float, float]]) -> float:
    """Return the ratio by processor time: it is the one that other programs disturb less."""
    return statistics.median(own / max(base, 1e-9) for _, _, base, own in rows)


def _took(block: Callable[[int], None], calls: int) -> tuple[float, float]:
    processor, wall = CLOCKS.processor(), CLOCKS.wall()
    block(calls)
    end, after = CLOCKS.wall(), CLOCKS.processor()
    return (end - wall) / 1e9 / calls, (after - processor) / 1e9 / calls
