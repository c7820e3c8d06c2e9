"""Measuring what the parts of a selection do, once a search is over: bounded by time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from planish.core import Candidate, Executor, Measured, Task, evaluate
from planish.graph.evaluator_spec import evaluator_spec_of, settings_of, unoptimised, widest_settings
from planish.graph.first_lists import class_lists
from planish.graph.installed import OPENVINO
from planish.graph.nodes_by_type import Nodes
from planish.graph.passes import Disable, Offline, Selection, selection_of
from planish.graph.program import GraphProgram
from planish.graph.relevance import Examiner, known_relevance
from planish.measure import deadline, seconds_left

PATIENCE_S = 10.0
"""Seconds after which what is not yet measured stays unmeasured."""
ROUNDS = 3

Figures = Mapping[str, Mapping[str, float]]
"""What was measured of a selection, by its hash and by objective; what failed is missing."""


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


def beside(program: GraphProgram, chosen: Selection) -> Mapping[str, Selection]:
    """Name what a selection is compared with, and itself."""
    if program.settings.get("provider") == OPENVINO:
        return {defaults_of(program): Selection(), "this selection": chosen}
    lists = [each.leaving_out(program.without) for each in class_lists(program)[:1]]
    return {
        defaults_of(program): program.baseline,
        "no optimisation": unoptimised(),
        **({"its class's list": lists[0]} if lists else {}),
        "this selection": chosen,
        **({} if chosen.elsewhere else {"this selection, offline": replace(chosen, offline=True)}),
    }


def defaults_of(program: GraphProgram) -> str:
    """Name what a program's baseline runs under."""
    if program.settings.get("provider") == OPENVINO:
        return "OpenVINO's defaults"
    return " without ".join(["ONNX Runtime's defaults", *filter(None, [", ".join(program.without)])])


def name_of(selection: Selection) -> str:
    """Give the name of a selection among figures."""
    return selection.candidate.hash


def figures_of(task: Task[GraphProgram], candidate: Candidate, executor: Executor) -> Mapping[str, Any]:
    """Measure what is told of a selection; see `planish.core.HasFigures`.

    Returns:
        `compared` and `parts`: by the hash of a selection, medians of `latency`, `compile_time` and
        `model_size`, and of how many `turns` they are; `nodes`: see `planish.graph.nodes_by_type`.
    """
    program, chosen = task.program, selection_of(candidate)
    known = known_relevance(program, widest_settings(task))
    steps = parts(chosen, known.runtime if known else chosen.disabled)
    executor.serve(replace(evaluator_spec_of(task, final=True), objectives=frozenset({"latency"})))
    compared = list(dict.fromkeys([program.baseline, *beside(program, chosen).values()]))
    alone = [each for pair in steps.values() for each in pair if each not in compared]
    figures: dict[str, Any] = {"compared": measured(executor, compared)}
    figures["parts"] = measured(executor, [program.baseline, chosen, *alone]) if alone else {}
    with closing(Examiner(program, settings_of(task).of_onnxruntime)) as examiner:
        figures["nodes"] = Nodes.count(examiner, chosen).to_json()
    return figures


def measured(executor: Executor, selections: Sequence[Selection], patience_s: float = PATIENCE_S) -> Figures:
    """Measure selections in turns, as often as there is time; what failed once is not measured again.

    Args:
        executor: evaluates selections of a model.
        selections: the most telling first.
        patience_s: seconds for all, or until the deadline.
    """
    end = time.monotonic() + seconds_left(patience_s)
    samples: dict[Candidate, list[Mapping[str, float]]] = {
        each.candidate: [] for each in dict.fromkeys(selections)
    }
    # In turns and not one after the other, so that drift of the machine meets all alike.
    for _ in range(ROUNDS):
        batch = list(samples)
        for answer in evaluate(executor, batch, deadline()):
            if isinstance(answer.outcome, Measured):
                samples[batch[answer.position]].append(answer.outcome.values)
            if time.monotonic() > end:
                return _medians(samples)
        # What has no sample by now failed: it would fail in the next turn, too.
        samples = {each: several for each, several in samples.items() if several}
    return _medians(samples)


def _medians(samples: Mapping[Candidate, Sequence[Mapping[str, float]]]) -> Figures:
    names = ("latency", "compile_time", "model_size")
    return {
        each.hash: {
            **{name: statistics.median(values[name] for values in several) for name in names},
            "turns": len(several),
        }
        for each, several in samples.items()
        if several
    }
