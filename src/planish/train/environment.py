"""Spaces of numbered actions as environments of Gymnasium (LoopTune, thesis 3.6).

Programs of the level `loops` are measured on this machine:
`gymnasium.make("planish.train.environment:planish/LoopTune-v0", programs=[...])`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from planish.core import Candidate, CanObserve, Lost, Measured, Outcome, PlanishError, Task
from planish.core.files import StrPath
from planish.core.registry import level_named, load_program
from planish.models.networks import scaled
from planish.tuning.api import task_of
from planish.tuning.on_demand import OnDemandRuns
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
"""Name in place of a searcher's in the runs of environments."""
REMEMBERED = 256
"""Programs whose states are held in memory; the store has the others'."""


def make_environment(
    programs: Sequence[str | Program],
    *,
    space: str = "steps",
    steps: int = 10,
    store: StrPath | None = None,
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
    """The programs, and the runs in which their candidates are measured."""

    def __init__(self, programs: Sequence[Program], space: str, store: StrPath | None) -> None:
        self._programs, self._space = programs, space
        self._level = level_named(programs[0].level)
        self._runs = OnDemandRuns(self._level, SEARCHER, space, store)
        self.close = self._runs.close

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
        """Return the function that measures a candidate, each state once."""
        trials = self._runs.trials(task)
        known = {
            space.state_key(t.candidate): _gflops(t.outcome) for t in trials if _is_of(space, t.candidate)
        }

        def rate(candidate: Candidate) -> float:
            state = space.state_key(candidate)
            if state not in known:
                outcome = self._runs.measure(task, candidate).outcome
                # Not remembered either: the next visit measures it again.
                if isinstance(outcome, Lost):
                    return 0.0  # its worker was killed: nothing is known of it
                known[state] = _gflops(outcome)
            return known[state]

        return rate


def _gflops(outcome: Outcome) -> float:
    return outcome.values["gflops"] if isinstance(outcome, Measured) else 0.0


def _is_of(space: CanObserve, candidate: Candidate) -> bool:
    try:
        space.state_key(candidate)
    except PlanishError:  # of another space
        return False
    return True


gymnasium.register(NAME, entry_point="planish.train.environment:make_environment")
