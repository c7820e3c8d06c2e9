"""Environment of Gymnasium whose steps a measuring service verifies and measures."""

from __future__ import annotations

import json
import math
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import gymnasium
import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError

_SECONDS = 600.0
_MOST = 1e3


class ServiceEnvironment(gymnasium.Env[NDArray[np.float32], np.int64]):
    """Program that is improved step by step, by a service that measures each candidate.

    An action is the index of one of the steps that may follow; `info["next_steps"]` lists them, and
    `info["action_mask"]` has 1 for each. An action without a step changes nothing. An observation is the
    binary logarithm of the gain over the baseline, and the number of steps so far. The reward of a step is
    by how much the logarithm grows, and -1 for a candidate that fails, which ends the episode.

    Args:
        url: of the service, such as "http://127.0.0.1:8081".
        token: of the client.
        actions: steps that are offered at a time.
    """

    def __init__(self, url: str, token: str, actions: int = 64) -> None:
        self._url, self._token, self._actions = url.rstrip("/"), token, actions
        self.action_space = gymnasium.spaces.Discrete(actions)
        self.observation_space = gymnasium.spaces.Box(-_MOST, _MOST, (2,), np.float32)
        self._next: list[Any] = []
        self._gain, self._steps = 1.0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode.

        Raises:
            PlanishError: the service does not answer.
        """
        super().reset(seed=seed, options=options)
        found = self._ask("reset", {})
        self._gain, self._steps = 1.0, 0
        return self._observation(found), self._info(found)

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Add a step, and have the candidate measured.

        Raises:
            PlanishError: the service does not answer, or refuses it.
        """
        if action >= len(self._next):
            nothing: dict[str, Any] = {"observation": {"next_steps": self._next}}
            return self._observation(nothing), 0.0, False, False, self._info(nothing)
        found = self._ask("step", {"action": {"step": self._next[action]}})
        self._steps += 1
        observation, info = self._observation(found), self._info(found)
        return observation, float(found["reward"]), bool(found["done"]), False, info

    def _observation(self, found: dict[str, Any]) -> NDArray[np.float32]:
        self._gain = found["observation"].get("gain") or self._gain
        return np.array([math.log2(self._gain), self._steps], np.float32)

    def _info(self, found: dict[str, Any]) -> dict[str, Any]:
        self._next = found["observation"].get("next_steps", [])[: self._actions]
        mask = np.zeros(self._actions, np.int8)
        mask[: len(self._next)] = 1
        return {**found["observation"], "next_steps": self._next, "action_mask": mask}

    def _ask(self, what: str, arguments: dict[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}"}
        request = Request(f"{self._url}/openenv/{what}", json.dumps(arguments).encode(), headers)
        try:
            with urlopen(request, timeout=_SECONDS) as answer:
                return json.load(answer)
        except HTTPError as error:
            said = json.loads(error.read())["error"]["message"]
            raise PlanishError(f"the service refuses: {said}") from error
        except OSError as error:
            raise PlanishError(f"the service at {self._url} does not answer: {error}") from error
