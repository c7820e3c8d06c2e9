"""From a program and a candidate to a kernel."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from planish.core import Candidate, Target, TargetError
from planish.loops.backends import PREFERRED, Executable, backend_named, backend_names
from planish.loops.codegen.kernel import Code
from planish.loops.ir.annotated import AnnotatedTree
from planish.loops.ir.schedule import Schedule
from planish.loops.ir.tree import LoopTree
from planish.loops.lang.program import Program
from planish.loops.library import backend_of, schedule_steps
from planish.loops.lower.lowering import lower
from planish.loops.runtime.host import HostBackend
from planish.loops.space import resolve

if TYPE_CHECKING:
    from planish.loops.runtime.kernels import Kernel


def schedule_of(program: Program, candidate: Candidate) -> Schedule:
    """Replay a candidate's steps.

    Raises:
        ScheduleError: a step is illegal.
    """
    return resolve(program, schedule_steps(candidate))


def tree_of(program: Program, candidate: Candidate) -> LoopTree:
    """Replay a candidate's steps and lower the schedule."""
    return lower(schedule_of(program, candidate))


def compile_with(backend: str, tree: LoopTree) -> Code:
    """Generate code for a processor with one of our back ends.

    Raises:
        PlanishError: there is no such back end.
        TargetError: it cannot make code of the tree, or none that others can run.
    """
    found = backend_named(backend)
    if not isinstance(found, HostBackend):
        raise TargetError(f"back end '{backend}' makes no code for this processor", f"Use {PREFERRED[-1]}.")
    return found.generate(tree)


def annotated_of(candidate: Candidate, target: Target, tree: LoopTree) -> AnnotatedTree | None:
    """Give the decisions that a candidate's back end carries out; None where it does not work here."""
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
        candidate: its back end is the target's, unless a `Backend` step names one.
        target: the machine.
        tree: the candidate's, from `tree_of`.

    Raises:
        TargetError: the back end cannot make code of it.
    """
    backend = backend_of(candidate) or target.toolchain["backend"]
    return backend_named(backend).compile(program, tree, target.cores)


def kernel_of(program: Program, candidate: Candidate, target: Target, tree: LoopTree) -> Kernel:
    """Compile a candidate with one of our back ends; see `executable_of`."""
    from planish.loops.runtime.kernels import (
        Kernel,  # here: NumPy takes long to import, and a tree needs none
    )

    backend = backend_of(candidate) or target.toolchain["backend"]
    return Kernel(program, tree, compile_with(backend, tree), cores=target.cores)
