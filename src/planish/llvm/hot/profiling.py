"""Where a program spends its time: it is run with a sampler linked to it, by signals of a timer.

Nothing is asked of the system: `perf` needs rights, and counters that virtual machines lack.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import Counter
from importlib.resources import files
from pathlib import Path

from planish.llvm.backend.elf import Range, function_ranges

ANCHOR = "planish_sampler"
ENOUGH = 400
SAMPLES = "planish-samples"


def sampler_source() -> str:
    """Give the C text of what is linked to the program."""
    return (files("planish.llvm.hot") / "sampler.c").read_text(encoding="utf-8")


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
