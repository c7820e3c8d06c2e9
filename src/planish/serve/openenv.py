"""Episodes of reinforcement learning: the service as an environment, by the interfaces of OpenEnv.

`reset` begins an episode at the start of the space, `step` adds a step to its candidate and has it measured,
`state` returns where the episode is. OpenEnv's client calls them by messages over a WebSocket, and each
connection has an episode of its own; other programs call them by HTTP, where each client has one.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from planish.serve.http import (
    HEADERS,
    STATUS,
    Tokens,
    authorize,
    error_response,
    handlers,
    read_arguments,
    read_json,
)
from planish.serve.service import MeasuringService, ToolError
from planish.serve.tools import call

PATH = "/openenv"
LENGTH = 50
"""Steps of an episode at most."""
FAILED = -1.0
"""Reward of a candidate that fails; the episode ends."""


@dataclass
class _Episode:
    """An episode.

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


class Environment:
    """An environment: episodes of a client, one after the other.

    Args:
        service: measures.
        client: on whose account.
    """

    def __init__(self, service: MeasuringService, client: str) -> None:
        self._service, self._client = service, client
        self._episode: _Episode | None = None

    async def reset(self, arguments: object) -> dict[str, Any]:
        """Begin an episode; the arguments, such as a seed, change nothing: the start is always the same."""
        del arguments
        start = (await call(self._service, self._client, "describe", None))["start"]
        episode = self._episode = _Episode(start["steps"], start.get("gain") or 1.0)
        legal = await call(self._service, self._client, "legal_steps", {"steps": episode.steps})
        return _observed(episode, {**start, **legal}, None)

    async def step(self, action: object) -> dict[str, Any]:
        """Add a step to the candidate of the episode, and measure it.

        Args:
            action: `step`, one of `next_steps`; or `steps`, those of a whole candidate.

        Returns:
            The observation, the reward (the binary logarithm of the gain over the candidate before), and
            whether the episode has ended.

        Raises:
            ToolError: there is no episode, or the action is none.
        """
        episode = self._begun()
        if episode.done:
            raise ToolError("bad_request", _RESET)
        match action:
            case {"step": step}:
                steps = [*episode.steps, step]
            case {"steps": [*steps]}:
                pass
            case _:
                raise ToolError("bad_request", "An action is {'step': [NAME, {OPTION: VALUE}]}.")
        answer = await call(self._service, self._client, "evaluate", {"steps": steps})
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

    def state(self) -> dict[str, Any]:
        """Return where the episode is.

        Raises:
            ToolError: there is none.
        """
        episode = self._begun()
        return {"episode_id": episode.id, "step_count": episode.count, "steps": episode.steps}

    def _begun(self) -> _Episode:
        if self._episode is None:
            raise ToolError("bad_request", _RESET)
        return self._episode

    async def answer(self, message: object) -> dict[str, Any]:
        """Answer a message of OpenEnv's client; what is wrong with it is an answer, too."""
        try:
            match message:
                case {"type": "reset", **further}:
                    return {"type": "observation", "data": await self.reset(further.get("data"))}
                case {"type": "step", "data": action}:
                    return {"type": "observation", "data": await self.step(action)}
                case {"type": "state"}:
                    return {"type": "state", "data": self.state()}
                case _:
                    raise ToolError("bad_request", "A message has the type reset, step, state or close.")
        except ToolError as error:
            return {"type": "error", "data": {"code": error.code, "message": str(error)}}


_RESET = "There is no episode: reset first."


def _observed(episode: _Episode, answer: dict[str, Any], reward: float | None) -> dict[str, Any]:
    return {
        "observation": {**answer, "steps": episode.steps},
        "reward": reward,
        "done": episode.done,
    }


def openenv(service: MeasuringService, tokens: Tokens) -> Starlette:
    """Return the application below `/openenv`."""
    environments = dict[str, Environment]()

    async def act(request: Request) -> Response:
        client = authorize(request, tokens)
        if isinstance(client, Response):
            return client
        environment = environments.setdefault(client, Environment(service, client))
        try:
            if request.method == "GET":
                return JSONResponse(environment.state(), headers=HEADERS)
            given = await read_arguments(request)
            if request.url.path.endswith("/reset"):
                return JSONResponse(await environment.reset(given), headers=HEADERS)
            action = given.get("action") if isinstance(given, dict) else None
            return JSONResponse(await environment.step(action), headers=HEADERS)
        except ToolError as error:
            return error_response(STATUS[error.code], error.code, str(error))

    async def connect(socket: WebSocket) -> None:
        client = authorize(socket, tokens)
        if isinstance(client, Response):
            await socket.send_denial_response(client)
            return
        await socket.accept()
        environment = Environment(service, client)
        try:
            while (message := _message(await socket.receive_text())) != _CLOSE:
                await socket.send_text(json.dumps(await environment.answer(message)))
            await socket.close()
        except WebSocketDisconnect:
            return

    return Starlette(
        routes=[
            Route(f"{PATH}/state", act),
            Route(f"{PATH}/reset", act, methods=["POST"]),
            Route(f"{PATH}/step", act, methods=["POST"]),
            WebSocketRoute(f"{PATH}/ws", connect),
        ],
        exception_handlers=handlers(),
    )


_CLOSE = {"type": "close"}


def _message(text: str) -> object:
    """Read a message; None where it is not JSON."""
    try:
        return read_json(text.encode())
    except ToolError:
        return None
