"""What this processor can do, as the operating system reports it."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

from planish.core import TargetError
from planish.loops.codegen.x86.isa import IsaName

_NEEDED: dict[IsaName, frozenset[str]] = {
    # VL for shorter registers where lanes are summed, DQ for the logic of floating-point numbers (VANDPS).
    "avx512": frozenset({"avx512f", "avx512vl", "avx512dq", "fma"}),
    "avx2": frozenset({"avx2", "fma"}),
}


_FOR_NARROW: dict[IsaName, frozenset[str]] = {
    "avx512": frozenset({"avx512bw"}),
    "avx2": frozenset({"f16c"}),
}
"""What every processor with these instruction sets has, but a virtual machine may hide."""


@cache
def features() -> frozenset[str]:
    """List the processor's feature flags; empty where they cannot be had or it is no x86-64."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())


def check_narrow(name: IsaName) -> None:
    """Refuse an instruction set without the instructions for narrow elements; raises TargetError."""
    if lacking := _FOR_NARROW[name] - features():
        raise TargetError(
            f"this processor lacks {', '.join(sorted(lacking))}, for elements narrower than the arithmetic",
            "Use the portable back end (--backend portable).",
        )


def supported() -> list[IsaName]:
    """List the instruction sets that this generator has code for and this processor has, the best first."""
    return [name for name, needed in _NEEDED.items() if needed <= features()]


def best() -> IsaName:
    """Give the best instruction set.

    Raises:
        TargetError: the processor has neither AVX2 with FMA nor AVX-512.
    """
    names = supported()
    if not names:
        raise TargetError(
            "this processor has neither AVX-512 nor AVX2 with FMA",
            "Use the portable back end (--backend portable).",
        )
    return names[0]
