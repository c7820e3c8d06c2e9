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

    Args:
        environment: is wrapped.
    """

    def __init__(self, environment: StepEnvironment) -> None:
        self._environment = environment
        self.action_space = environment.action_space
        self._steps = self._left = environment.steps
        width = self._scaled(environment.reset()[0]).shape
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, width, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        seen, info = self._environment.reset(seed=seed, options=options)
        self._left = self._steps
        return self._scaled(seen), info

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        seen, reward, *over, info = self._environment.step(action)
        self._left -= 1
        return self._scaled(seen), float(reward), over[0], over[1], info

    def close(self) -> None:
        """End what measures."""
        self._environment.close()

    def _scaled(self, seen: Observation) -> Floats:
        left = np.array([self._left / self._steps], np.float32)
        return scaled(seen[None], left).reshape(-1)
