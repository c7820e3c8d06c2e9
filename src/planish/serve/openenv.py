"""Episodes of reinforcement learning: the service as an environment, by the HTTP interface of OpenEnv.

`POST /openenv/reset` begins an episode at the start of the space, `POST /openenv/step` adds a step to its
candidate and has it measured, `GET /openenv/state` returns where the episode is. Each client has one episode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from planish.serve.http import HEADERS, STATUS, Tokens, authorize, error_response, handlers, read_arguments
from planish.serve.service import MeasuringService, ToolError
from planish.serve.tools import call

PATH = "/openenv"
LENGTH = 50
"""Steps of an episode at most."""
FAILED = -1.0
"""Reward of a candidate that fails; the episode ends."""


@dataclass
class _Episode:
    """An episode of a client.

    Args:
        steps: of its candidate.
        gain: of the candidate over the baseline.
        count: actions so far.
        done: whether it has ended.
        id: names it.
    """

    steps: list[Any]
    gain: float
    count: int = 0
    done: bool = False
    id: str = field(default_factory=lambda: uuid4().hex)


class Episodes:
    """The episodes of all clients.

    Args:
        service: measures.
    """

    def __init__(self, service: MeasuringService) -> None:
        self._service = service
        self._episodes: dict[str, _Episode] = {}

    async def reset(self, client: str, arguments: object) -> dict[str, Any]:
        """Begin an episode; the arguments, such as a seed, change nothing: the start is always the same."""
        del arguments
        start = (await call(self._service, client, "describe", None))["start"]
        episode = self._episodes[client] = _Episode(start["steps"], start.get("gain") or 1.0)
        legal = await call(self._service, client, "legal_steps", {"steps": episode.steps})
        return _observed(episode, {**start, **legal}, None)

    async def step(self, client: str, arguments: object) -> dict[str, Any]:
        """Add a step to the candidate of an episode, and measure it.

        Args:
            client: whose episode.
            arguments: `action` with `step`, one of `next_steps`; or with `steps`, those of a whole candidate.

        Returns:
            The observation, the reward (the binary logarithm of the gain over the candidate before), and
            whether the episode has ended.

        Raises:
            ToolError: there is no episode, or the action is none.
        """
        episode = self._episodes.get(client)
        if episode is None or episode.done:
            raise ToolError("bad_request", "There is no episode: reset first.")
        match arguments:
            case {"action": {"step": step}}:
                steps = [*episode.steps, step]
            case {"action": {"steps": [*steps]}}:
                pass
            case _:
                raise ToolError("bad_request", "A step is {'action': {'step': [NAME, {OPTION: VALUE}]}}.")
        answer = await call(self._service, client, "evaluate", {"steps": steps})
        if answer["outcome"] == "lost":
            return _observed(episode, answer, 0.0)
        gain = answer.get("gain")
        episode.count += 1
        if answer["outcome"] == "failed" or not gain:
            episode.done = True
            return _observed(episode, answer, FAILED)
        reward = math.log2(gain / episode.gain)
        episode.steps, episode.gain = steps, gain
        episode.done = episode.count >= LENGTH or answer.get("next_steps") == []
        return _observed(episode, answer, reward)

    def state(self, client: str) -> dict[str, Any]:
        """Return where the episode of a client is.

        Raises:
            ToolError: there is none.
        """
        episode = self._episodes.get(client)
        if episode is None:
            raise ToolError("bad_request", "There is no episode: reset first.")
        return {"episode_id": episode.id, "step_count": episode.count, "steps": episode.steps}


def _observed(episode: _Episode, answer: dict[str, Any], reward: float | None) -> dict[str, Any]:
    return {
        "observation": {**answer, "steps": episode.steps},
        "reward": reward,
        "done": episode.done,
    }


def openenv(service: MeasuringService, tokens: Tokens) -> Starlette:
    """Return the application below `/openenv`."""
    episodes = Episodes(service)

    async def act(request: Request) -> Response:
        client = authorize(request, tokens)
        if isinstance(client, Response):
            return client
        try:
            if request.method == "GET":
                return JSONResponse(episodes.state(client), headers=HEADERS)
            act = episodes.reset if request.url.path.endswith("/reset") else episodes.step
            return JSONResponse(await act(client, await read_arguments(request)), headers=HEADERS)
        except ToolError as error:
            return error_response(STATUS[error.code], error.code, str(error))

    return Starlette(
        routes=[
            Route(f"{PATH}/state", act),
            Route(f"{PATH}/reset", act, methods=["POST"]),
            Route(f"{PATH}/step", act, methods=["POST"]),
        ],
        exception_handlers=handlers(),
    )
