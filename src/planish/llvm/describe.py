"""What a pass list does to a module: sizes before and after, what each pass contributes, how to repeat it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from planish.core import Candidate, Failed, Measured, Outcome, Task, evaluate
from planish.executors import LocalExecutor
from planish.isolation.cage import told
from planish.llvm.commands import commands
from planish.llvm.evaluator_spec import baseline_passes, evaluator_spec_of, is_run
from planish.llvm.passes import candidate_of, passes_of
from planish.llvm.program import ir_program
from planish.measure import deadline, seconds_left

PATIENCE_S = 10.0
"""Seconds after which passes that are not yet left out one by one stay unmeasured."""
_ENDS = 3  # unoptimised, the baseline, the candidate

_WHAT = (_COUNT, _BYTES) = ("instructions", "text_bytes")

_LATE = "(The time for the end of the run was over: 'planish show' measures what is missing.)"

Passes = tuple[str, ...]
Found = Mapping[Passes, Outcome]


def described(task: Task, candidate: Candidate) -> Mapping[str, str]:
    """Show what a candidate does: `size`, `passes`, `verified` and `repeat`.

    It is measured in a worker: to leave a pass out may crash LLVM.

    Args:
        task: the module and the objectives.
        candidate: the pass list.
    """
    passes, base = passes_of(candidate), baseline_passes(task)
    shorter = [passes[:i] + passes[i + 1 :] for i in range(len(passes))]
    leads = _BYTES if task.objectives[0].name == _BYTES else _COUNT
    spec = replace(evaluator_spec_of(task), running=None, objectives=frozenset({_COUNT}))
    found: dict[str, Found] = {what: {} for what in _WHAT}
    if seconds_left() == 0:  # a worker would only be started to be ended
        return _told(task, found, passes, shorter, leads)
    with closing(LocalExecutor(spec)) as executor:
        for what in _WHAT:
            executor.serve(replace(spec, objectives=frozenset({what})))
            lists = [(), base, passes, *(shorter if what == leads else ())]
            found[what] = _measured(executor, list(dict.fromkeys(lists)))
    return _told(task, found, passes, shorter, leads)


def _told(
    task: Task, found: Mapping[str, Found], passes: Passes, shorter: Sequence[Passes], leads: str
) -> Mapping[str, str]:
    return {
        "size": _sizes(found, baseline_passes(task), passes),
        "passes": _contributions(found[leads], passes, shorter, leads),
        "verified": _verified(task),
        "repeat": commands(task, passes),
    }


def _measured(executor: LocalExecutor, lists: Sequence[Passes]) -> Found:
    """Measure what each list leaves, as long as there is patience, and by the deadline in any case."""
    end = time.monotonic() + seconds_left(PATIENCE_S)
    found: dict[Passes, Outcome] = {}
    for answer in evaluate(executor, [candidate_of(passes) for passes in lists], deadline()):
        found[lists[answer.position]] = answer.outcome
        if time.monotonic() > end and len(found) >= _ENDS:
            break
    return found


def _sizes(found: Mapping[str, Found], base: Passes, passes: Passes) -> str:
    rows = [["", "instructions", ".text bytes"]]
    rows += [
        [name, *(_count(found[what].get(each), what) for what in _WHAT)]
        for name, each in (("unoptimised", ()), (", ".join(base), base), ("this pass list", passes))
    ]
    late = f"\n{_LATE}" if seconds_left() == 0 else ""
    return _aligned(rows, texts=(0,)) + late


def _contributions(found: Found, passes: Passes, shorter: Sequence[Passes], what: str) -> str:
    """List the passes, with the leading size that the list leaves without each of them."""
    if not passes:
        return "none: the module stays as it is"
    whole = _value(found.get(passes), what)
    rows = [[f"{what.replace('_', ' ')} without it", "", ""]]
    for name, rest in zip(passes, shorter, strict=True):
        value = _value(found.get(rest), what)
        more = "" if value is None or whole is None else f"{value - whole:+,.0f}"
        rows.append([_count(found.get(rest), what), more, name])
    return _aligned(rows, texts=(2,))


def _verified(task: Task) -> str:
    program = ir_program(task.program)
    if not program.can_run:
        return "by LLVM's verifier; it has no 'main' and is not run"
    if not is_run(task):
        return "by LLVM's verifier; it is not run: no objective needs it, and nobody asked for it by --run"
    args = shlex.join(program.running.args) if program.running else ""
    how = f"with {args}" if args else "without arguments"
    return (
        "by LLVM's verifier; and, if it can be linked and two runs of it agree,\n"
        f"by its exit code and output beside the unoptimised program's: it is run {how},\n"
        f"confined by {told()}"
    )


def _value(outcome: Outcome | None, what: str) -> float | None:
    return outcome.values.get(what) if isinstance(outcome, Measured) else None


def _count(outcome: Outcome | None, what: str) -> str:
    match outcome:
        case Measured(values) if what in values:
            return f"{values[what]:,.0f}"
        case Failed(stage, reason):
            return f"failed ({stage}: {reason})"
        case _:
            return "not measured"


def _aligned(rows: Sequence[Sequence[str]], texts: Collection[int]) -> str:
    """Set columns under each other: texts at the left, numbers at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.ljust if place in texts else str.rjust for place in range(len(widths))]
    lines = ([side(cell, w) for side, cell, w in zip(sides, row, widths, strict=True)] for row in rows)
    return "\n".join("  ".join(line).rstrip() for line in lines)
