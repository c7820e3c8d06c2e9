"""Knowledge of other programs in a store."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fake_executors import HashExecutor
from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    CanSeed,
    Failed,
    Measured,
    Objective,
    Outcome,
    SearchContext,
    Searcher,
    Step,
    Trial,
    Tried,
)
from planish.core.registry import load_program
from planish.search import make_searcher
from planish.store import ResultRow, open_store
from planish.testing.stores import begin
from planish.testing.synthetic import Set
from planish.tuning import api
from planish.tuning.api import task_of, tune_program
from planish.tuning.settings import Budget, Settings
from planish.tuning.transfer import Past, context_of, tried_elsewhere, winners_elsewhere
from tuning.tradeoff_level import Plain, Text

SIZE, RATE = Objective("size", exact=True), Objective("rate", direction="up")


@pytest.mark.parametrize(
    ("objective", "outcome", "ratio"),
    [
        (SIZE, Measured({"size": 2.0, "rate": 2.0}), 0.5),
        (SIZE, Measured({"size": 0.0, "rate": 2.0}), 0.0),
        (RATE, Measured({"size": 2.0, "rate": 2.0}), 2.0),
        (RATE, Measured({"size": 2.0, "rate": 0.0}), math.inf),
        (SIZE, Failed("build", "broken"), None),
        (RATE, Measured({"size": 2.0}), None),
    ],
)
def test_nothing_at_all_is_no_failure(objective: Objective, outcome: Outcome, ratio: float | None) -> None:
    assert Past("p", objective, 4.0, []).ratio(Trial(Candidate(), outcome)) == ratio


@dataclass
class Earlier(Plain):
    """The level as it was, with a step that it has no more."""

    version = "0"


@dataclass(frozen=True)
class Gone(Step):
    """A step of the level as it was."""


def test_what_an_earlier_version_of_a_level_measured_teaches_nothing(tmp_path: Path) -> None:
    settings, known = Settings(objectives=("time",)), Measured({"time_s": 1.0, "error": 1.0})
    with open_store(tmp_path / "a.db") as store:
        for level, text, steps in ((Earlier(), "old", (Gone(),)), (Plain(), "new", (Set(0, 1),))):
            run = begin(store, task_of(level, Text(text), settings))
            store.add_trials(run, [Trial(Candidate(), known), Trial(Candidate(steps), known, 1)])
        task = task_of(Plain(), Text(), settings)
        expected = [(Candidate(), 1.0), (Candidate((Set(0, 1),)), 1.0)]
        assert tried_elsewhere(store, Plain(), task) == {"new": expected}


def test_a_resumed_run_knows_of_others_what_it_knew_when_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    level, settings, known = Plain(), Settings(objectives=("time",), searcher="random"), list[Tried]()
    with open_store(tmp_path / "a.db") as store, HashExecutor(["time_s"]) as executor:
        other = begin(store, task_of(level, Text("other"), settings))

        def late(*given: Any) -> Searcher:
            """Let another process store something just now, before this run has begun."""
            context: SearchContext = given[5]
            if not known:
                found = Measured({"time_s": 1.0, "error": 1.0})
                store.add_trials(other, [Trial(Candidate(), found, time=time.time())])
            known.append(context.history())
            return make_searcher(*given)

        monkeypatch.setattr(api, "make_searcher", late)
        for trials in (2, 4):
            tune_program(
                level,
                Text(),
                budget=Budget(trials=trials),
                settings=settings,
                store=store,
                executor=executor,
                compares=False,
            )
    assert known == [{}, {}]


def test_finalists_of_other_programs_that_were_better_are_winners(tmp_path: Path) -> None:
    level, settings = Plain(), Settings(objectives=("time",))
    good, better, same = (Candidate((Set(0, value),)) for value in (1, 2, 3))
    found = [ResultRow(good, 4.0), ResultRow(better, 2.0), ResultRow(same, 1.0)]
    with open_store(tmp_path / "a.db") as store:
        task = task_of(level, Text(), settings)
        others = Settings(objectives=("error",))
        for text, chosen in (
            ("old", settings),
            ("new", settings),
            ("error", others),
            (Text().text, settings),
        ):
            run = begin(store, task_of(level, Text(text), chosen))
            store.save_result(run, found[: 1 if text == "new" else 3])
            store.finish_run(run, "finished", {})
        before = time.time()
        late = begin(store, task_of(level, Text("late"), settings))
        store.save_result(late, found)
        expected = {"new": [(good, 0.25)], "old": [(good, 0.25), (better, 0.5)]}
        known = winners_elsewhere(store, level, task)
        assert known == expected
        assert list(known) == ["new", "old"]
        store.finish_run(late, "finished", {})
        assert winners_elsewhere(store, level, task, before) == expected
        assert list(context_of(store, level, task).winners()) == ["late", "new", "old"]


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


def test_only_the_programs_that_were_tuned_last_are_read(tmp_path: Path) -> None:
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
        assert list(tried_elsewhere(store, level, task, most_programs=2)) == texts[:0:-1]
        assert list(tried_elsewhere(store, level, task, most_trials=1)) == texts[2:]
