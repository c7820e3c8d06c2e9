"""What became of other programs: by ratios to their baselines, and as the store was when a run began."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fake_executors import HashExecutor
from planish.core import (
    Candidate,
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
from planish.core.budget import Budget
from planish.models.transfer import Past, tried_elsewhere
from planish.search import make_searcher
from planish.store import open_store
from planish.testing.lattice import Set
from planish.testing.stores import begin
from planish.tuning import api
from planish.tuning.api import task_of, tune_program
from planish.tuning.settings import Settings
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
