"""Inputs for tests of a store: a level's steps, tasks, and trials of every kind."""

from collections.abc import Mapping
from dataclasses import dataclass

from planish.core import (
    Candidate,
    Failed,
    Measured,
    Objective,
    Outcome,
    Step,
    Target,
    Task,
    Trial,
    TrialPrediction,
)

TIME = Objective("time_s", "s")
ERROR = Objective("error")


@dataclass(frozen=True)
class Tile(Step):
    """A step with an option of each kind that JSON can hold."""

    axis: str
    factors: tuple[int, ...] = (4,)
    share: float = 0.5
    last: bool = False
    note: str | None = None


STEPS: Mapping[str, type[Step]] = {"Tile": Tile}


@dataclass(frozen=True)
class Sheet:
    """A program that is nothing but a text."""

    text: str
    level: str = "sheets"


def make_task(text: str = "flat", *objectives: Objective, cores: int = 1, version: str = "1") -> Task:
    """Make a task; equal arguments make equal tasks, on any machine."""
    target = Target("anvil", frozenset({"hammer", "tongs"}), cores, {"smith": "3.1"})
    return Task(Sheet(text), target, objectives or (TIME,), version)


def make_candidate(number: int, steps: int = 2) -> Candidate:
    """Make a candidate of so many steps; another for each number."""
    return Candidate(tuple(Tile("mnk"[i % 3], (number, i), note=f"“{i}”") for i in range(steps)))


def make_trial(index: int, number: int | None = None, *, cached: bool = False, steps: int = 2) -> Trial:
    """Make a trial; every third has failed, and every other was predicted.

    Args:
        index: its position in the run.
        number: names the candidate; the index where it is None.
        cached: whether the outcome was taken from the store.
        steps: how long the candidate is.
    """
    candidate = make_candidate(index if number is None else number, steps)
    seconds = {"build": 1e-3, "run": 0.1 + 0.2}
    prediction = TrialPrediction(0.1 * index, index // 4) if index % 2 else None
    ended = 1.7e9 + index / 8
    return Trial(candidate, _outcome(index), index, 7, seconds, "anvil-1", ended, cached, prediction)


def _outcome(index: int) -> Outcome:
    if index % 3 == 2:
        return Failed("build", "refused", f"step {index} \N{HAMMER}\n\0 \ud800")
    time = 1 / (index + 3)
    return Measured({"time_s": time, "gain": -time}, {"time_s": (time, time * 1.25, 5e-324)})
