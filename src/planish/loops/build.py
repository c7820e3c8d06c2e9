"""From a program and a candidate to a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planish.core import Candidate, Target, unknown
from planish.loops.codegen.kernel import Code
from planish.loops.ir.schedule import Schedule
from planish.loops.ir.tree import LoopTree
from planish.loops.lang.program import Program
from planish.loops.library import backend_of, schedule_steps
from planish.loops.lower.lowering import lower
from planish.loops.space import resolve
from planish.loops.target import BACKENDS

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
    """Compile a loop tree with a back end of `planish.loops.target.BACKENDS`.

    Raises:
        PlanishError: there is no such back end.
        TargetError: it cannot make code of the tree.
    """
    if backend == "portable":
        from planish.loops.codegen.llvm import compile_tree as portable

        return portable(tree)
    if backend not in BACKENDS:
        raise unknown("level 'loops' has no back end", backend, BACKENDS)
    from planish.loops.codegen.x86.compile import compile_tree as x86

    return x86(tree, "avx512" if backend == "x86-avx512" else "avx2")


def kernel_of(program: Program, candidate: Candidate, target: Target, tree: LoopTree) -> Kernel:
    """Compile a candidate.

    Args:
        program: what is computed.
        candidate: its back end is the target's, unless a `Backend` step names one.
        target: the machine.
        tree: the candidate's, from `tree_of`.

    Raises:
        TargetError: the back end cannot make code of it.
    """
    from planish.loops.runtime.kernels import (
        Kernel,  # here: NumPy takes long to import, and a tree needs none
    )

    backend = backend_of(candidate) or target.toolchain["backend"]
    return Kernel(program, tree, compile_with(backend, tree), cores=target.cores)
