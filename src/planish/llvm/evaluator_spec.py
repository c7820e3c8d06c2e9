"""What a task is measured with, and against: the prepared module, the evaluator, the baseline."""

from __future__ import annotations

from planish.core import ProgramError, Task
from planish.isolation import Limits
from planish.llvm.backend import open_backend
from planish.llvm.evaluator import LAST_TIMING, TIMING, LlvmEvaluatorSpec
from planish.llvm.functions.attributes import for_size, without_optnone
from planish.llvm.machine import elements_of
from planish.llvm.passes import oz_of, print_pipeline
from planish.llvm.program import IRProgram, Running

_FAST = "default<O3>"
_PACE = 1000.0
"""Instructions for which each stage is given another second, beyond its usual limit."""


def evaluator_spec_of(task: Task[IRProgram], *, final: bool = False) -> LlvmEvaluatorSpec:
    """Make the spec for a task's evaluator.

    Args:
        task: the program, the back end and the objectives.
        final: for the comparison at the end: nothing is cut short.

    Raises:
        ProgramError: the time is asked for, and neither the module nor a harness has a `main`.
    """
    program = task.program
    names = frozenset(objective.name for objective in task.objectives)
    if "time_s" in names and not program.can_run:
        raise ProgramError(
            f"{program.title} has no 'main' that could be timed",
            "Give one that calls it: --option harness=FILE.c.",
        )
    backend = task.target.toolchain["backend"]
    return LlvmEvaluatorSpec(
        prepared(task),
        program.running if is_run(task) else None,
        names,
        backend,
        _limits(program.instructions, open_backend(backend).lifetime),
        LAST_TIMING if final else TIMING,
        remember=not final,
    )


def is_run(task: Task[IRProgram]) -> bool:
    """Whether candidates are run: where the time is measured, or where the user asked for it.

    A module is code that may do anything, so its `main` alone is no reason to.
    """
    program = task.program
    timed = any(objective.name == "time_s" for objective in task.objectives)
    return program.can_run and (timed or program.running != Running())


def prepared(task: Task[IRProgram]) -> str:
    """Give the module that every candidate starts from.

    Where size leads, every definition is `minsize optsize`, as clang -Oz has it; `default<Oz>` alone is
    weaker. Where time leads, they keep what they have. None is `optnone`.
    """
    change = without_optnone if _leads(task) == "time_s" else for_size
    return change(task.program.ir)


def baseline_passes(task: Task[IRProgram]) -> tuple[str, ...]:
    """Give what a user has without planish.

    For size this is -Oz as clang means it: `default<Oz>` on what `prepared` gives; `default<O2>` on the
    same makes as small code where LLVM (from 23 on), or the back end, has no `default<Oz>`. For time it is
    -O3: -Oz would flatter every gain.
    """
    if _leads(task) == "time_s":
        return (_FAST,)
    oz = oz_of({element.text for element in elements_of(task.target)})
    assert oz is not None
    return (oz,)


def baseline_text(task: Task[IRProgram]) -> str:
    """Print what the baseline makes of the module that every candidate starts from."""
    module = open_backend(task.target.toolchain["backend"]).parse(prepared(task))
    try:
        module.run(print_pipeline(baseline_passes(task)))
        return module.text()
    finally:
        module.close()


def _leads(task: Task[IRProgram]) -> str:
    return task.objectives[0].name


def _limits(instructions: int, lifetime: int | None) -> Limits:
    more = instructions / _PACE
    return Limits(
        transform=10 + more,
        build=10 + more,
        verify=20 + more,
        run=20 + more,
        worker=60 + more,
        lifetime=lifetime,
    )
