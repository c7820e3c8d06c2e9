"""Building of a candidate: from a program to a kernel, by a back end or by a library."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planish.core import Candidate, ProgramError, Step, Target, TargetError, did_you_mean
from planish.levels.loops.backends import PREFERRED, Executable, HostBackend, backend_named, backend_names
from planish.levels.loops.ir.schedule import Schedule
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space import resolve

if TYPE_CHECKING:
    from planish.levels.loops.codegen.kernel import MachineCode
    from planish.levels.loops.ir.annotated import AnnotatedTree
    from planish.levels.loops.ir.tree import LoopTree
    from planish.levels.loops.runtime.kernels import Kernel


# Steps that are no part of a schedule


@dataclass(frozen=True)
class Library(Step):
    """Step that has a library compute the program; the baseline.

    Args:
        name: "numpy".
    """

    name: str = "numpy"


@dataclass(frozen=True)
class UseBackend(Step):
    """Step that selects the code generator; without it, that is the target's own.

    Args:
        name: one of `planish.levels.loops.backends.backend_names()`.

    Raises:
        ProgramError: the name is unknown.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in backend_names():
            raise ProgramError(f"unknown back end '{self.name}'", did_you_mean(self.name, backend_names()))


def library_of(candidate: Candidate) -> str | None:
    """Return the name of the library that computes a candidate; None if it is a schedule."""
    return next((s.name for s in candidate.steps if isinstance(s, Library)), None)


def backend_of(candidate: Candidate) -> str | None:
    """Return the name of the back end that a candidate requests; None where it leaves that to the target."""
    return next((s.name for s in candidate.steps if isinstance(s, UseBackend)), None)


def vector_builds(target: Target) -> Mapping[str, Step]:
    """Return the back ends with shorter vectors than those of the target's own, name to step.

    Some processors that have vectors of 512 bits pass what flows through memory faster in those of 256.
    """
    wide = target.toolchain.get("backend") == "x86-avx512"
    return {"x86-avx2": UseBackend("x86-avx2")} if wide and backend_named("x86-avx2").works() else {}


def schedule_steps(candidate: Candidate) -> Candidate:
    """Return the candidate without its choice of back end."""
    return Candidate(tuple(s for s in candidate.steps if not isinstance(s, UseBackend)))


# Building


def schedule_of(program: Program, candidate: Candidate) -> Schedule:
    """Replay a candidate's steps.

    Raises:
        ScheduleError: a step is illegal.
    """
    return resolve(program, schedule_steps(candidate))


def tree_of(program: Program, candidate: Candidate) -> LoopTree:
    """Replay a candidate's steps and lower the schedule."""
    from planish.levels.loops.lower.lowering import lower  # a process that only searches lowers nothing

    return lower(schedule_of(program, candidate))


def compile_with(backend: str, tree: LoopTree) -> MachineCode:
    """Generate code for a processor with one of our back ends.

    Raises:
        PlanishError: there is no such back end.
        TargetError: it cannot make code of the tree, or none that others can run.
    """
    found = backend_named(backend)
    if not isinstance(found, HostBackend):
        raise TargetError(f"back end '{backend}' makes no code for this processor", f"Use {PREFERRED[-1]}.")
    return found.generate(tree)


def code_of(candidate: Candidate, target: Target, tree: LoopTree) -> MachineCode:
    """Generate code of a candidate.

    Args:
        candidate: its back end is the target's, unless a `UseBackend` step names one.
        target: this machine, or another from `planish.levels.loops.backends.cross_target`. Code for another
            has the layout, the entries without addresses, and the assembly.
        tree: the candidate's, from `tree_of`.

    Raises:
        TargetError: the back end cannot make code of it.
    """
    if "triple" not in target.toolchain:
        return compile_with(backend_of(candidate) or target.toolchain["backend"], tree)
    from planish.levels.loops.codegen.llvm.compile import compile_for
    from planish.levels.loops.codegen.llvm.jit import describe

    triple, cpu, features = (target.toolchain[name] for name in ("triple", "cpu", "features"))
    return compile_for(tree, describe(triple, cpu, features))


def annotated_of(candidate: Candidate, target: Target, tree: LoopTree) -> AnnotatedTree | None:
    """Return the decisions that a candidate's back end carries out; None where it does not work here."""
    backend = backend_of(candidate) or target.toolchain.get("backend", "")
    found = backend_named(backend) if backend in backend_names() else None
    if not (isinstance(found, HostBackend) and found.works()):
        return None
    with suppress(TargetError):
        return found.generate(tree).annotated
    return None


def executable_of(program: Program, candidate: Candidate, target: Target, tree: LoopTree) -> Executable:
    """Compile a candidate.

    Args:
        program: what is computed.
        candidate: its back end is the target's, unless a `UseBackend` step names one.
        target: the machine.
        tree: the candidate's, from `tree_of`.

    Raises:
        TargetError: the back end cannot make code of it.
    """
    backend = backend_of(candidate) or target.toolchain["backend"]
    return backend_named(backend).compile(program, tree, target.cores)


def kernel_of(program: Program, candidate: Candidate, target: Target, tree: LoopTree) -> Kernel:
    """Compile a candidate with one of our back ends; see `executable_of`."""
    from planish.levels.loops.runtime.kernels import Kernel

    return Kernel(program, tree, code_of(candidate, target, tree), cores=target.cores)
