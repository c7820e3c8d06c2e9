"""Stores of runs of the lattice level, for the tests of the dashboard."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cli.lattices import LatticeLevel
from planish.core import Candidate, Failed, Measured, Objective, Outcome, Ratio, Task, Trial, Verdict
from planish.store import Store, open_store
from planish.testing.synthetic import Set
from planish.tuning.comparison import Compared, Comparison, Finalist, Measurement
from planish.tuning.comparison_codec import encode

LEVEL = LatticeLevel()
TIME = LEVEL.objectives["time_s"]


@dataclass(frozen=True)
class Named:
    """A program of any text."""

    text: str
    level: str = "lattice"


def front_task() -> Task:
    """Return the task of a lattice with two objectives."""
    program = Named("lattice 20x20x20 0.0 False")
    objectives = (TIME, LEVEL.objectives["gflops"])
    return Task(program, LEVEL.target(program, 1), objectives, LEVEL.version)


def front_trial(index: int, time_s: float, gflops: float) -> Trial:
    return trial(index, Measured({"time_s": time_s, "gflops": gflops}, {"time_s": (time_s, time_s)}))


def front_comparison() -> Comparison:
    """Compare two members of a front with a baseline of 1 ms and 1 GFLOPS: each is better in one."""
    objectives = front_task().objectives

    def member(name: str, value: int, time: float, rate: float) -> Finalist:
        ratios = zip(objectives, (time, rate), (1e-3, 1.0), strict=True)
        found = {
            o.name: Measurement(o, ratio * base, Ratio(ratio, 0.9 * ratio, 1.1 * ratio), _verdict(o, ratio))
            for o, ratio, base in ratios
        }
        trial = {name: each.median for name, each in found.items()}
        return Finalist(name=name, candidate=Candidate((Set(0, value),)), measured=found, trial=trial)

    base = {o.name: Measurement(o, value) for o, value in zip(objectives, (1e-3, 1.0), strict=True)}
    members = (member("#1", 1, 0.5, 0.75), member("#2", 2, 1.5, 2.0))
    return Comparison(members, Compared(name="baseline", measured=base))


def _verdict(objective: Objective, ratio: float) -> Verdict:
    return "better" if objective.cost(ratio) < objective.cost(1.0) else "worse"


def task_of(program: str = "lattice 20x20x20 0.0 False") -> Task:
    """Return the task of a lattice; what stands after its four words is a part of its name alone."""
    return Task(Named(program), LEVEL.target(Named(program), 1), (TIME,), LEVEL.version)


def measured(index: int, time_s: float) -> Trial:
    return trial(index, Measured({"time_s": time_s}, {"time_s": (time_s, time_s)}))


def failed(index: int, reason: str = "timeout", detail: str = "") -> Trial:
    return trial(index, Failed("build", reason, detail))


def trial(index: int, outcome: Outcome, ended: float | None = None) -> Trial:
    """Return a trial of 1 ms building and 2 ms running, that ended so many seconds after the first."""
    seconds = {"build": 1e-3, "run": 2e-3} if isinstance(outcome, Measured) else {"build": 1e-3}
    candidate = Candidate((Set(index % 3, 1 + index),))
    return Trial(candidate, outcome, index, 7, seconds, "shed", 1.7e9 + (ended or index), cached=False)


def comparison(ratio: float, verdict: Verdict, spread: float = 0.1) -> Comparison:
    """Compare one finalist with a baseline of 1 ms."""
    samples = tuple(1e-3 * (1 + spread * i / 10) for i in range(-5, 6))
    over = Ratio(ratio, ratio * (1 - spread), ratio * (1 + spread))
    lead = Measurement(TIME, ratio * 1e-3, over, verdict, tuple(ratio * each for each in samples))
    winner = Finalist(
        name="#1",
        candidate=Candidate((Set(0, 3),)),
        measured={"time_s": lead},
        trial={"time_s": 1e-3 * ratio},
    )
    base = Compared(name="baseline", measured={"time_s": Measurement(TIME, 1e-3, samples=samples)})
    return Comparison((winner,), base)


def add_run(
    store: Store,
    trials: Sequence[Trial],
    found: Comparison | None = None,
    *,
    task: Task | None = None,
    status: Literal["finished", "stopped", "failed"] | None = "finished",
    searcher: str = "random",
) -> str:
    """Store a run; without a status it is still under way."""
    run_id = store.begin_run(task or task_of(), searcher=searcher, space="knobs", seed=7)
    store.add_trials(run_id, trials)
    if found is not None:
        store.save_result(run_id, encode(found))
    if status:
        store.finish_run(run_id, status, {"search": 0.25, "compare": 1.5})
    return run_id


def store_of(path: Path, count: int = 1) -> list[str]:
    """Make a store of finished runs that are twice as fast; return their ids."""
    with open_store(path) as store:
        return [
            add_run(store, [measured(0, 1e-3), failed(1), measured(2, 0.5e-3)], comparison(0.5, "better"))
            for _ in range(count)
        ]
