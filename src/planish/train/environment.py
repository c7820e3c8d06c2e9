"""Spaces of numbered actions as environments of Gymnasium (LoopTune, thesis 3.6).

Programs of the level `loops` are measured on this machine:
`gymnasium.make("planish.train.environment:planish/LoopTune-v0", programs=[...])`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from planish.core import (
    Candidate,
    CanObserve,
    Evaluation,
    Lost,
    Measured,
    Outcome,
    PlanishError,
    Task,
    Trial,
)
from planish.core.registry import level_named, load_program
from planish.measure.executors import LocalExecutor
from planish.models.networks import scaled
from planish.store import HeldError, Store, store_at
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

if TYPE_CHECKING:
    from planish.core import Program

Observation = NDArray[np.int64]


@dataclass(frozen=True)
class EpisodeTask:
    """Program of an episode.

    Args:
        name: for the user.
        space: whose actions are taken.
        rate: how good a candidate is, the more the better; 0 for one that fails. It is asked for again and
            again, so it should remember.
        peak: the rate that rewards are shares of: what the machine can do at most.
    """

    name: str
    space: CanObserve
    rate: Callable[[Candidate], float]
    peak: float


class StepEnvironment(gymnasium.Env[Observation, np.int64]):
    """Takes a fixed number of actions; the reward is what the rate gains, as a share of the peak.

    There is no ending action, as in the thesis (3.6.2). An illegal action changes nothing and gains nothing;
    `info["action_mask"]` has 1 for each that is legal. `info["rate"]` is that of the candidate so far.

    Args:
        task_at: returns the program of an episode by its number; all have the same actions and observations.
        task_count: how many there are; an episode draws one, or takes `options["task"]` of `reset`.
        steps: of an episode.
        closing: is called when the environment is closed.

    Attributes:
        task: the program of this episode.
        candidate: what the actions of this episode have made.
    """

    def __init__(
        self,
        task_at: Callable[[int], EpisodeTask],
        task_count: int,
        steps: int = 10,
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        self._task_at, self.task_count, self.steps, self._closing = task_at, task_count, steps, closing
        self.task = task_at(0)
        self.candidate, self._taken = self.task.space.start(), 0
        shape = self.task.space.observe(self.candidate).shape
        self.observation_space = gymnasium.spaces.Box(0, np.iinfo(np.int64).max, shape, np.int64)
        self.action_space = gymnasium.spaces.Discrete(len(self.task.space.actions))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        # Drawn in any case: an episode with a named program leaves later draws as they would be.
        drawn = int(self.np_random.integers(self.task_count))
        self.task = self._task_at((options or {}).get("task", drawn))
        self.candidate, self._taken = self.task.space.start(), 0
        return self._observed(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        space, before = self.task.space, self.candidate
        chosen = space.actions[int(action)]
        if legal := chosen in space.steps(before):
            self.candidate = space.extend(before, chosen)
        self._taken += 1
        # The thesis' reward (3.6.3): differences add up to what the whole episode gains, whichever way it
        # goes.
        gained = self.task.rate(self.candidate) - self.task.rate(before) if legal else 0.0
        over = self._taken >= self.steps
        # Truncated and not terminated: the episode is cut off by its length, and not by the program's state.
        return self._observed(), gained / self.task.peak, False, over, {**self._info(), "illegal": not legal}

    def close(self) -> None:
        """End what measures."""
        self._closing()

    def _observed(self) -> Observation:
        return self.task.space.observe(self.candidate)

    def _info(self) -> dict[str, Any]:
        legal = set(self.task.space.steps(self.candidate))
        mask = np.array([action in legal for action in self.task.space.actions], np.int8)
        return {"action_mask": mask, "task": self.task.name, "rate": self.task.rate(self.candidate)}


Floats = NDArray[np.float32]


class ScaledObservation(gymnasium.Env[Floats, np.int64]):
    """Wrapper that flattens observations to a row of float32, as `planish.models.networks.scaled` makes them.

    Behind them is 1 for each action that is legal, and 0 for each other. Where none is, all are 1: they
    change nothing, and something has to be drawn.

    Args:
        environment: is wrapped.
    """

    def __init__(self, environment: StepEnvironment) -> None:
        self._environment = environment
        self.action_space = environment.action_space
        self._steps = self._left = environment.steps
        width = self._read(*environment.reset()).shape
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, width, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        seen, info = self._environment.reset(seed=seed, options=options)
        self._left = self._steps
        return self._read(seen, info), info

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        seen, reward, *over, info = self._environment.step(action)
        self._left -= 1
        return self._read(seen, info), float(reward), over[0], over[1], info

    def close(self) -> None:
        """End what measures."""
        self._environment.close()

    def _read(self, seen: Observation, info: dict[str, Any]) -> Floats:
        left = np.array([self._left / self._steps], np.float32)
        legal = info["action_mask"].astype(np.float32)
        return np.concatenate([scaled(seen[None], left).reshape(-1), legal if legal.any() else legal + 1])


NAME = "planish/LoopTune-v0"
SEARCHER = "environment"
"""What the runs of environments have in place of a searcher's name."""
REMEMBERED = 256
"""Programs whose states are held in memory; the store has the others'."""


def make_environment(
    programs: Sequence[str | Program],
    *,
    space: str = "steps",
    steps: int = 10,
    store: Store | str | Path | None = None,
    remembered: int = REMEMBERED,
) -> StepEnvironment:
    """Make an environment of programs, whose candidates are verified and timed as in any search.

    Args:
        programs: texts with their sizes ("C[m,n] += A[m,k] * B[k,n] | m=64,n=64,k=64"), or programs.
        space: a space of numbered actions.
        steps: of an episode.
        store: what is measured is kept there, so that no state is measured twice; None for the user's own.
        remembered: programs whose states are held in memory.

    Raises:
        PlanishError: there is no program; one cannot be read; the space has no numbered actions.
    """
    if not programs:
        raise PlanishError("an environment needs programs", "Give at least one.")
    measured = _MeasuredPrograms([_read(program) for program in programs], space, store)
    try:
        return StepEnvironment(lru_cache(remembered)(measured.task), len(programs), steps, measured.close)
    except BaseException:
        measured.close()
        raise


def _read(program: str | Program) -> Program:
    if not isinstance(program, str):
        return program
    text, _, sizes = program.partition(" | ")
    return load_program(text, "loops", {"size": sizes})[1]


class _MeasuredPrograms:
    """The programs, and the worker that measures them.

    Args:
        programs: of one level.
        space: the name of their spaces.
        store: keeps what was measured.
    """

    def __init__(self, programs: Sequence[Program], space: str, store: Store | str | Path | None) -> None:
        self._programs, self._space = programs, space
        self._level, self._resources = level_named(programs[0].level), ExitStack()
        self._store = self._resources.enter_context(store_at(store))
        self._runs: dict[str, tuple[str, Iterator[int]]] = {}
        self._resources.callback(self._finish_runs)
        self._executor: LocalExecutor | None = None
        self._served = ""

    def close(self) -> None:
        """End the worker and the runs, and close the store where it was opened here."""
        self._resources.close()

    def task(self, number: int) -> EpisodeTask:
        """Return a program for episodes."""
        task = task_of(self._level, self._programs[number], Settings(cores=1))
        space = self._level.space(task, self._space)
        if not isinstance(space, CanObserve):
            raise PlanishError(f"the space '{self._space}' has no numbered actions", 'Take space="steps".')
        from planish.levels.loops.roofline import measured_peak

        peak = measured_peak(task.target.toolchain["backend"])
        return EpisodeTask(task.program.text, space, self._rate(task, space), peak)

    def _rate(self, task: Task, space: CanObserve) -> Callable[[Candidate], float]:
        """Return what measures a candidate, each state once."""
        trials = self._store.trials(task.key, self._level.steps)
        known = {
            space.state_key(t.candidate): _gflops(t.outcome) for t in trials if _is_of(space, t.candidate)
        }

        def rate(candidate: Candidate) -> float:
            state = space.state_key(candidate)
            if state not in known:
                evaluation = self._evaluate(task, candidate)
                # Not remembered either: the next visit measures it again.
                if isinstance(evaluation.outcome, Lost):
                    return 0.0  # its worker was killed: nothing is known of it
                self._store_trial(task, candidate, evaluation)
                known[state] = _gflops(evaluation.outcome)
            return known[state]

        return rate

    def _evaluate(self, task: Task, candidate: Candidate) -> Evaluation:
        spec = self._level.evaluator(task)
        if self._executor is None:
            self._executor = self._resources.enter_context(LocalExecutor(spec, workers=1))
        elif self._served != task.key:
            self._executor.serve(spec)
        self._served = task.key
        self._executor.submit([candidate])
        (evaluation,) = self._executor.results()
        return evaluation

    def _store_trial(self, task: Task, candidate: Candidate, evaluation: Evaluation) -> None:
        """Add a trial to the run of a task, which is resumed or, before its first trial, begun."""
        if task.key not in self._runs:
            begin = self._store.begin_run
            self._runs[task.key] = self._resumed_run(task) or (
                begin(task, searcher=SEARCHER, space=self._space, seed=0),
                count(),
            )
        run_id, indices = self._runs[task.key]
        trial = Trial(candidate, evaluation.outcome, next(indices), 0, evaluation.seconds, evaluation.host)
        self._store.add_trials(run_id, [trial])

    def _resumed_run(self, task: Task) -> tuple[str, Iterator[int]] | None:
        for run in self._store.runs(task.key):
            if (run.searcher, run.space) == (SEARCHER, self._space) and run.status != "running":
                with suppress(HeldError):  # another process has just resumed it
                    self._store.resume_run(run.id)
                    indices = (trial.index for trial in self._store.each_trial(run.id, self._level.steps))
                    return run.id, count(1 + max(indices, default=-1))
        return None

    def _finish_runs(self) -> None:
        for run_id, _ in self._runs.values():
            self._store.finish_run(run_id)


def _gflops(outcome: Outcome) -> float:
    return outcome.values["gflops"] if isinstance(outcome, Measured) else 0.0


def _is_of(space: CanObserve, candidate: Candidate) -> bool:
    try:
        space.state_key(candidate)
    except PlanishError:  # of another space
        return False
    return True


gymnasium.register(NAME, entry_point="planish.train.environment:make_environment")
