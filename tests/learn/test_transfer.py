"""What the store knows of other programs comes to searchers, and what a level learns of it comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from planish.core import EMPTY_CONTEXT, Candidate, CanSeed, Measured, Outcome, Trial
from planish.levels.registry import load_program
from planish.models import transfer
from planish.models.transfer import context_of, tried_elsewhere
from planish.search import make_searcher
from planish.store import open_store
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

pytest.importorskip("onnxruntime", reason="the level graph is not installed")

SMALL = Path(__file__).parents[1] / "levels" / "graph" / "small"


def test_a_search_begins_with_what_helped_other_models_and_not_with_what_changes_results(
    tmp_path: Path,
) -> None:
    from planish.levels.graph.passes import selection

    level, other = load_program(str(SMALL / "resnet50-small-dynamo-raw.onnx"), "graph", {})
    level, own = load_program(str(SMALL / "resnet50-small-torchscript.onnx"), "graph", {})
    good, intended = (selection([name]).candidate for name in ("onnxscript.fold_constants", "intent.fp16"))
    outcomes: list[tuple[Candidate, Outcome]] = [
        (Candidate(), Measured({"latency": 1.0})),
        (good, Measured({"latency": 0.25})),
        (intended, Measured({"latency": 0.1})),
    ]
    task = task_of(level, own, Settings("graph"))
    with open_store(tmp_path / "store.db") as store:
        there = task_of(level, other, Settings("graph"))
        run = store.begin_run(there, searcher="random", space="all", seed=0, options={}, versions={})
        store.add_trials(run, [Trial(c, outcome, i) for i, (c, outcome) in enumerate(outcomes)])
        expected = [(Candidate(), 1.0), (good, 0.25), (intended, 0.1)]
        assert tried_elsewhere(store, level, task) == {other.text: expected}
        context, untaught = context_of(store, level, task), context_of(store, level, there)
        assert context.history() == {other.text: expected}
        assert untaught.history() == {}
    space = level.space(task, "all")
    assert isinstance(space, CanSeed)
    seeds = space.seeds(context)
    assert list(seeds[:2]) == [Candidate(), good]
    assert intended not in seeds
    assert set(space.seeds()) == set(space.seeds(untaught)) == set(seeds) - {good}, "the space keeps nothing"
    for name in ("portfolio", "genetic"):
        first = make_searcher(name, space, task.objectives, 0, context=context).ask(2)
        assert list(first) == [Candidate(), good]
        assert good not in make_searcher(name, space, task.objectives, 0, context=EMPTY_CONTEXT).ask(2)


def test_only_the_programs_that_were_tuned_last_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["resnet50-small-torchscript", "vgg16-small-torchscript", "unet-small-torchscript"]
    programs = [load_program(str(SMALL / f"{name}.onnx"), "graph", {}) for name in names]
    level, own = load_program(str(SMALL / "cnn-small-torchscript.onnx"), "graph", {})
    trial = Trial(Candidate(), Measured({"latency": 1.0}))
    with open_store(tmp_path / "store.db") as store:
        for there, program in programs:
            task = task_of(there, program, Settings("graph"))
            run = store.begin_run(task, searcher="random", space="all", seed=0, options={}, versions={})
            store.add_trials(run, [trial])
        task, texts = task_of(level, own, Settings("graph")), [program.text for _, program in programs]
        assert list(tried_elsewhere(store, level, task)) == texts[::-1]
        monkeypatch.setattr(transfer, "MOST_PROGRAMS", 2)
        assert list(tried_elsewhere(store, level, task)) == texts[:0:-1]
        monkeypatch.setattr(transfer, "MOST_TRIALS", 1)
        assert list(tried_elsewhere(store, level, task)) == texts[2:]
