"""Measuring what the parts of a selection do, once a search is over: bounded, and kept."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from planish.core import Candidate, Measured, Task, cache_folder, content_hash, evaluate
from planish.executors import LocalExecutor
from planish.graph.evaluator_spec import evaluator_spec_of
from planish.graph.machine import this_machine
from planish.graph.passes import Disable, Offline, Selection, selection_of
from planish.measure import deadline, seconds_left

PATIENCE_S = 10.0
"""Seconds after which what is not yet measured stays unmeasured."""
ROUNDS = 3

Values = Mapping[str, float]
Found = Mapping[Selection, Values]
"""What was measured of a selection, by objective; what failed is missing."""


def parts(chosen: Selection, matter: Collection[str]) -> Mapping[str, tuple[Selection, Selection]]:
    """List the steps of a selection: its text to the step alone, and to the selection without it.

    Args:
        chosen: the selection.
        matter: passes of the runtime that matter; leaving out another one does nothing.
    """
    found: dict[str, tuple[Selection, Selection]] = {}
    steps = chosen.candidate.steps
    for place, step in enumerate(steps):
        if not isinstance(step, Disable | Offline) or (isinstance(step, Disable) and step.name in matter):
            rest = Candidate(steps[:place] + steps[place + 1 :])
            found[f"{place + 1}. {step}"] = (selection_of(Candidate((step,))), selection_of(rest))
    return found


def measured(task: Task, selections: Sequence[Selection], patience_s: float = PATIENCE_S) -> Found:
    """Measure selections in turns, as often as there is time, or take what was measured before.

    Args:
        task: the model.
        selections: the most telling first.
        patience_s: seconds for all, or until the deadline.

    Returns:
        Medians of `latency`, `compile_time` and `model_size`, and of how many `turns` they are; nothing on
        another machine than the task's, or beyond the deadline.
    """
    wanted = list(dict.fromkeys(selections))
    file = _file(task, wanted)
    if file.exists():
        rows = json.loads(file.read_text(encoding="utf-8"))
        return {each: row for each, row in zip(wanted, rows, strict=True) if row}
    if seconds_left() == 0 or this_machine(task.target.cores, _session(task)) != task.target:
        return {}
    patient = seconds_left(patience_s) >= patience_s
    found = _measure(task, wanted, seconds_left(patience_s))
    if not patient:  # another time may have more of it
        return found
    file.write_text(json.dumps([found.get(each, {}) for each in wanted]), encoding="utf-8")
    return found


def _measure(task: Task, wanted: Sequence[Selection], patience_s: float) -> Found:
    """Measure in turns while there is time; what failed once is not measured again."""
    end = time.monotonic() + patience_s
    samples: dict[Selection, list[Values]] = {each: [] for each in wanted}
    spec = replace(evaluator_spec_of(task, final=True), objectives=frozenset({"latency"}))
    with closing(LocalExecutor(spec)) as workers:
        for _ in range(ROUNDS):
            batch = list(samples)
            for answer in evaluate(workers, [each.candidate for each in batch], deadline()):
                if isinstance(answer.outcome, Measured):
                    samples[batch[answer.position]].append(answer.outcome.values)
                if time.monotonic() > end:
                    return _medians(samples)
            samples = {each: several for each, several in samples.items() if several}
    return _medians(samples)


def _medians(samples: Mapping[Selection, Sequence[Values]]) -> Found:
    names = ("latency", "compile_time", "model_size")
    return {
        each: {
            **{name: statistics.median(values[name] for values in several) for name in names},
            "turns": len(several),
        }
        for each, several in samples.items()
        if several
    }


def _session(task: Task) -> Mapping[str, str]:
    from planish.graph.installed import SETTINGS

    return {name: task.target.toolchain[name] for name in SETTINGS if name in task.target.toolchain}


def _file(task: Task, selections: Sequence[Selection]) -> Path:
    name = content_hash("\n".join([task.key, *(each.candidate.text for each in selections)]))
    return cache_folder("graph") / f"effects-{name}.json"
