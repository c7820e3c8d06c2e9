"""What a task is measured with: during a search, in the comparison, and on data that nobody saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from planish.core import (
    Candidate,
    Lost,
    Measured,
    Outcome,
    PlanishError,
    ProgramError,
    Reference,
    Start,
    Task,
    evaluate,
    unnamed,
)
from planish.hlo.backend import CompiledFiles
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
        kept=_compiled_files() if final else None,
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
        kept=_compiled_files(),
        limits=END_LIMITS,
    )


@cache
def _compiled_files() -> CompiledFiles:
    """Give where this process keeps what was compiled at the end of a run: once for all fresh processes."""
    return CompiledFiles()


def scores_at_the_end(
    task: Task[ScoredProgram],
    candidates: Sequence[Candidate],
    start: Start,
    parts: tuple[Part, ...] = END_PARTS,
) -> list[Outcome]:
    """Measure the errors of candidates on each part, the final one too.

    The final part comes after the others of all candidates: those decide, and there may be no time for all.
    Trainings, which take most of the time, are scored on all parts at once.

    Args:
        task: the module and its workload.
        candidates: patches.
        start: starts the executor that evaluates them, such as `LocalExecutor`.
        parts: on which.

    Returns:
        For each candidate its errors, as `error`, `error_validation` and `error_final`, or a failure; it is
        lost where the deadline came before, and without the last error where it came before that.

    Raises:
        PlanishError: the data is missing, or does not fit.
    """
    others: tuple[Part, ...] = tuple(part for part in parts if part != "final")
    last: tuple[Part, ...] = tuple(part for part in parts if part == "final")
    at_once = task.program.workload.training is not None or not others or not last
    first, *more = (parts,) if at_once else (others, last)
    found = _scored(task, candidates, start, first)
    for group in more:
        found = [*map(_joined, found, _scored(task, candidates, start, group))]
    return found


def _scored(
    task: Task[ScoredProgram], candidates: Sequence[Candidate], start: Start, parts: tuple[Part, ...]
) -> list[Outcome]:
    found: list[Outcome] = [Lost("worker", "not measured")] * len(candidates)
    with start(end_evaluator_spec(task, parts)) as executor:
        for answer in evaluate(executor, candidates, deadline()):
            found[answer.position] = answer.outcome
    return found


def _joined(before: Outcome, outcome: Outcome) -> Outcome:
    """Give the values of both; who was lost the second time keeps what was known."""
    if not isinstance(before, Measured) or isinstance(outcome, Lost):
        return before
    if not isinstance(outcome, Measured):
        return outcome
    return replace(before, values={**before.values, **outcome.values})


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
