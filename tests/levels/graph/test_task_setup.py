"""Selections that make the same, and models on which the defaults of ONNX Runtime answer wrongly."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from levels.graph.models import constant, convolutions, model, write
from levels.graph.tasks import make
from planish.core import Candidate, EvaluatorSpec, Task
from planish.core.hashing import SCHEMA_VERSION
from planish.levels.graph.level import GraphLevel
from planish.levels.graph.passes import Disable, Selection, selection, selection_of
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.space import SelectionSpace
from planish.levels.graph.task_setup import fewest, without_failing_passes
from planish.measure.executors import InlineExecutor
from planish.store import open_store
from planish.tuning.ablation import prune
from planish.tuning.api import task_of, tune_program
from planish.tuning.comparison import Finalist
from planish.tuning.final_state import FinalState, SearchOutcome
from planish.tuning.recorder import Progress, Trials
from planish.tuning.settings import Budget, Settings

FOLD, IDLE = "onnxscript.fuse_batchnorm_into_conv", "onnxscript.no_op_cast"


def unstarted(spec: EvaluatorSpec, **_: object) -> InlineExecutor:
    pytest.fail(f"{spec} is not to be started")


@pytest.mark.parametrize(("objective", "same"), [("latency", True), ("compile_time", False)])
def test_what_the_runtime_would_do_itself_counts_only_for_objectives_of_files(
    tmp_path: Path, objective: str, same: bool
) -> None:
    folded, without = selection([FOLD]).candidate, selection((), ["AttentionFusion"]).candidate
    with GraphLevel().identities(make(tmp_path, objective)) as name:
        assert (name(folded) == name(Candidate())) is same
        assert (name(without) == name(Candidate())) is same
        assert name(selection([IDLE]).candidate) == name(Candidate())
        assert name(selection(offline=True).candidate) != name(Candidate())
        assert name(selection((), ["NchwcTransformer"]).candidate) != name(Candidate())


def test_winners_lose_what_does_nothing(tmp_path: Path) -> None:
    task = make(tmp_path, "latency")
    winner = Selection((IDLE, FOLD), frozenset({"AttentionFusion", "NchwcTransformer"}))
    with open_store(tmp_path / "store.db") as store:
        progress, tried = Progress(task, "run"), Trials(store, "run", GraphLevel().steps)
        search = SearchOutcome(
            GraphLevel(), task, Settings(), store, progress, tried, {}, 100.0, stopped=False, start=unstarted
        )
        finalists = tuple(Finalist(candidate=each) for each in (winner.candidate, Candidate()))
        left = prune(search, FinalState(finalists), math.inf).finalists
    assert [each.candidate for each in left] == [selection((), ["NchwcTransformer"]).candidate, Candidate()]


def padded(folder: Path) -> Path:
    """Write a padding with 0 before a maximum: fused, as if it were with the least number."""
    nodes = [
        helper.make_node("Pad", ["x", "p"], ["q"]),
        helper.make_node("MaxPool", ["q"], ["y"], kernel_shape=[3, 3], strides=[2, 2]),
    ]
    return write(
        model(nodes, [constant("p", np.array([0, 0, 1, 1, 0, 0, 1, 1]))], (1, 1, 6, 6)), folder / "p.onnx"
    )


@pytest.mark.parametrize("needed", [["j"], ["a"], ["b", "i"], []])
def test_the_fewest_names_that_are_enough_are_found(needed: list[str]) -> None:
    tries: list[Sequence[str]] = []

    def is_enough(names: Sequence[str]) -> bool:
        tries.append(names)
        return set(needed) <= set(names)

    assert fewest("abcdefghij", is_enough) == needed
    assert len(tries) < 20


def tasked(file: Path) -> tuple[GraphLevel, Task[GraphProgram]]:
    level = GraphLevel()
    return level, task_of(level, level.load(str(file), {}), Settings())


def test_a_search_leaves_out_the_pass_that_makes_the_defaults_wrong(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:
        level, task = tasked(padded(tmp_path))
        result = tune_program(level, task.program, budget=Budget(trials=2), store=store, compares=False)
        wrong, right = sorted(store.runs(), key=lambda run: run.started)
        assert (wrong.status, right.id) == ("failed", result.run.id)
        trials = store.trials(result.task.key, result.level.steps)
    assert result.task.program.without == ("Pad_Fusion",)
    assert all(Disable("Pad_Fusion") in trial.candidate.steps for trial in trials)
    assert any("defaults answer wrongly on this model: Pad_Fusion" in note for note in result.notes)
    program = result.task.program
    assert GraphLevel().load(program.text, {}) == program
    assert "without Pad_Fusion" in GraphLevel().describe(result.task, program.baseline.candidate)["passes"]
    result.level.export(result.task, program.baseline.candidate, tmp_path / "out")
    facts = json.loads((tmp_path / "out" / "p.planish.json").read_text())
    assert facts["schema_version"] == SCHEMA_VERSION
    assert facts["disabled_optimizers"] == ["Pad_Fusion"]


class Counting(InlineExecutor):
    """Counts the candidates that it is given."""

    count = 0

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        self.count += len(candidates)
        super().submit(candidates, deadline)


def test_what_was_found_once_is_tried_first(tmp_path: Path) -> None:
    level, task = tasked(padded(tmp_path))
    first, again, other = (Counting(level.evaluator(task)()) for _ in range(3))
    found = without_failing_passes(task, first)
    assert found is not None
    assert found.without == ("Pad_Fusion",)
    assert first.count > 5
    assert without_failing_passes(task, again) == found
    assert again.count == 1
    looser = replace(task, program=replace(task.program, tolerance=0.5))
    without_failing_passes(looser, other)
    assert other.count > 1, "another tolerance may have other failing passes"


def test_the_space_leaves_it_out_of_every_selection(tmp_path: Path) -> None:
    level, task = tasked(padded(tmp_path))
    space = level.space(replace(task, program=replace(task.program, without=("Pad_Fusion",))), "all")
    assert isinstance(space, SelectionSpace)
    rng = np.random.default_rng(0)
    drawn = [space.start(), *space.seeds(), *(space.sample(rng) for _ in range(20))]
    drawn += [space.mutate(each, rng) for each in drawn for _ in range(3)]
    drawn += [child for one, other in pairwise(drawn) for child in space.crossover(one, other, rng)]
    assert all("Pad_Fusion" in selection_of(each).disabled for each in drawn)


def test_the_best_of_a_search_that_was_not_compared_is_not_exported(tmp_path: Path) -> None:
    level = GraphLevel()
    program = level.load(str(write(convolutions(), tmp_path / "net.onnx")), {})
    with open_store(tmp_path / "store.db") as store:
        result = tune_program(level, program, budget=Budget(trials=4), store=store, compares=False)
    assert not result.finalists
    assert result.exported == Candidate()
