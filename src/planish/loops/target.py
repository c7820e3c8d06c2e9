"""The machine as the loops level sees it, and the code generators that it can use."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

from planish.core import Target, TargetError, usable_cores

BACKENDS = ("x86-avx512", "x86-avx2", "portable")
"""The code generators: LoopNest for x86-64 by instruction set, and LLVM for any processor."""


@cache
def available_backends() -> tuple[str, ...]:
    """List the back ends that work on this machine, the preferred first."""
    from planish.loops.x86 import cpu

    return (*(f"x86-{name}" for name in cpu.supported()), "portable")


@cache
def processor() -> str:
    """Name the processor's model."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    wanted = ("model name", "cpu family", "model\t")
    found = {
        line.split(":")[0].strip(): line.split(":")[1].strip() for line in lines if line.startswith(wanted)
    }
    name = found.get("model name") or platform.processor() or platform.machine()
    return f"{name} (family {found['cpu family']} model {found['model']})" if "model" in found else name


def this_machine(cores: int, backend: str | None = None) -> Target:
    """Describe this machine.

    Args:
        cores: how many a kernel may use.
        backend: the code generator; None takes the preferred one.

    Raises:
        TargetError: the machine has fewer cores, or lacks the back end.
    """
    if not 1 <= cores <= usable_cores():
        raise TargetError(f"{cores} cores asked for, this process may use {usable_cores()}", "Use --cores.")
    chosen = backend or available_backends()[0]
    if chosen not in available_backends():
        raise TargetError(
            f"back end '{chosen}' does not work on this machine",
            f"It has: {', '.join(available_backends())}.",
        )
    toolchain = {"backend": chosen, "llvmlite": version("llvmlite")}
    if chosen.startswith("x86"):
        toolchain["iced-x86"] = version("iced-x86")
    return Target(processor(), frozenset({chosen}), cores, toolchain)
