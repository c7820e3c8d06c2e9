"""Description of a result: sizes before and after, what each pass contributes, and where the time goes."""

from __future__ import annotations

import math
import shlex
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from planish.core import (
    NOTES,
    Candidate,
    Executor,
    Failed,
    Lost,
    Measured,
    Outcome,
    ProgramError,
    Task,
    evaluate,
    outcome_from_json,
    outcome_to_json,
)
from planish.levels.llvm.c_source import is_source, source_of
from planish.levels.llvm.evaluator import NOT_RUN
from planish.levels.llvm.export import commands
from planish.levels.llvm.function_steps import FunctionPlan, is_of_functions, plan_of
from planish.levels.llvm.hot.lists import USUAL, passes_within
from planish.levels.llvm.hot.programs import function_lists
from planish.levels.llvm.passes.pipeline import candidate_of, parse_pipeline, passes_of
from planish.levels.llvm.program import IRProgram
from planish.levels.llvm.task_setup import baseline_of, baseline_passes, is_run, plain_spec_of, timed_spec_of
from planish.measure import deadline, seconds_left
from planish.sandbox.confinement import sandbox_status

SHOWN = 0.01
"""Functions with a smaller share of the time are not listed, unless they have a list of their own."""
_DIFFERENCES = 6


def function_rows(
    before: Mapping[str, float], after: Mapping[str, float], candidate: Candidate
) -> Iterator[Sequence[str]]:
    """Yield a table of where the time goes, its head first: function, share, seconds and passes.

    Args:
        before: seconds by function with -O3.
        after: the same with the candidate.
        candidate: may be -O3.
    """
    yield "function", "share", "-O3", "now", "passes, where not as -O3"
    steps = function_lists(candidate) if is_of_functions(candidate) else ()
    lists = {name: step.pipeline for step in steps for name in step.functions}
    total = sum(before.values()) or 1.0
    for name in sorted({*before, *lists}, key=lambda name: -before.get(name, 0.0)):
        seconds = before.get(name, 0.0)
        if seconds >= SHOWN * total or name in lists:
            share = f"{seconds / total:.0%}" if name in before else ""
            times = (f"{each[name] * 1e3:,.3f} ms" if name in each else "" for each in (before, after))
            yield name, share, *times, _differs(lists.get(name, ""))


def _differs(pipeline: str) -> str:
    """Return the passes that a list has beyond those of -O3, and those that it lacks."""
    if not pipeline:
        return ""
    own, usual = Counter(passes_within(pipeline)), Counter(USUAL)
    said = [f"+{each}" for each in (own - usual).elements()]
    said += [f"-{each}" for each in (usual - own).elements()]
    more = len(said) - _DIFFERENCES
    return " ".join(said[:_DIFFERENCES]) + (f" and {more} more" if more > 0 else "") or "in another order"


PATIENCE_S = 10.0
"""Seconds after which passes that are not yet left out one by one stay unmeasured."""

_SIZES = (_COUNT, _BYTES) = ("instructions", "text_bytes")
_TIME = "time_s"
_TITLES = {_COUNT: "instructions", _BYTES: ".text bytes", _TIME: "time"}
_CHECKED = "verified"
_BEFORE, _AFTER = "seconds by function, baseline", "seconds by function"
_REPEAT = "'planish export' writes prepared.ll and repeat.sh, by which LLVM's opt and llc alone make it again"

_REPEAT_SOURCE = "'planish export' writes source.c, and the objects of it and of the rest of the program"

_NOISY = "(Each was timed for a moment: differences of some percent are noise.)"
_IDLE = "(Without those of +0.000 ms the code is the same: there was no time to leave them out.)"
_MISSING = "not measured"
_WHY = "(There was no time for it at the end of the run.)"

_UNKNOWN = "(There was no time to measure what each of them does.)"

Passes = tuple[str, ...]
Found = Mapping[str, Outcome]
"""The hash of a pass list to what became of it."""


def described(task: Task[IRProgram], candidate: Candidate, analysis: Mapping[str, Any]) -> Mapping[str, str]:
    """Show what a candidate does: `size`, `passes`, `verified` and `repeat`.

    Where the time leads, `functions` shows where it goes. A candidate that treats functions apart, or is a
    part of a linked program, has no `size` and no `passes`.

    Args:
        task: the module and the objectives.
        candidate: the pass list.
        analysis: what `measured` returned for it; empty where it was not asked.
    """
    if is_source(candidate):
        text, passes = source_of(candidate)
        shown = {"source": text, "passes": "\n".join(passes or baseline_passes(task))}
        return {**shown, "verified": _verified(task, analysis), "repeat": _REPEAT_SOURCE}
    base, leads = baseline_passes(task), task.objectives[0].name
    ends = {"verified": _verified(task, analysis), "repeat": _REPEAT}
    if leads == _TIME and (is_of_functions(candidate) or task.program.linked):
        return {**_functions(candidate, analysis), **ends}
    found = {
        what: {name: outcome_from_json(each) for name, each in analysis.get(what, {}).items()}
        for what in _asked(leads)
    }
    sizes = {"unoptimized": Candidate(), ", ".join(base): candidate_of(base)}
    if is_of_functions(candidate):
        functions = _functions_table(task, candidate, analysis)
        return {
            "functions": functions,
            "size": _sizes(found, {**sizes, "lists of functions": candidate}),
            **ends,
        }
    passes = passes_of(candidate)
    return {
        **_functions(candidate, analysis),
        "size": _sizes(found, {**sizes, "this pass list": candidate}),
        "passes": _contributions(found[leads], passes, leads),
        **ends,
        "repeat": commands(task, passes),
    }


def measured(task: Task[IRProgram], candidate: Candidate, executor: Executor) -> Mapping[str, Any]:
    """Measure what `described` shows, in workers: to leave a pass out may crash LLVM.

    Returns:
        By what is counted, the hash of each pass list to its outcome as JSON; and `verified`, where
        candidates are run: whether the answer was compared, and else why not.
    """
    leads = task.objectives[0].name
    if is_source(candidate):
        return {_CHECKED: []}  # it is measured only where its answers are compared
    if is_of_functions(candidate) and leads != _TIME:
        sizes = _measure_functions(task, candidate, executor)
        return {**sizes, **_verification(task, candidate, executor)}
    found: dict[str, Any] = _measured_parts(task, candidate, executor) if leads == _TIME else {}
    whole = plain_spec_of(task)
    if is_of_functions(candidate) or task.program.linked:
        return {**found, _CHECKED: []}  # its time was measured, so it was run
    passes, base = passes_of(candidate), baseline_passes(task)
    shorter = [candidate_of(each) for each in _shorter(passes)]
    ends = [candidate_of(each) for each in ((), base, passes)]
    # The sizes first: they take three measurements each, and the time may end.
    wanted = [*((each, ends, math.inf) for each in _asked(leads)), (leads, shorter, PATIENCE_S)]
    for what, lists, patience_s in wanted:
        # What was measured so far is kept.
        if seconds_left() == 0:
            break
        # Each once: the baseline may be the candidate, and leaving out one of two equal passes makes equal
        # lists.
        known = found.setdefault(what, {})
        new = [each for each in dict.fromkeys(lists) if each.hash not in known]
        if new:
            running = whole.running if what == _TIME else None
            executor.serve(replace(whole, running=running, objectives=frozenset({what})))
            known |= _measured(executor, new, patience_s)
    return {**found, **_verification(task, candidate, executor)}


def _verification(task: Task[IRProgram], candidate: Candidate, executor: Executor) -> Mapping[str, Any]:
    """Run a candidate, where it is run; returns `verified`, where there was time."""
    whole = plain_spec_of(task)
    if whole.running is not None and seconds_left() > 0:
        executor.serve(replace(whole, objectives=frozenset({_COUNT})))
        outcomes = [answer.outcome for answer in evaluate(executor, [candidate], deadline())]
        if any(isinstance(outcome, Measured) for outcome in outcomes):
            return {_CHECKED: list(executor.notes)}
    return {}


def _measured_parts(
    task: Task[IRProgram], candidate: Candidate, executor: Executor
) -> dict[str, Mapping[str, float]]:
    """Measure where the time goes: with the baseline, and with the candidate."""
    ends = {_BEFORE: baseline_of(task), _AFTER: candidate}
    both = list(dict.fromkeys(ends.values()))
    executor.serve(timed_spec_of(task, both))
    found = {each.candidate: each.outcome for each in evaluate(executor, both, deadline())}
    outcomes = ((name, found.get(each)) for name, each in ends.items())
    return {name: outcome.parts for name, outcome in outcomes if isinstance(outcome, Measured)}


def _functions(candidate: Candidate, analysis: Mapping[str, Any]) -> Mapping[str, str]:
    """Show where the time goes; nothing where that is not known, unless functions have lists of their own."""
    before, after = (analysis.get(name, {}) for name in (_BEFORE, _AFTER))
    if not before and not is_of_functions(candidate):
        return {}
    return {"functions": _aligned(list(function_rows(before, after, candidate)), texts=(0, 4))}


def _asked(leads: str) -> Sequence[str]:
    """List what is measured: what leads first, for the time may end."""
    return (leads, *(what for what in _SIZES if what != leads))


def _shorter(passes: Passes) -> list[Passes]:
    return [passes[:i] + passes[i + 1 :] for i in range(len(passes))]


def _measured(executor: Executor, lists: Sequence[Candidate], patience_s: float) -> Mapping[str, Any]:
    """Measure what each list leaves, as long as there is patience, and by the deadline in any case."""
    end = time.monotonic() + patience_s
    found: dict[str, Any] = {}
    for result in evaluate(executor, lists, deadline()):
        if not isinstance(result.outcome, Lost):
            found[result.candidate.hash] = outcome_to_json(result.outcome)
        if time.monotonic() > end:
            break
    return found


def _sizes(found: Mapping[str, Found], candidates: Mapping[str, Candidate]) -> str:
    columns = [what for what in _TITLES if what in found]
    rows = [["", *(_TITLES[what] for what in columns)]]
    rows += [
        [name, *(_count(found[what].get(each.hash), what) for what in columns)]
        for name, each in candidates.items()
    ]
    missing = any(_MISSING in row for row in rows)
    return _aligned(rows, texts=(0,)) + (f"\n{_WHY}" if missing else "")


def _contributions(found: Found, passes: Passes, what: str) -> str:
    """List the passes, with what the list leaves of the leading objective without each of them."""
    if not passes:
        return "none: the module stays as it is"
    whole, *shorter = (found.get(candidate_of(each).hash) for each in (passes, *_shorter(passes)))
    if not any(shorter):
        return "\n".join([*passes, _UNKNOWN])
    rows = [[f"{_TITLES[what].removeprefix('.')} without it", "", ""]]
    for name, rest in zip(passes, shorter, strict=True):
        more = ""
        if isinstance(rest, Measured) and isinstance(whole, Measured):
            more = _shown(rest.values[what] - whole.values[what], what, "+")
        rows.append([_count(rest, what), more, name])
    lines = [_aligned(rows, texts=(2,)), *([_NOISY] if what == _TIME else [])]
    # Equal code is timed once, so that its difference is 0.
    if what == _TIME and any(row[1] == _shown(0.0, _TIME, "+") for row in rows):
        lines.append(_IDLE)
    return "\n".join(lines)


def _verified(task: Task[IRProgram], analysis: Mapping[str, Any]) -> str:
    """Return how a candidate was verified."""
    program = task.program
    # Why its answer was not compared, empty where it was: known of the winner, and before of the whole run.
    notes: Sequence[str] | None = analysis.get(_CHECKED)
    if notes is None and NOTES in analysis:
        notes = [note for note in analysis[NOTES] if note.startswith(NOT_RUN)]
    if not program.can_run:
        return "by LLVM's verifier; it has no 'main' and is not run"
    if not is_run(task):
        return "by LLVM's verifier; it is not run: no objective needs it, and the option run was not given"
    args = shlex.join(program.running.args) if program.running else ""
    how = f"with {args}" if args else "without arguments"
    if notes:
        return "by LLVM's verifier; " + "; ".join(notes)
    # Where the time is asked for, what cannot be run is an error.
    was_run = notes is not None or any(each.name == _TIME for each in task.objectives)
    done = "it was" if was_run else "and, if it can be linked and two runs of it agree, it is"
    return (
        f"by LLVM's verifier; {done} run {how},\n"
        "and its exit code and output compared with the unoptimized program's;\n"
        f"programs are confined by {sandbox_status()}"
    )


def _count(outcome: Outcome | None, what: str) -> str:
    match outcome:
        case Measured(values) if what in values:
            return _shown(values[what], what)
        case Failed(stage, reason):
            return f"failed ({stage}: {reason})"
        case _:
            return _MISSING


def _shown(value: float, what: str, sign: str = "") -> str:
    return f"{value * 1e3:{sign},.3f} ms" if what == _TIME else f"{value:{sign},.0f}"


def _aligned(rows: Sequence[Sequence[str]], texts: Collection[int]) -> str:
    """Set columns under each other: texts at the left, numbers at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.ljust if index in texts else str.rjust for index in range(len(widths))]
    lines = ([side(cell, w) for side, cell, w in zip(sides, row, widths, strict=True)] for row in rows)
    return "\n".join("  ".join(line).rstrip() for line in lines)


_SHOWN = 20
_LIST = 70


def _measure_functions(
    task: Task[IRProgram], candidate: Candidate, executor: Executor
) -> dict[str, dict[str, Any]]:
    """Measure the functions of the unoptimized module, of the baseline's and of a candidate's.

    Returns:
        By what is counted, the hash of each candidate to its outcome as JSON; its parts are the functions
        that the baseline and the candidate do not make alike.
    """
    spec = replace(plain_spec_of(task, final=True), running=None, parts=True)
    ends = [candidate_of(baseline_passes(task)), candidate]
    found = dict[str, dict[Candidate, Outcome]]()
    changed = set[str]()
    for what in _asked(task.objectives[0].name):
        if seconds_left() == 0:
            break
        executor.serve(replace(spec, objectives=frozenset({what})))
        outcomes = evaluate(executor, [Candidate(), *ends], deadline())
        found[what] = {each.candidate: each.outcome for each in outcomes}
        before, after = (found[what].get(each) for each in ends)
        if isinstance(before, Measured) and isinstance(after, Measured):
            names = before.parts.keys() | after.parts.keys()
            changed |= {name for name in names if before.parts.get(name) != after.parts.get(name)}

    def kept(outcome: Outcome) -> Outcome:
        if not isinstance(outcome, Measured):
            return outcome
        return replace(outcome, parts={name: v for name, v in outcome.parts.items() if name in changed})

    return {
        what: {
            each.hash: outcome_to_json(kept(outcome))
            for each, outcome in outcomes.items()
            if not isinstance(outcome, Lost)
        }
        for what, outcomes in found.items()
    }


def _functions_table(task: Task[IRProgram], candidate: Candidate, analysis: Mapping[str, Any]) -> str:
    """List the functions that a candidate makes smaller or larger, the greatest gain first."""
    hashes = candidate_of(baseline_passes(task)).hash, candidate.hash
    parts = {what: [_parts(analysis, what, name) for name in hashes] for what in _SIZES}
    if None in parts[task.objectives[0].name]:
        return "(There was no time to measure them.)"
    plan, (before, after) = plan_of(candidate), (each or {} for each in parts[task.objectives[0].name])
    gains = [(name, before.get(name, 0), after.get(name, 0)) for name in {**before, **after}]
    gains = sorted((gain for gain in gains if gain[1] != gain[2]), key=lambda gain: gain[2] - gain[1])
    if not gains:
        return "all as the baseline makes them"
    rows = [["function", "baseline", "now", "saved", "passes"]]
    rows += [
        [name, f"{old:,.0f}", f"{new:,.0f}", f"{old - new:,.0f}", _list(plan, name, there=name in after)]
        for name, old, new in gains[:_SHOWN]
    ]
    lines = [_aligned(rows, texts=(0, 4))]
    if (more := len(gains) - _SHOWN) > 0:
        lines.append(f"... and {more:,} more, in the manifest of an export")
    # Of which one measure became less and the other more.
    pairs = [(each[0] or {}, each[1] or {}) for each in reversed(parts.values())]
    names = dict.fromkeys(name for pair in pairs for sizes in pair for name in sizes)
    changes = {name: [after.get(name, 0) - before.get(name, 0) for before, after in pairs] for name in names}
    if apart := [name for name, (one, other) in changes.items() if min(one, other) < 0 < max(one, other)]:
        listed = _cut(", ".join(apart))
        lines.append(
            f"In {len(apart):,} function{'s' * (len(apart) != 1)} instructions and bytes disagree: {listed}"
        )
    return "\n".join(lines)


def _parts(analysis: Mapping[str, Any], what: str, name: str) -> Mapping[str, float] | None:
    found = analysis.get(what, {}).get(name)
    outcome = outcome_from_json(found) if found else None
    return outcome.parts if isinstance(outcome, Measured) else None


def _list(plan: FunctionPlan, name: str, *, there: bool) -> str:
    if not there:
        return "(as its callers are)"
    pipeline = plan.list_of(name)
    with suppress(ProgramError):  # a pass that this planish does not know
        return _cut(", ".join(parse_pipeline(pipeline)))
    return _cut(pipeline)


def _cut(text: str) -> str:
    return text if len(text) <= _LIST else f"{text[: _LIST - 3]}..."
