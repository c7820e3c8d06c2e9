"""Sampler of programs: in which function a program is, ten thousand times a second.

The program is run with a sampler linked to it, by signals of a timer. Nothing is asked of the system: `perf`
needs rights, and counters that virtual machines lack.
"""

from __future__ import annotations

import struct
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from planish.levels.llvm.backend import Backend
from planish.levels.llvm.backend.elf import Range, function_ranges
from planish.levels.llvm.execution import NotRunnableError, RunAnswer, Runner, compile_harness
from planish.levels.llvm.program import Harness

ANCHOR = "planish_sampler"
SAMPLES = "planish-samples"
ELSEWHERE = "(libraries, the system)"
"""Stands for all code outside of the program's own functions."""
_ENOUGH = 400
_SAMPLING_S = 3.0
_SLOWER, _LEAST_S = 20.0, 2.0
"""With the sampler a program may run so many times longer, and so many seconds at least."""


def sampled_seconds(
    runner: Runner, code: bytes, expected: RunAnswer, seconds: float, backend: Backend
) -> Mapping[str, float]:
    """Return the seconds that a program spends in each of its functions, the most first.

    Args:
        runner: links and runs it.
        code: its object.
        expected: its answer, and how long a run takes without the sampler.
        seconds: that a run takes.
        backend: compiles the sampler.

    Raises:
        NotRunnableError: it cannot be run with the sampler.
    """
    source = (files("planish.levels.llvm.hot") / "sampler.c").read_text(encoding="utf-8")
    sampler = compile_harness(Harness("c", source), runner.compiler, backend)
    found, end = Counter[str](), time.monotonic() + max(_SAMPLING_S, expected.seconds)
    with runner.executable(code, sampler) as path:
        while found.total() < _ENOUGH and time.monotonic() < end:
            runner.answer(path, max(_LEAST_S, _SLOWER * expected.seconds))
            notes = path.parent / SAMPLES
            if not notes.exists():
                raise NotRunnableError("it cannot be sampled here")
            found += counted(path, notes.read_bytes())
    return {name or ELSEWHERE: seconds * count / found.total() for name, count in found.most_common()}


def counted(program: Path, notes: bytes) -> Counter[str]:
    """Count samples by function; what lies in none, as in a library, has the empty name."""
    ranges = sorted(function_ranges(program.read_bytes()), key=lambda each: each.start)
    anchor = next((each.start for each in ranges if each.name == ANCHOR), None)
    if anchor is None:
        return Counter()
    starts = [each.start for each in ranges]
    # By distances from a function of its own: a program may be loaded anywhere.
    addresses = (distance + anchor for (distance,) in struct.iter_unpack("=q", notes) if distance)
    return Counter(_function_at(ranges, starts, address) for address in addresses)


def _function_at(ranges: list[Range], starts: list[int], address: int) -> str:
    at = bisect_right(starts, address) - 1
    return ranges[at].name if at >= 0 and address < ranges[at].start + ranges[at].size else ""
