"""Description of a selection."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from levels.graph.models import convolutions, write
from levels.graph.tasks import FixedExecutor
from planish.core import Candidate, Task
from planish.levels.graph.description import aligned, compared_selections, parts, relevance_text, times
from planish.levels.graph.level import GraphLevel
from planish.levels.graph.passes import Selection, selection
from planish.levels.graph.relevance import Relevance, remembered
from planish.levels.graph.space import settings_of
from planish.measure.executors import LocalExecutor
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

CHOSEN = selection(
    ["onnxscript.fuse_batchnorm_into_conv", "onnxscript.no_op_cast"], ["NchwcTransformer", "AttentionFusion"]
)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    level = GraphLevel()
    return task_of(level, level.load(str(write(convolutions(), tmp_path / "net.onnx")), {}), Settings())


def test_each_pass_is_reported_with_its_effects_and_what_it_changed(task: Task) -> None:
    values = {"latency": 2.0, "compile_time": 1.0, "model_size": 4e6}
    worse = {"latency": 3.0, "compile_time": 0.5, "model_size": 2e6}
    executor = FixedExecutor(lambda chosen: worse if chosen == Selection() else values)
    level = GraphLevel()
    shown = level.describe(task, CHOSEN.candidate, level.analyzer(task)(CHOSEN.candidate, executor))
    lines = shown["passes"].splitlines()
    assert lines[1].split() == [
        *("1.", "onnxscript.fuse_batchnorm_into_conv", "1.50x", "1.00x", "-1", "BatchNormalization"),
    ]
    assert lines[2].endswith("no change of counts")
    assert "without NchwcTransformer" in shown["passes"]
    assert "1.50x" in shown["compared"]
    assert "-100 %" in shown["compared"]
    table = shown["nodes"].splitlines()
    assert table[1].split()[:3] == ["all", "11", "10"]
    assert any(line.split()[:2] == ["BatchNormalization", "1"] for line in table)


def test_what_is_shown_at_the_end_of_a_run_is_reported_and_of_a_front_the_passes_too(task: Task) -> None:
    one = GraphLevel().describe(task, CHOSEN.candidate)
    assert [title for title in one if title in GraphLevel.summary_sections] == [*GraphLevel.summary_sections]
    both = tuple(GraphLevel.objectives[name] for name in ("latency", "model_size"))
    several = GraphLevel().describe(replace(task, objectives=both), CHOSEN.candidate)
    assert next(iter(several.values())) == f"{one['class']}\n\n{one['passes']}"


def test_fewer_rounds_than_usual_are_reported(task: Task) -> None:
    def compared(rounds: int) -> str:
        values = {"latency": 2.0, "compile_time": 1.0, "model_size": 4e6, "rounds": rounds}
        selections = compared_selections(task.program, CHOSEN).values()
        analysis = {"compared": {each.candidate.hash: values for each in selections}}
        return GraphLevel().describe(task, CHOSEN.candidate, analysis)["compared"]

    assert "rounds" not in compared(3)
    assert compared(1).endswith("Medians of 1 of 3 rounds: there was no time for more.")


def test_steps_that_cannot_matter_are_not_measured() -> None:
    found = parts(CHOSEN, {"NchwcTransformer"})
    assert list(found) == [
        "1. onnxscript.fuse_batchnorm_into_conv",
        "2. onnxscript.no_op_cast",
        "4. without NchwcTransformer",
    ]
    alone, rest = found["4. without NchwcTransformer"]
    assert alone == selection(disabled=["NchwcTransformer"])
    assert rest == selection(CHOSEN.rewrites, ["AttentionFusion"])


@pytest.mark.slow
def test_effects_are_measured_and_reported_where_no_process_may_start(
    task: Task, request: pytest.FixtureRequest
) -> None:
    level = GraphLevel()
    with LocalExecutor(level.evaluator(task)) as executor:
        analysis = json.loads(json.dumps(level.analyzer(task)(CHOSEN.candidate, executor)))
    assert all(values["latency"] > 0 for values in analysis["compared"].values())
    request.getfixturevalue("no_process")
    shown = level.describe(task, CHOSEN.candidate, analysis)
    assert "not measured" not in shown["compared"] + shown["passes"] + shown["nodes"]
    without = level.describe(task, CHOSEN.candidate)
    assert all("not measured when the run ended" in without[each] for each in ("compared", "passes", "nodes"))


def test_what_is_not_known_is_not_made_up() -> None:
    assert times(None, {"latency": 1.0}) == "-"
    assert aligned([["", "a"], ["long", "1"]], texts=(0,)).splitlines() == ["      a", "long  1"]


def test_the_unchanged_file_is_reported_as_such(task: Task) -> None:
    shown = GraphLevel().describe(task, Candidate())
    assert shown["passes"].startswith("none: the file stays as it is")
    assert shown["compared"].startswith("not measured")
    assert shown["relevance"].startswith("not analyzed yet")


def test_pruning_is_reported_in_full() -> None:
    known = Relevance(("a",), {"b": "a"}, {"c": "crashed"}, ("d",), ("e", "f"), ("g",), 3, 4, 1.0)
    text = relevance_text(known)
    assert text.splitlines() == [
        "4 of 7 passes change this model, or may: the others left the space.",
        "alone: a",
        "after others: b (after a)",
        "of ONNX Runtime: d",
        "failing: c (crashed)",
        "There was no time for 1 passes and 4 pairs of passes.",
    ]


@pytest.mark.usefixtures("no_process")  # relevance is analyzed by a worker process
def test_a_run_begins_with_the_class_and_what_is_known_to_matter(task: Task) -> None:
    level = GraphLevel()
    first = level.summary(task)
    assert [line.partition(";")[0] for line in first] == [
        "class: ResNet-like: 1 residual additions around ordinary convolutions"
    ]
    known = Relevance(("a",), {"b": "a"}, {"c": "crashed"}, ("d",), ("e", "f"))
    remembered(task.program, settings_of(task), lambda: known)
    assert level.summary(task) == [*first, "relevant passes: 3 of 6"]
