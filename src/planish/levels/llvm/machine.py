"""Facts of this machine for the level: the back end, its passes, the compilers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from planish.core import PlanishError, Target, TargetError, processor, usable_cores
from planish.levels.llvm.bindings.libraries import facts, open_bindings
from planish.levels.llvm.clang import find_compiler
from planish.levels.llvm.execution import find_linker
from planish.levels.llvm.passes.catalogue import PassElement, elements
from planish.levels.llvm.passes.pipeline import available
from planish.sandbox.confinement import sandbox_status


def llvm_target(cores: int, backend: str = "") -> Target:
    """Describe this machine.

    Raises:
        TargetError: the machine has fewer cores, or there is no such back end.
    """
    there = usable_cores()
    if not 1 <= cores <= there:
        raise TargetError(f"{cores} cores requested, this machine has {there}", f"Use cores={there} at most.")
    llvm = open_bindings(backend)
    return Target(processor(), frozenset(), cores, {"llvm": llvm.version, "backend": llvm.name})


def elements_of(target: Target) -> Sequence[PassElement]:
    """List the passes that a target's back end runs."""
    return _elements(target.toolchain["backend"])


@cache
def _elements(backend: str) -> tuple[PassElement, ...]:
    return available(open_bindings(backend))


def machine_facts() -> Mapping[str, str]:
    """Return the processor, each LLVM, the C compilers and the passes of this machine."""
    llvm = open_bindings()

    def compiler() -> str:
        found = find_compiler(int(llvm.version.partition(".")[0]))
        return f"{found.name} {found.version}"

    return {
        "processor": processor(),
        **facts(),
        "passes": f"{len(_elements(llvm.name))} of {len(elements())}",
        "C to LLVM IR": _reported(compiler),
        "linker": _reported(lambda: " ".join(find_linker())),
        "programs are confined by": sandbox_status(),
    }


def _reported(fact: Callable[[], str]) -> str:
    """Return a fact, or why there is none."""
    try:
        return fact()
    except PlanishError as error:
        return str(error)
