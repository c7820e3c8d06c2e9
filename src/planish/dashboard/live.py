"""Live sections: one poller for each store, one publisher for each view, however many clients look at it.

All rendering together takes a fixed share of a core while a search goes on. Each section has a part of it
(see `View.shares`): the more it costs, the more seldom it is rendered, but every `_MOST_S` seconds if it has
changed. A section that was not rendered for long is rendered as soon as it changes, and all sections are once
their run has ended.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from planish.dashboard.source import Source
from planish.dashboard.views import GoneError, View

_POLL_S = 0.4
"""A store that clients look at is polled so often at most."""
_POLL_SHARE = 0.004
"""Share of a core for polling one store."""
_LEAST_S = 0.4
"""A section is rendered so often at most."""
_MOST_S = 20.0
"""The longest pause between two renderings of a section that has changed, where one view is looked at."""
_LOADING = 1
"""Renderings of a kind of section whose costs do not count: they load code, at up to a hundredfold cost."""
_PAUSE_S = 0.1
"""Between two parts of a run that is long to read."""
_SHARE = 0.008
"""Share of a core for rendering all sections of all views."""
_THREADS = 3
"""Threads that may read or wait for one store at a time."""
_KEEP_ALIVE_S = 15.0
_STILL_HERE = b": still here\n\n"
_T = TypeVar("_T")


def _message(data: object, event: str = "") -> bytes:
    """Return a server-sent event."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode("utf-8", "backslashreplace")


def poll_pause(costs_s: Collection[float]) -> float:
    """Return the seconds until a store is polled again.

    Args:
        costs_s: processor times of the last polls. A single long one may have loaded code or collected
            garbage, and must not delay updates.
    """
    usual_s = min(costs_s) if len(costs_s) > 1 else 0.0
    return max(_POLL_S, usual_s / _POLL_SHARE)


@dataclass
class Section:
    """State of a section.

    Args:
        html: as it was sent last.
        stamp: of the view when it was rendered; None where something was left out.
        due: when it may be rendered again, by the monotonic clock.
        renderings: how often it was rendered, in earlier views of the kind too.
        costs_s: processor times of the last two renderings, in earlier views of the kind too.
    """

    html: str = ""
    stamp: object = None
    due: float = 0.0
    renderings: int = 0
    costs_s: tuple[float, ...] = ()

    def schedule(self, now: float, cost_s: float, share: float, views: int = 1) -> None:
        """Set when it may be rendered again.

        Args:
            now: when it was rendered, by the monotonic clock.
            cost_s: processor time that it took, in seconds.
            share: of a core that its renderings may take, where one view is looked at.
            views: how many are looked at, which divide the share.
        """
        # Of three, since single ones may have loaded something, too, or collected garbage.
        costs_s = *self.costs_s, cost_s
        usual_s, self.costs_s = min(costs_s), costs_s[-2:]
        self.renderings += 1
        pause = views * min(usual_s / share, _MOST_S) if self.renderings > _LOADING else 0.0
        self.due = now + max(pause, _LEAST_S)


@dataclass
class _Publisher:
    """A view that clients look at.

    Args:
        view: what they see.
        sections: by name.
        clients: a queue of messages for each.
        gone: why there is nothing to be seen any more; empty where there is.
        changed: for each task, set when its store has changed.
        tasks: render and send: one the sections that come first and are cheap, which do not wait until the
            other one has drawn a chart.
    """

    view: View
    sections: dict[str, Section]
    clients: set[asyncio.Queue[bytes]] = field(default_factory=set["asyncio.Queue[bytes]"])
    gone: str = ""
    changed: Sequence[asyncio.Event] = field(default_factory=lambda: (asyncio.Event(), asyncio.Event()))
    tasks: Sequence[asyncio.Task[None]] = ()

    def send(self, message: bytes) -> None:
        """Send a message to all clients; one that does not read gets no more until it does."""
        for queue in self.clients:
            if queue.full():  # it is behind: what it missed comes again, as a whole
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(self.everything())
            else:
                queue.put_nowait(message)

    def everything(self) -> bytes:
        """Return the message with all sections."""
        if self.gone:
            return _message(self.gone, "gone")
        return _message({name: each.html for name, each in self.sections.items() if each.html})


class Live:
    """Sends clients what changes.

    Args:
        sources: returns the stores.
    """

    def __init__(self, sources: Callable[[], Iterable[Source]]) -> None:
        self._sources = sources
        self._publishers: dict[View, _Publisher] = {}
        self._rendered = dict[tuple[type[View], str], Section]()
        self._threads = defaultdict[str, CapacityLimiter](lambda: CapacityLimiter(_THREADS))
        self._ended = False

    async def in_thread(self, work: Callable[[], _T], key: str = "") -> _T:
        """Return what work returns that may wait for a store.

        Args:
            work: what is done.
            key: of the store. Each has threads of its own, so that one that does not answer delays no other.
        """
        return await to_thread.run_sync(work, limiter=self._threads[key], abandon_on_cancel=True)

    async def poll(self) -> None:
        """Look for changes until it is canceled."""
        pollers = dict[str, asyncio.Task[None]]()
        try:
            while True:
                for source in self._sources():
                    if source.key not in pollers:
                        pollers[source.key] = asyncio.create_task(self._poll(source))
                await asyncio.sleep(_POLL_S)
        finally:
            for poller in pollers.values():
                poller.cancel()

    async def _poll(self, source: Source) -> None:
        """Look for changes of a store, only while clients look at it."""

        def poll() -> tuple[int, float]:
            began = time.thread_time()
            source.poll()
            return source.version, time.thread_time() - began

        # Not what `poll` returns: a page that is opened polls, too, and may be the first to see a change.
        pause, known, costs_s = _POLL_S, -1, deque[float](maxlen=3)
        while True:
            await asyncio.sleep(pause)
            if self._shown(source.key):
                version, took = await self.in_thread(poll, source.key)
                costs_s.append(took)
                pause = poll_pause(costs_s)
                changed, known = version != known, version
                # Those of now: a view that was opened during the poll may have been rendered before its end.
                for publisher in self._shown(source.key) if changed else ():
                    for event in publisher.changed:
                        event.set()

    def _shown(self, key: str) -> list[_Publisher]:
        """Return the publishers of a source's views."""
        return [publisher for view, publisher in self._publishers.items() if view.key == key]

    async def end(self) -> None:
        """Let all clients go."""
        self._ended = True
        for publisher in self._publishers.values():
            publisher.send(_STILL_HERE)

    async def events(self, view: View) -> AsyncGenerator[bytes]:
        """Yield the events of a view: first all sections, then those that change."""
        publisher = self._publishers.get(view)
        if publisher is None:
            kind = type(view)
            sections = {name: self._begin(kind, name) for name in view.sections()}
            publisher = self._publishers[view] = _Publisher(view, sections)
            first = {name: each for name, each in sections.items() if name in view.first}
            others = {name: each for name, each in sections.items() if name not in view.first}
            publisher.tasks = [
                asyncio.create_task(self._publish(publisher, group, changed))
                for group, changed in zip((first, others), publisher.changed, strict=True)
            ]
        queue = asyncio.Queue[bytes](8)
        publisher.clients.add(queue)
        try:
            yield publisher.everything()
            while not self._ended:
                try:
                    yield await asyncio.wait_for(queue.get(), _KEEP_ALIVE_S)
                except TimeoutError:
                    yield _STILL_HERE
            yield _message("", "bye")
        finally:
            publisher.clients.discard(queue)
            if not publisher.clients and self._publishers.get(view) is publisher:
                del self._publishers[view]
                for task in publisher.tasks:
                    task.cancel()

    def _begin(self, kind: type[View], name: str) -> Section:
        """Return a section of a new view, which is expected to cost what the last of its kind did."""
        last = self._rendered.get((kind, name), Section())
        return Section(renderings=last.renderings, costs_s=last.costs_s)

    async def _publish(
        self, publisher: _Publisher, sections: Mapping[str, Section], changed: asyncio.Event
    ) -> None:
        """Render the sections that have changed, when they are due, and send them."""
        while True:
            changed.clear()
            with anyio.move_on_after(await self._render(publisher, sections)):
                await changed.wait()

    async def _render(self, publisher: _Publisher, sections: Mapping[str, Section]) -> float | None:
        """Render what is due; return the seconds until something else is, None where nothing will be."""
        view = publisher.view
        try:
            stamp = view.stamp()
        except GoneError as error:
            if publisher.gone != str(error):
                publisher.gone = str(error)
                publisher.send(_message(publisher.gone, "gone"))
            return None
        publisher.gone = ""
        left = list[float]()
        for name, section in sections.items():
            if section.stamp == stamp:
                continue
            now = time.monotonic()
            if section.due > now and not view.is_over():
                left.append(section.due - now)
                continue

            def render(name: str = name) -> tuple[str, bool, float]:
                began = time.thread_time()
                html, whole = view.render_live(name)
                return html, whole, time.thread_time() - began

            html, whole, took = await self.in_thread(render, view.key)
            if publisher.gone:  # the other task has sent so meanwhile, which this section would hide
                return None
            if html != section.html:
                section.html = html
                publisher.send(_message({name: html}))
            if not whole:  # what takes longer to draw than to read is drawn when all is read
                return _PAUSE_S
            section.stamp = stamp
            share = _SHARE * view.share(name)
            section.schedule(time.monotonic(), took, share, len(self._publishers))
            self._rendered[type(view), name] = section
        return min(left, default=None)
