"""Workers that are killed at the end of a run: nothing is held against who they measured."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from planish.budget import Budget
from planish.core import Candidate, Evaluation, Failed, Lost, Measured, Objective, Outcome
from planish.settings import Settings
from planish.store import open_store
from planish.testing.lattice import Set
from planish.tuning.api import tune_program
from planish.tuning.final_state import PairedMeasurement, times_worse
from scripted import Here, Scripted
from tuning.final.trading import ERROR, Full, Plain, Text, Trade, first

KILLED = Lost("run", "killed", "killed by SIGKILL")
BROKEN = Failed("run", "broken")
COST = Objective("cost")


class Killed(Scripted):
    """Its worker is killed when it measures some candidates, so many times."""

    def __init__(self, candidates: Collection[Candidate], times: int) -> None:
        super().__init__()
        self._candidates, self._left = candidates, times

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        if candidate in self._candidates and self._left:
            self._left -= 1
            return Evaluation(candidate, KILLED)
        return Evaluation(candidate, Trade().outcome(candidate))


def cost(value: float) -> Outcome:
    return Measured({"cost": value})


@pytest.mark.parametrize(
    ("one", "times"),
    [
        ([cost(2), cost(3), cost(4)], 3.0),
        ([KILLED, cost(3), cost(4)], 3.5),
        ([KILLED, KILLED, KILLED], float("inf")),
        ([BROKEN, KILLED, BROKEN], float("inf")),
    ],
)
def test_a_round_whose_worker_was_lost_tells_nothing(one: list[Outcome], times: float) -> None:
    assert times_worse(COST, one, [cost(1)] * 3) == times
    assert times_worse(COST, [cost(1)] * 3, [cost(1), KILLED, cost(1)]) == 1.0


def test_a_loss_stays_a_loss() -> None:
    lost = Candidate((Set(1, 1),))
    bench = PairedMeasurement(Killed([lost], times=1))
    (once, again), _ = bench.measure([lost, Candidate()], rounds=2)
    assert once == KILLED
    assert isinstance(again, Measured)


def test_a_finalist_whose_scoring_was_lost_is_not_judged(tmp_path: Path) -> None:
    settings = Settings(objectives=("time", "error"), searcher="random", workers=1)

    class HeldBack(Full):
        def _score(self, candidate: Candidate) -> Outcome:
            found = KILLED if first(candidate) == 1 else super()._score(candidate)
            if isinstance(found, Measured):
                return Measured({"error_validation": found.values["error_final"]})
            return found

    with open_store(tmp_path / "a.db") as store:
        found = tune_program(
            HeldBack(), Text(), budget=Budget(trials=60), settings=settings, store=store, start=Here
        )
    told = {first(each.candidate): each for each in found.finalists}
    assert told[1].measured[ERROR.name].verdict == "undecided"
    assert told[2].measured[ERROR.name].verdict == "failed"
    assert told[1].notes == ("cannot be scored on unseen data: killed: killed by SIGKILL",)


def test_an_effect_whose_workers_were_lost_is_not_known(tmp_path: Path) -> None:
    class Dying(Here):
        def _evaluate(self, candidate: Candidate) -> Evaluation:
            if candidate == Candidate((Set(0, 1),)):
                return Evaluation(candidate, KILLED)
            return super()._evaluate(candidate)

    settings = Settings(objectives=("time", "error"), searcher="random", workers=1)
    with open_store(tmp_path / "a.db") as store:
        found = tune_program(
            Plain(), Text(), budget=Budget(trials=60), settings=settings, store=store, start=Dying
        )
    whys = {effect.why for each in found.finalists for effect in each.alone}
    assert "not known: its workers were lost" in whys
    assert "it fails" not in whys
