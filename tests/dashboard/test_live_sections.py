"""Sections of a page that clients look at: a chart that takes long delays no other section."""

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import ClassVar

from planish.dashboard.live import Live
from planish.dashboard.runs import Runs
from planish.dashboard.source import Source
from planish.dashboard.views import GoneError, Rendered, Sections, View


class Changing(Source):
    """A store that changes when the test says so."""

    changed = False

    def poll(self) -> bool:
        changed, self.changed = self.changed, False
        self.version += changed
        return changed


@dataclass(frozen=True)
class Page(View):
    """A page with the number of changes, and a chart that is drawn until the test lets it end."""

    drawn_chart: threading.Event = field(default_factory=threading.Event)
    first = ("count",)
    shares: ClassVar[Mapping[str, float]] = {"count": 0.5}

    def stamp(self) -> object:
        return self.runs.source.version

    def sections(self) -> Sections:
        return {"chart": self._chart, "count": lambda: Rendered(f"version {self.runs.source.version}")}

    def _chart(self) -> Rendered:
        assert self.drawn_chart.wait(60)
        return Rendered("chart")


def test_a_cheap_section_does_not_wait_for_a_chart() -> None:
    source = Changing("main", None)
    page = Page(Runs(source), "main")

    async def follow() -> None:
        live = Live(lambda: [source])
        poller = asyncio.create_task(live.poll())
        try:
            async with asyncio.timeout(60), aclosing(live.events(page)) as events:
                for version in range(3):
                    async for message in events:
                        if f"version {version}".encode() in message:
                            break
                    source.changed = True
                page.drawn_chart.set()
                async for message in events:
                    if b'"chart": "chart"' in message:
                        break
        finally:
            page.drawn_chart.set()
            poller.cancel()

    with ThreadPoolExecutor(1) as threads:  # the main thread may have the loop of a browser
        threads.submit(asyncio.run, follow()).result()


@dataclass(frozen=True)
class Deleted(Page):
    """A page that is gone once the store has changed."""

    def stamp(self) -> object:
        if self.runs.source.version > 0:
            raise GoneError("gone")
        return 0


def test_a_chart_that_is_drawn_while_the_run_is_deleted_does_not_hide_that() -> None:
    source = Changing("main", None)
    page = Deleted(Runs(source), "main")

    async def follow() -> list[bytes]:
        live = Live(lambda: [source])
        poller = asyncio.create_task(live.poll())
        found = list[bytes]()
        try:
            async with asyncio.timeout(60), aclosing(live.events(page)) as events:
                async for message in events:
                    found.append(message)
                    if b"version 0" in message:
                        source.changed = True
                    if b"event: gone" in message:
                        break
                page.drawn_chart.set()
                with suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        async for message in events:
                            found.append(message)
        finally:
            page.drawn_chart.set()
            poller.cancel()
        return found

    with ThreadPoolExecutor(1) as threads:
        assert b"event: gone" in threads.submit(asyncio.run, follow()).result()[-1]


def test_clients_are_sent_a_change_that_another_page_saw_first() -> None:
    source = Changing("main", None)
    page = Page(Runs(source), "main")
    page.drawn_chart.set()

    async def follow() -> None:
        live = Live(lambda: [source])
        poller = asyncio.create_task(live.poll())
        try:
            async with asyncio.timeout(20), aclosing(live.events(page)) as events:
                async for message in events:
                    if b"version 0" in message:
                        await asyncio.sleep(1)  # the poller has seen this version by then
                        source.changed = True
                        source.poll()  # as a page does that is opened
                    if b"version 1" in message:
                        break
        finally:
            poller.cancel()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, follow()).result()


class Slow(Changing):
    """A store of which the third look lasts until the test ends it, and finds a change."""

    looks = 0
    looking, found = threading.Event(), threading.Event()

    def poll(self) -> bool:
        self.looks += 1
        if self.looks == 3:
            self.looking.set()
            assert self.found.wait(60)
            self.changed = True
        return super().poll()


def test_a_view_that_is_opened_during_a_poll_is_sent_what_that_finds() -> None:
    source = Slow("main", None)
    pages = [Page(Runs(source), "main") for _ in range(2)]
    for page in pages:
        page.drawn_chart.set()

    async def follow() -> None:
        live = Live(lambda: [source])
        poller = asyncio.create_task(live.poll())
        try:
            async with (
                asyncio.timeout(60),
                aclosing(live.events(pages[0])) as first,
                aclosing(live.events(pages[1])) as second,
            ):
                await anext(first)
                await asyncio.to_thread(source.looking.wait, 30)
                async for message in second:
                    if b"version 0" in message:
                        source.found.set()
                    if b"version 1" in message:
                        break
        finally:
            source.found.set()
            poller.cancel()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, follow()).result()
