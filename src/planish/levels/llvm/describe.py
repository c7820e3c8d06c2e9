"""Description and export of a result, also of programs whose hot functions have lists of their own.

The description has the sizes before and after, what each pass contributes, and how to repeat the list; the
export has what is needed to do so without planish.
"""

from __future__ import annotations

import math
import shlex
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from planish.core import (
    NOTES,
    Candidate,
    Executor,
    Failed,
    Lost,
    Measured,
    Outcome,
    PlanishError,
    ProgramError,
    Task,
    evaluate,
    outcome_from_json,
    outcome_to_json,
)
from planish.levels.llvm.backend import open_backend
from planish.levels.llvm.evaluator import NOT_RUN
from planish.levels.llvm.function_steps import FunctionPlan, is_of_functions, plan_of
from planish.levels.llvm.hot.lists import USUAL, passes_within
from planish.levels.llvm.hot.programs import ProgramBuild, ProgramBuilder, function_lists
from planish.levels.llvm.modules.export import (
    BegunNames,
    begun_names,
    export_functions,
    write_module,
    write_script,
)
from planish.levels.llvm.modules.transform import ModuleRecipe, survived
from planish.levels.llvm.passes import candidate_of, parse_pipeline, passes_of, print_pipeline
from planish.levels.llvm.passes.pipeline import OBJECT, OPTIMISED, PREPARED, commands
from planish.levels.llvm.program import IRProgram
from planish.levels.llvm.task_setup import (
    baseline_of,
    baseline_passes,
    is_run,
    plain_spec_of,
    prepared,
    timed_spec_of,
)
from planish.measure import deadline, seconds_left
from planish.sandbox import ExitStatus
from planish.sandbox.confinement import sandbox_status
from planish.sandbox.fork_pool import ForkLimits, in_child

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


@dataclass(frozen=True)
class _Exported:
    build: ProgramBuild
    text: str
    recipe: ModuleRecipe
    names: BegunNames


def export_program(ir: str, backend: str, candidate: Candidate, folder: Path) -> Sequence[Path]:
    """Write a module before and after, its bitcode and object, a manifest, and a script that repeats it.

    Returns:
        The files.

    Raises:
        PlanishError: LLVM refuses a list, or does not survive it.
        OSError: a file cannot be written.
    """
    made = survived(partial(_exported, ir, backend, candidate), _Exported)
    folder.mkdir(parents=True, exist_ok=True)
    write_script(made.recipe, made.names, folder)
    lists = {name: step.pipeline for step in function_lists(candidate) for name in step.functions}
    manifest = {"llvm": open_backend(backend).version, "functions": lists, "recipe": asdict(made.recipe)}
    return write_module(folder, ir, made.text, made.build.bitcode, made.build.code, manifest)


def _exported(ir: str, backend: str, candidate: Candidate) -> _Exported:
    builder = ProgramBuilder(ir, open_backend(backend))
    build, recipe = builder.build(candidate), builder.recipe(candidate)
    with closing(open_backend(backend).parse(build.bitcode)) as module:
        return _Exported(build, module.text(), recipe, begun_names(ir, recipe))


PATIENCE_S = 10.0
"""Seconds after which passes that are not yet left out one by one stay unmeasured."""

_SIZES = (_COUNT, _BYTES) = ("instructions", "text_bytes")
_TIME = "time_s"
_TITLES = {_COUNT: "instructions", _BYTES: ".text bytes", _TIME: "time"}
_CHECKED = "verified"
_BEFORE, _AFTER = "seconds by function, baseline", "seconds by function"
_REPEAT = "'planish export' writes prepared.ll and repeat.sh, by which LLVM's opt and llc alone make it again"

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
    base, leads = baseline_passes(task), _leading(task)
    if leads == _TIME and (is_of_functions(candidate) or task.program.linked):
        return {
            **_functions(candidate, analysis),
            "verified": _verified(task, _checked(analysis)),
            "repeat": _REPEAT,
        }
    found = {
        what: {name: outcome_from_json(each) for name, each in analysis.get(what, {}).items()}
        for what in _asked(leads)
    }
    ends = {"unoptimised": Candidate(), ", ".join(base): candidate_of(base)}
    if is_of_functions(candidate):
        return {
            "functions": _functions_table(task, candidate, analysis),
            "size": _sizes(found, {**ends, "lists of functions": candidate}),
            "verified": _verified(task, _checked(analysis)),
            "repeat": _REPEAT,
        }
    passes = passes_of(candidate)
    return {
        **_functions(candidate, analysis),
        "size": _sizes(found, {**ends, "this pass list": candidate}),
        "passes": _contributions(found[leads], passes, leads),
        "verified": _verified(task, _checked(analysis)),
        "repeat": commands(task, passes),
    }


def measured(task: Task[IRProgram], candidate: Candidate, executor: Executor) -> Mapping[str, Any]:
    """Measure what `described` shows, in workers: to leave a pass out may crash LLVM.

    Returns:
        By what is counted, the hash of each pass list to its outcome as JSON; and `verified`, where
        candidates are run: whether the answer was compared, and else why not.
    """
    leads = _leading(task)
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
        # Each once: the baseline may be the candidate, and leaving out one of two equal passes gives equal
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


def _leading(task: Task[IRProgram]) -> str:
    return task.objectives[0].name


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


def _of(found: Found, passes: Passes) -> Outcome | None:
    return found.get(candidate_of(passes).hash)


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
    whole = _value(_of(found, passes), what)
    if not any(_of(found, rest) for rest in _shorter(passes)):
        return "\n".join([*passes, _UNKNOWN])
    rows = [[f"{_TITLES[what].removeprefix('.')} without it", "", ""]]
    for name, rest in zip(passes, _shorter(passes), strict=True):
        value = _value(_of(found, rest), what)
        more = "" if value is None or whole is None else _shown(value - whole, what, "+")
        rows.append([_count(_of(found, rest), what), more, name])
    lines = [_aligned(rows, texts=(2,)), *([_NOISY] if what == _TIME else [])]
    # Equal code is timed once, so that its difference is 0.
    if what == _TIME and any(row[1] == _shown(0.0, _TIME, "+") for row in rows):
        lines.append(_IDLE)
    return "\n".join(lines)


def _checked(analysis: Mapping[str, Any]) -> Sequence[str] | None:
    """Return why the answer was not compared: it is known of the winner, and before that of the whole run."""
    if _CHECKED in analysis or NOTES not in analysis:
        return analysis.get(_CHECKED)
    return [note for note in analysis[NOTES] if note.startswith(NOT_RUN)]


def _verified(task: Task[IRProgram], notes: Sequence[str] | None) -> str:
    """Return what was done to verify a candidate.

    Args:
        task: the module and the objectives.
        notes: why its answer was not compared, empty where it was; None where it is not known.
    """
    program = task.program
    if not program.can_run:
        return "by LLVM's verifier; it has no 'main' and is not run"
    if not is_run(task):
        return "by LLVM's verifier; it is not run: no objective needs it, and --run was not given"
    args = shlex.join(program.running.args) if program.running else ""
    how = f"with {args}" if args else "without arguments"
    if notes:
        return "by LLVM's verifier; " + "; ".join(notes)
    # Where the time is asked for, what cannot be run is an error.
    was_run = notes is not None or any(each.name == _TIME for each in task.objectives)
    done = "it was" if was_run else "and, if it can be linked and two runs of it agree, it is"
    return (
        f"by LLVM's verifier; {done} run {how},\n"
        "and its exit code and output compared with the unoptimised program's;\n"
        f"programs are confined by {sandbox_status()}"
    )


def _value(outcome: Outcome | None, what: str) -> float | None:
    return outcome.values.get(what) if isinstance(outcome, Measured) else None


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
    """Measure the functions of the unoptimised module, of the baseline's and of a candidate's.

    Returns:
        By what is counted, the hash of each candidate to its outcome as JSON; its parts are the functions
        that the baseline and the candidate do not make alike.
    """
    spec = replace(plain_spec_of(task, final=True), running=None, parts=True)
    ends = [candidate_of(baseline_passes(task)), candidate]
    found = dict[str, dict[Candidate, Outcome]]()
    changed = set[str]()
    for what in _asked(_leading(task)):
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
    if None in parts[_leading(task)]:
        return "(There was no time to measure them.)"
    plan, (before, after) = plan_of(candidate), (each or {} for each in parts[_leading(task)])
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


_LIMITS = ForkLimits(seconds=60.0)
PIPELINE, READ_ME = "pipeline.txt", "README.txt"


def export_module(task: Task[IRProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
    """Write the module before and after, its object, the pipeline, and how to repeat it.

    Returns:
        The files.

    Raises:
        PlanishError: LLVM refuses the list, or crashes.
        OSError: a file cannot be written.
    """
    if is_of_functions(candidate) and _leading(task) != _TIME:
        return export_functions(prepared(task), plan_of(candidate), _leading(task), path)
    if is_of_functions(candidate):
        return export_program(prepared(task), task.target.toolchain["backend"], candidate, path)
    path.mkdir(parents=True, exist_ok=True)
    before, passes = prepared(task), passes_of(candidate)
    (path / PREPARED).write_text(before, encoding="utf-8", errors="surrogateescape")
    (path / PIPELINE).write_text(print_pipeline(passes) + "\n")
    (path / READ_ME).write_text(
        f"""{PREPARED}   the module that the passes start from
{OPTIMISED}  the module that they make
{OBJECT}    the same, compiled
{PIPELINE}   the passes, as opt takes them

To repeat it:

{commands(task, passes)}
"""
    )
    made = partial(_made, before, task.target.toolchain["backend"], print_pipeline(passes))
    try:
        found = in_child(made, tuple[str, bytes], _LIMITS)  # LLVM may crash
    except PlanishError as error:
        raise PlanishError(f"cannot make {path / OPTIMISED}: {error.message}") from error
    if isinstance(found, ExitStatus):
        raise PlanishError(f"cannot make {path / OPTIMISED}: {found.detail}")
    text, code = found
    (path / OPTIMISED).write_text(text, encoding="utf-8", errors="surrogateescape")
    (path / OBJECT).write_bytes(code)
    return [path / name for name in (PREPARED, OPTIMISED, OBJECT, PIPELINE, READ_ME)]


def _made(ir: str, backend: str, pipeline: str) -> tuple[str, bytes]:
    """Run the passes; return the module's text and its object."""
    with closing(open_backend(backend).parse(ir, PREPARED)) as module:
        module.run(pipeline)
        return module.text(), module.object_code()
