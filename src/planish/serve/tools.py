"""Tools of the service by name: what each takes, and how it is called. HTTP and MCP offer the same ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from anyio import CapacityLimiter, to_thread

from planish.serve.served_run import UnavailableError
from planish.serve.service import RATE, MeasuringService, PendingAnswer, ToolError

_STEP = {
    "type": "array",
    "description": "[NAME, {OPTION: VALUE}], as `describe` and `legal_steps` have them",
    "prefixItems": [{"type": "string"}, {"type": "object"}],
    "minItems": 2,
    "maxItems": 2,
}
_STEPS = {"type": "array", "items": _STEP, "description": "the steps of a candidate, in their order"}
_TEXT = {
    "type": "string",
    "description": "a candidate as text, in place of steps, in the language that `text` of `describe` names",
}
_COUNT = {"type": "integer", "minimum": 0}
_COMPUTING = CapacityLimiter(1)
"""Answers are computed in one thread: each further one would have the loop of events wait for it, too."""


@dataclass(frozen=True)
class Tool:
    """A tool.

    Args:
        name: as clients call it.
        summary: what it does, for people and for agents.
        arguments: name to its JSON schema.
        work: carries it out; returns the answer, or what gives it once it is there.
    """

    name: str
    summary: str
    arguments: Mapping[str, Mapping[str, Any]]
    work: Callable[..., Any]

    @property
    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments."""
        return {
            "type": "object",
            "properties": dict(self.arguments),
            "additionalProperties": False,
        }


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "describe",
            "Describe the task: program, objectives, target, baseline, kinds of steps, rules and limits.",
            {},
            MeasuringService.describe,
        ),
        Tool(
            "legal_steps",
            "List what may follow a candidate: steps, or where there are none, neighboring candidates.",
            {"steps": _STEPS},
            MeasuringService.legal_steps,
        ),
        Tool(
            "evaluate",
            "Verify and measure a candidate. A single measurement is not conclusive: see `compare`.",
            {"steps": _STEPS, "text": _TEXT},
            MeasuringService.evaluate,
        ),
        Tool(
            "compare",
            "Measure the best candidates again, interleaved with the baseline, in fresh processes; return "
            "the verdict with its 95 % confidence interval. Takes seconds to minutes.",
            {},
            MeasuringService.compare,
        ),
        Tool(
            "history",
            "List candidates that were measured, the newest last, of all clients.",
            {"after": _COUNT, "limit": _COUNT},
            MeasuringService.history,
        ),
        Tool(
            "best",
            "Return the best candidate so far, and the last comparison.",
            {},
            MeasuringService.best,
        ),
    )
}


async def call(service: MeasuringService, client: str, name: str, arguments: object) -> dict[str, Any]:
    """Call a tool for a client.

    Raises:
        ToolError: there is no such tool, or it cannot do what is asked for.
    """
    tool = TOOLS.get(name)
    if tool is None:
        raise ToolError("unknown_tool", f"There is no such tool; there are: {', '.join(TOOLS)}.")
    given = {} if arguments is None else arguments
    if not isinstance(given, dict):
        raise ToolError("bad_request", "The arguments are a JSON object.")
    for key in given:
        if key not in tool.arguments:
            known = ", ".join(tool.arguments) or "none"
            raise ToolError("bad_request", f"'{name}' has no argument '{str(key)[:100]}'; it has: {known}.")
    if not service.admit(client):
        raise ToolError("busy", f"More than {RATE:g} requests a second. Wait a moment.")
    if name == "describe":  # at hand, and to be answered at once while others are computed
        return service.describe(client)
    found: Any = await to_thread.run_sync(partial(tool.work, service, client, **given), limiter=_COMPUTING)
    if isinstance(found, PendingAnswer):
        try:
            result = await asyncio.wrap_future(found.result)
        except UnavailableError as error:
            raise ToolError("unavailable", str(error)) from None
        found = await to_thread.run_sync(found.make, result, limiter=_COMPUTING)
    return dict(found)
