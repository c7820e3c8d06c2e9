"""The machine as the loops level sees it, and the code generators that it can use."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

from planish.core import Machine, Target, TargetError, caches, processor, unknown, usable_cores

BACKENDS = ("x86-avx512", "x86-avx2", "portable")
"""The code generators: LoopNest for x86-64 by instruction set, and LLVM for any processor."""


@cache
def available_backends() -> tuple[str, ...]:
    """List the back ends that work on this machine, the preferred first."""
    from planish.loops.codegen.x86 import cpu

    return (*(f"x86-{name}" for name in cpu.supported()), "portable")


def this_machine(cores: int, backend: str = "") -> Target:
    """Describe this machine.

    Args:
        cores: how many a kernel may use.
        backend: the code generator; empty for the preferred one.

    Raises:
        PlanishError: there is no such back end.
        TargetError: the machine has fewer cores, or lacks the back end.
    """
    if not 1 <= cores <= usable_cores():
        raise TargetError(f"{cores} cores asked for, this process may use {usable_cores()}", "Use --cores.")
    chosen = backend or available_backends()[0]
    if chosen not in BACKENDS:
        raise unknown("level 'loops' has no back end", chosen, BACKENDS)
    if chosen not in available_backends():
        raise TargetError(
            f"back end '{chosen}' does not work on this machine",
            f"It has: {', '.join(available_backends())}.",
        )
    toolchain = {"backend": chosen, "llvmlite": version("llvmlite")}
    if chosen.startswith("x86"):
        toolchain["iced-x86"] = version("iced-x86")
    return Target(processor(), frozenset({chosen}), cores, toolchain, _machine(chosen))


def _machine(backend: str) -> Machine:
    """Describe the processor as a back end uses it; the portable one runs where vectors are narrow, too."""
    wide = backend == "x86-avx512"
    return Machine(64 if wide else 32, 32 if wide else 16, caches())
