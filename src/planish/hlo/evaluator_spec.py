"""What a task is measured with: during a search, in the comparison, and on data that nobody saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from planish.core import (
    Candidate,
    Lost,
    Outcome,
    PlanishError,
    ProgramError,
    Reference,
    Start,
    Task,
    evaluate,
    unnamed,
)
from planish.hlo.evaluator import END_LIMITS, LAST_TIMING, TIMING, HloEvaluatorSpec
from planish.hlo.program import read_program
from planish.hlo.scored import ScoredProgram
from planish.hlo.scoring import check_suits
from planish.hlo.workload import Part
from planish.hlo.workload.data import digest_of
from planish.hlo.workload.metric import measured_as
from planish.measure import Yardstick, deadline

END_PARTS: tuple[Part, ...] = ("search", "validation", "final")


def evaluator_spec_of(task: Task[ScoredProgram], *, final: bool = False) -> HloEvaluatorSpec:
    """Make the spec for a task's evaluator; see `planish.core.Level.evaluator`.

    Raises:
        PlanishError: an objective is not what the workload's metric gives.
    """
    measured = ("time_s", measured_as(task.program.workload))
    for objective in task.objectives:
        if objective.name not in measured:
            what = f"the workload's metric gives no '{objective.name}'"
            raise PlanishError(what, f"It gives --objective {measured[1]}.")
    return HloEvaluatorSpec(
        task.program,
        task.target.toolchain["backend"],
        task.target.cores,
        timing=LAST_TIMING if final else TIMING,
        yardstick=Yardstick(),
        remember=not final,
    )


def end_evaluator_spec(task: Task[ScoredProgram], parts: tuple[Part, ...] = END_PARTS) -> HloEvaluatorSpec:
    """Make the spec for what is measured once the search is over: errors, after whole trainings."""
    return HloEvaluatorSpec(
        task.program,
        task.target.toolchain["backend"],
        task.target.cores,
        parts,
        at_the_end=True,
        timing=None,
        limits=END_LIMITS,
    )


def scores_at_the_end(
    task: Task[ScoredProgram],
    candidates: Sequence[Candidate],
    start: Start,
    parts: tuple[Part, ...] = END_PARTS,
) -> list[Outcome]:
    """Measure the errors of candidates on each part, the final one too.

    Args:
        task: the module and its workload.
        candidates: patches.
        start: starts the executor that evaluates them, such as `LocalExecutor`.
        parts: on which.

    Returns:
        For each candidate its errors, as `error`, `error_validation` and `error_final`, or a failure; it is
        lost where the deadline came before.

    Raises:
        PlanishError: the data is missing, or does not fit.
    """
    found: list[Outcome] = [Lost("worker", "not measured")] * len(candidates)
    with start(end_evaluator_spec(task, parts)) as executor:
        for answer in evaluate(executor, candidates, deadline()):
            found[answer.position] = answer.outcome
    return found


def original_of(task: Task[ScoredProgram]) -> Reference:
    """Give another form of the module, which the workload names, to be measured as the module is.

    Raises:
        ProgramError: it is not there, is another one than when the task was made, or does not fit.
    """
    workload = task.program.workload
    assert workload.original is not None
    if not workload.original.path:
        raise unnamed("the workload's original module and its data")
    path = Path(workload.original.path)
    module = read_program(path)
    # Another form than the one that the task names would be told as a result of this task.
    if digest_of(path) != workload.original.digest:
        raise ProgramError(f"'{path}' is not what it was when the search began", "Tune again.")
    check_suits(module, workload)
    alone = replace(evaluator_spec_of(task, final=True), yardstick=None)
    spec = replace(alone, program=ScoredProgram(module, workload), limits=END_LIMITS)
    return Reference(path.name, Candidate(), spec)
