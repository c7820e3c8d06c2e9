"""Description of a candidate of steps on functions: the functions that it changed, and their lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from planish.core import (
    Candidate,
    Executor,
    Lost,
    Measured,
    Outcome,
    ProgramError,
    Task,
    evaluate,
    outcome_from_json,
    outcome_to_json,
)
from planish.levels.llvm.function_steps import FunctionPlan, plan_of
from planish.levels.llvm.passes import candidate_of, parse_pipeline
from planish.levels.llvm.program import IRProgram
from planish.levels.llvm.task_setup import baseline_passes, plain_spec_of
from planish.measure import deadline, seconds_left

_SHOWN = 20
_LIST = 70
SIZES = ("text_bytes", "instructions")
Sizes = Mapping[str, float]


def measure_functions(
    task: Task[IRProgram], candidate: Candidate, executor: Executor
) -> dict[str, dict[str, Any]]:
    """Measure the functions of the unoptimised module, of the baseline's and of a candidate's.

    Args:
        task: the module and the objective.
        candidate: of steps on functions.
        executor: has nothing under way.

    Returns:
        By what is counted, the hash of each candidate to its outcome as JSON; its parts are the functions
        that the baseline and the candidate do not make alike.
    """
    spec = replace(plain_spec_of(task, final=True), running=None, parts=True)
    three = [Candidate(), candidate_of(baseline_passes(task)), candidate]
    found = dict[str, dict[Candidate, Outcome]]()
    leads = task.objectives[0].name
    for what in sorted(SIZES, key=lambda what: what != leads):
        if seconds_left() == 0:
            break
        executor.serve(replace(spec, objectives=frozenset({what})))
        found[what] = {each.candidate: each.outcome for each in evaluate(executor, three, deadline())}
    changed = {name for outcomes in found.values() for name in _changed(*map(outcomes.get, three[1:]))}
    return {
        what: {
            each.hash: outcome_to_json(_only(outcome, changed))
            for each, outcome in outcomes.items()
            if not isinstance(outcome, Lost)
        }
        for what, outcomes in found.items()
    }


def _changed(before: Outcome | None, after: Outcome | None) -> set[str]:
    if not (isinstance(before, Measured) and isinstance(after, Measured)):
        return set()
    names = before.parts.keys() | after.parts.keys()
    return {name for name in names if before.parts.get(name) != after.parts.get(name)}


def _only(outcome: Outcome, names: set[str]) -> Outcome:
    if not isinstance(outcome, Measured):
        return outcome
    return replace(outcome, parts={name: v for name, v in outcome.parts.items() if name in names})


def functions_table(task: Task[IRProgram], candidate: Candidate, analysis: Mapping[str, Any]) -> str:
    """List the functions that a candidate makes smaller or larger, the greatest gain first.

    Args:
        task: the module and the objective.
        candidate: of steps on functions.
        analysis: what `measure_functions` returned; empty where it was not asked.
    """
    leads, plan = task.objectives[0].name, plan_of(candidate)
    hashes = candidate_of(baseline_passes(task)).hash, candidate.hash
    parts = {what: [_parts(analysis, what, name) for name in hashes] for what in SIZES}
    if None in parts[leads]:
        return "(There was no time to measure them.)"
    before, after = (each or {} for each in parts[leads])
    gains = [(name, before.get(name, 0), after.get(name, 0)) for name in {**before, **after}]
    gains = sorted((gain for gain in gains if gain[1] != gain[2]), key=lambda gain: gain[2] - gain[1])
    if not gains:
        return "all as the baseline makes them"
    rows = [["function", "baseline", "now", "saved", "passes"]]
    rows += [
        [name, f"{old:,.0f}", f"{new:,.0f}", f"{old - new:,.0f}", _list(plan, name, there=name in after)]
        for name, old, new in gains[:_SHOWN]
    ]
    lines = [_aligned(rows)]
    if more := len(gains) - _SHOWN:
        lines += [f"... and {more:,} more, in the manifest of an export"] if more > 0 else []
    if apart := _disagreeing(parts):
        listed = _cut(", ".join(apart))
        lines.append(
            f"In {len(apart):,} function{'s' * (len(apart) != 1)} instructions and bytes disagree: {listed}"
        )
    return "\n".join(lines)


def _parts(analysis: Mapping[str, Any], what: str, name: str) -> Sizes | None:
    found = analysis.get(what, {}).get(name)
    outcome = outcome_from_json(found) if found else None
    return outcome.parts if isinstance(outcome, Measured) else None


def _disagreeing(parts: Mapping[str, Sequence[Sizes | None]]) -> list[str]:
    """Name the functions of which one measure became less and the other more."""
    pairs = [(each[0] or {}, each[1] or {}) for each in parts.values()]
    names = dict.fromkeys(name for pair in pairs for sizes in pair for name in sizes)
    changes = {name: [after.get(name, 0) - before.get(name, 0) for before, after in pairs] for name in names}
    return [name for name, (one, other) in changes.items() if min(one, other) < 0 < max(one, other)]


def _list(plan: FunctionPlan, name: str, *, there: bool) -> str:
    if not there:
        return "(as its callers are)"
    pipeline = plan.list_of(name)
    with suppress(ProgramError):  # a pass that this planish does not know
        return _cut(", ".join(parse_pipeline(pipeline)))
    return _cut(pipeline)


def _cut(text: str) -> str:
    return text if len(text) <= _LIST else f"{text[: _LIST - 3]}..."


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = (0, len(widths) - 1)
    sides = [str.ljust if index in texts else str.rjust for index in range(len(widths))]
    lines = ([side(cell, w) for side, cell, w in zip(sides, row, widths, strict=True)] for row in rows)
    return "\n".join("  ".join(line).rstrip() for line in lines)
