"""Collector of reports: one process between the head and its measuring hosts.

A message of Ray costs the head half a millisecond. The collector exchanges one with each host, and gives the
head the reports that arrive within a moment as one.
"""

from __future__ import annotations

import asyncio
import pickle
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from planish.core import LostError
from planish.measure.ray_connection import last_line, start_actor

GATHER_S = 0.1
"""Seconds for which further reports are awaited after the first one, unless none is expected."""
ANSWER_S = 0.5
"""Seconds after which the head is answered, also where no report has arrived."""
_START_S = 120.0


@dataclass
class _Client:
    """Executor of the head.

    Args:
        expected: messages that were passed on, and whose reports have not arrived.
        reports: that have arrived, by the numbers of the messages; of a host that was lost the error's text.
        arrived: is set while there are reports.
        complete: is set while none is expected.
    """

    expected: int = 0
    reports: list[tuple[int, bytes | str]] = field(default_factory=list[tuple[int, bytes | str]])
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    complete: asyncio.Event = field(default_factory=asyncio.Event)


class Collector:
    """Passes messages on to hosts, and returns their reports together; an asynchronous actor.

    It keeps nothing that the head does not know: a lost one is replaced.
    """

    def __init__(self) -> None:
        self._actors: dict[str, Any] = {}
        self._clients: defaultdict[int, _Client] = defaultdict(_Client)
        self._tasks: set[asyncio.Task[None]] = set()

    async def exchange(self, key: int, messages: bytes, joining: Mapping[str, Any]) -> bytes:
        """Pass messages on, and return the reports that arrive next, pickled, with the numbers of messages.

        Args:
            key: of the executor.
            messages: triples of a number, the id of a node, and a message for its host; pickled.
            joining: actors of hosts that receive their first message, by the ids of their nodes.
        """
        client = self._clients[key]
        self._actors |= joining
        for number, node, message in pickle.loads(messages):
            client.expected += 1
            client.complete.clear()
            task = asyncio.ensure_future(self._pass_on(client, number, self._actors[node], message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        await _set_within(client.arrived, ANSWER_S)
        if client.reports:
            await _set_within(client.complete, GATHER_S)
        reports, client.reports = client.reports, []
        client.arrived.clear()
        return pickle.dumps(reports)

    async def ready(self) -> None:
        """Return once it has started."""

    async def _pass_on(self, client: _Client, number: int, actor: Any, message: bytes) -> None:
        report: bytes | str
        try:
            report = await actor.exchange.remote(message)
        except Exception as error:  # noqa: BLE001  (an actor or node that died, an error of its process)
            report = last_line(error)
        client.reports.append((number, report))
        client.arrived.set()
        client.expected -= 1
        if not client.expected:
            client.complete.set()


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    """Wait until an event is set, up to a timeout in seconds."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


def start_collector() -> Any:
    """Start a collector on the machine of this process, and return its handle.

    Raises:
        LostError: it does not start.
    """
    import ray  # pyright: ignore[reportMissingImports]

    actor = start_actor(Collector, ray.get_runtime_context().get_node_id())
    try:
        ray.get(actor.ready.remote(), timeout=_START_S)
    except Exception as error:
        raise LostError(
            f"the collector of reports does not start on this machine: {last_line(error)}",
            "Run the same command to resume.",
        ) from error
    return actor
