"""A space of numbered actions as an environment of Gymnasium (LoopTune, thesis 3.6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from planish.core import Candidate, CanObserve

Observation = NDArray[np.int64]


@dataclass(frozen=True)
class Ground:
    """Where an episode takes place: one program.

    Args:
        name: for people.
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

    There is no ending action, as in the thesis (3.6.2). An illegal action changes nothing and gives nothing;
    `info["action_mask"]` tells which are legal, 1 for each. `info["rate"]` is where the episode stands.

    Args:
        ground: gives the program of an episode by its number; all have the same actions and observations.
        grounds: how many there are; an episode draws one, or takes `options["ground"]` of `reset`.
        steps: of an episode.
        closing: is called when the environment is closed.
    """

    def __init__(
        self,
        ground: Callable[[int], Ground],
        grounds: int,
        steps: int = 10,
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        self._ground, self.grounds, self._steps, self._closing = ground, grounds, steps, closing
        self._now = ground(0)
        self._candidate, self._taken = self._now.space.start(), 0
        shape = self._now.space.observe(self._candidate).shape
        self.observation_space = gymnasium.spaces.Box(0, np.iinfo(np.int64).max, shape, np.int64)
        self.action_space = gymnasium.spaces.Discrete(len(self._now.space.actions))

    @property
    def steps(self) -> int:
        """How many actions an episode has."""
        return self._steps

    @property
    def ground(self) -> Ground:
        """Where this episode takes place."""
        return self._now

    @property
    def candidate(self) -> Candidate:
        """What the actions of this episode have made."""
        return self._candidate

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        # Drawn in any case: an episode with a given ground leaves later draws as they would be.
        drawn = int(self.np_random.integers(self.grounds))
        self._now = self._ground((options or {}).get("ground", drawn))
        self._candidate, self._taken = self._now.space.start(), 0
        return self._seen(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        space, before = self._now.space, self._candidate
        chosen = space.actions[int(action)]
        if legal := chosen in space.steps(before):
            self._candidate = space.extend(before, chosen)
        self._taken += 1
        # The thesis' reward (3.6.3): differences add up to what the whole episode gains, whichever way it
        # goes.
        gained = self._now.rate(self._candidate) - self._now.rate(before) if legal else 0.0
        over = self._taken >= self._steps
        # Truncated and not terminated: the episode is cut off by its length, and not by the program's state.
        return self._seen(), gained / self._now.peak, False, over, {**self._info(), "illegal": not legal}

    def close(self) -> None:
        """End what measures."""
        self._closing()

    def _seen(self) -> Observation:
        return self._now.space.observe(self._candidate)

    def _info(self) -> dict[str, Any]:
        legal = set(self._now.space.steps(self._candidate))
        mask = np.array([action in legal for action in self._now.space.actions], np.int8)
        return {"action_mask": mask, "ground": self._now.name, "rate": self._now.rate(self._candidate)}
