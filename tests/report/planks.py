"""A level of one step, and runs of it in a store, for the tests of reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from planish.core import (
    NO_ANALYSIS,
    Candidate,
    EvaluatorSpec,
    Failed,
    Level,
    Measured,
    Objective,
    Outcome,
    Program,
    ProgramError,
    Ratio,
    Space,
    Step,
    Target,
    Task,
    Trial,
    Verdict,
)
from planish.store import Store
from planish.tuning.comparison import Compared, Comparison, Finalist, Measurement
from planish.tuning.comparison_codec import encode

TIME = Objective("time_s", "s")
ERROR = Objective("error")
STARTED = 1.7e9
AnyCompared = TypeVar("AnyCompared", bound=Compared)


@dataclass(frozen=True)
class Saw(Step):
    at: int


@dataclass(frozen=True)
class Plank:
    text: str
    level: str = "planks"


class Planks(Level[Any]):
    """The level; it reads every text but the empty one."""

    name = "planks"
    version = "1"
    objectives: Mapping[str, Objective] = {"time_s": TIME, "error": ERROR}
    spaces = ("cuts",)
    searchers = ("random",)

    @property
    def steps(self) -> Mapping[str, type[Step]]:
        return {"Saw": Saw}

    def accepts(self, source: str) -> bool:
        return bool(source)

    def load(self, source: str, options: Mapping[str, str]) -> Program:
        if options or source.startswith("rotten"):
            raise ProgramError("this plank is <rotten>", "Take another.")
        return Plank(source)

    def read(self, text: str, target: Target) -> Program:
        del target
        return self.load(text, {})

    def target(self, program: Program, cores: int) -> Target:
        del program
        return Target("bench", frozenset({"vice", "clamp"}), cores, {"saw": "2.1"})

    def runs_user_code(self, task: Task) -> bool:
        del task
        return False

    def space(self, task: Task, name: str) -> Space:
        raise NotImplementedError

    def evaluator(self, task: Task, *, final: bool = False) -> EvaluatorSpec:
        raise NotImplementedError

    def describe(
        self, task: Task, candidate: Candidate, analysis: Mapping[str, Any] = NO_ANALYSIS
    ) -> Mapping[str, str]:
        del analysis
        cuts = "\n".join(f"for <cut> at {step}" for step in candidate.steps)
        return {"cuts": cuts, "program & size": f"{task.program.text}: {len(candidate.steps)}"}

    def export(self, task: Task, candidate: Candidate, path: Path) -> Sequence[Path]:
        raise NotImplementedError


def task_of(text: str, *objectives: Objective) -> Task:
    level = Planks()
    plank = level.load(text, {})
    return Task(plank, level.target(plank, 2), objectives or (TIME,), level.version)


def measured(index: int, time_s: float, **values: float) -> Trial:
    return trial(index, Measured({"time_s": time_s, **values}, {"time_s": (time_s, time_s)}))


def failed(index: int, reason: str = "timeout", detail: str = "") -> Trial:
    return trial(index, Failed("build", reason, detail))


def trial(index: int, outcome: Outcome) -> Trial:
    """Return a trial that ended (index + 1) seconds after the start, of 1 ms building and 2 ms running."""
    seconds = {"build": 1e-3, "run": 2e-3} if isinstance(outcome, Measured) else {"build": 1e-3}
    return Trial(
        Candidate((Saw(index),)), outcome, index, 7, seconds, "shed", STARTED + index + 1, cached=False
    )


def finalist(index: int, ratio: float, verdict: Verdict, spread: float = 0.1) -> Finalist:
    """Return a finalist of time `ratio` ms, where the baseline took 1 ms."""
    samples = tuple(ratio * 1e-3 * (1 + spread * i / 10) for i in range(-5, 6))
    over = Ratio(ratio, ratio * (1 - spread), ratio * (1 + spread))
    return Finalist(
        candidate=Candidate((Saw(index),)),
        measured={"time_s": Measurement(TIME, ratio * 1e-3, over, verdict, samples)},
    )


def compared(finalists: Sequence[Finalist], objectives: Sequence[Objective] = (TIME,)) -> Comparison:
    """Compare finalists with a baseline of 1 ms; they did by every objective as by the time."""
    samples = tuple(1e-3 + i * 1e-5 for i in range(11))
    base = Compared(name="baseline", measured={"time_s": Measurement(TIME, 1e-3, samples=samples)})
    named = [replace(each, name=f"#{rank}") for rank, each in enumerate(finalists, 1)]
    return Comparison(tuple(_by(each, objectives) for each in named), _by(base, objectives))


def _by(side: AnyCompared, objectives: Sequence[Objective]) -> AnyCompared:
    lead, *others = objectives
    first = replace(side.lead, objective=lead)
    rest = {o.name: replace(side.lead, objective=o, samples=()) for o in others}
    return replace(side, measured={lead.name: first, **rest})


def save_run(
    store: Store,
    trials: Sequence[Trial],
    found: Comparison | Sequence[Finalist] = (),
    *,
    task: Task | None = None,
    end: bool = True,
    searcher: str = "random",
    importance: Sequence[tuple[str, float]] = (),
) -> str:
    """Store a run that began now; the trials' times are kept apart from `STARTED` as they were."""
    run_id = store.begin_run(
        task or task_of("oak"),
        searcher=searcher,
        space="cuts",
        seed=7,
        options={"temperature": "0.5"},
        versions={"planish": "1.2.3"},
    )
    late = store.run(run_id).started - STARTED
    store.add_trials(run_id, [replace(t, time=t.time + late) for t in trials])
    if importance:
        store.save_importance(run_id, importance)
    comparison = (
        found if isinstance(found, Comparison) else compared(found, (task or task_of("oak")).objectives)
    )
    if end:
        store.save_result(run_id, encode(comparison))
        store.finish_run(run_id, "finished", {"search": 0.25, "compare": 1.5})
    return run_id
