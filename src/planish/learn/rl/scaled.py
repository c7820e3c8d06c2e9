"""What a network reads of an environment: the same as when its policy is used."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from planish.learn.policy.network import scaled
from planish.learn.rl.environment import Observation, StepEnvironment

Floats = NDArray[np.float32]


class ScaledObservation(gymnasium.Env[Floats, np.int64]):
    """Gives numbers of float32 in a row, as `planish.learn.policy.network.scaled` makes them.

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
