"""The pages as a web application (ASGI), with the page of what `planish cc` compiled."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from planish.cc.object_cache import open_cache
from planish.cc.reporting import Compiled, builds, share
from planish.core import PlanishError, StoreError
from planish.core.arguments import as_options
from planish.dashboard.live import Live
from planish.dashboard.run_list import CompareView, RunsQuery, RunsView
from planish.dashboard.run_page import RunView, TrialsQuery
from planish.dashboard.runs import Runs
from planish.dashboard.security import Guard
from planish.dashboard.source import Source
from planish.dashboard.views import View, fill
from planish.report.page import charts_code
from planish.sandbox.scratch import Scratch

MAIN = "main"
"""The key of the store that the dashboard was started for."""
UPLOAD_MOST = 1 << 30
"""Bytes of stores that are opened from the page, all together."""
_ANSWER_S = 60.0
_COMPARED_MOST = 12
_Shown = TypeVar("_Shown", bound=View)


class _TooLargeError(Exception):
    """A file is larger than what may be kept of uploaded ones."""


@dataclass
class Shown:
    """Services of the pages.

    Args:
        runs: of each store, by its key.
        scratch: where stores are kept that are opened from the page.
        live: sends what changes.
        used: bytes of the stores in the scratch folder.
    """

    runs: dict[str, Runs]
    scratch: Scratch
    live: Live = field(init=False)
    used: int = 0

    def __post_init__(self) -> None:
        self.live = Live(lambda: [each.source for each in self.runs.values()])

    def close(self) -> None:
        """Close the stores, and remove the copies."""
        for each in self.runs.values():
            each.source.close()
        self.scratch.remove()


def application(shown: Shown, token: str, port: int) -> Starlette:
    """Return the application.

    Args:
        shown: what it shows; its main store is open.
        token: that each request needs; empty for none.
        port: that it is served at.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        poller = asyncio.create_task(shown.live.poll())
        try:
            yield
        finally:
            poller.cancel()

    pages = _Pages(shown)
    routes = [
        Route("/", pages.home),
        Route("/static/{name}", _static),
        Route("/builds", pages.builds),
        Route("/open", pages.open, methods=["POST"]),
        Route("/s/{key}", pages.show(pages.runs_view)),
        Route("/s/{key}/events", pages.events(pages.runs_view)),
        Route("/s/{key}/compare", pages.show(pages.compare_view)),
        Route("/s/{key}/compare/events", pages.events(pages.compare_view)),
        Route("/s/{key}/runs/{run}", pages.show(pages.run_view)),
        Route("/s/{key}/runs/{run}/events", pages.events(pages.run_view)),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, token=token, port=port)],
        exception_handlers={HTTPException: pages.refused, PlanishError: pages.failed},
        lifespan=lifespan,
    )


_MakeView = Callable[[Request], View]


class _Pages:
    """Answers of the application."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    async def home(self, _: Request) -> Response:
        return RedirectResponse(f"/s/{MAIN}", 303)

    def show(self, make: _MakeView) -> Callable[[Request], Any]:
        """Return the answer with a page as a whole."""

        async def answer(request: Request) -> Response:
            view = make(request)

            def render() -> str:
                view.runs.source.poll()
                view.stamp()
                return self._page(
                    request,
                    view.template,
                    events=f"{request.url.path}/events",
                    sections=_sections(view, request.headers.get("hx-target", "")),
                    **vars(view),
                    drawn=view.drawn,
                    **view.page(),
                )

            try:
                async with asyncio.timeout(_ANSWER_S):
                    return HTMLResponse(_encoded(await self._shown.live.in_thread(render, view.key)))
            except TimeoutError:
                raise HTTPException(503, f"The store {view.runs.source.label} does not answer.") from None

        return answer

    def events(self, make: _MakeView) -> Callable[[Request], Any]:
        """Return the answer with a page's events."""

        async def answer(request: Request) -> Response:
            stream = self._shown.live.events(make(request))
            return StreamingResponse(stream, media_type="text/event-stream")

        return answer

    def runs_view(self, request: Request) -> RunsView:
        given = request.query_params
        query = RunsQuery(
            text=given.get("text", "")[:200],
            level=given.get("level", ""),
            status=given.get("status", ""),
            verdict=given.get("verdict", ""),
            sort=given.get("sort", "age"),
            page=_number(given.get("page", "")),
        )
        return RunsView(self._runs(request), request.path_params["key"], query)

    def run_view(self, request: Request) -> RunView:
        given, runs = request.query_params, self._runs(request)
        query = TrialsQuery(
            given.get("outcome", ""), given.get("order", "newest"), _number(given.get("page", ""))
        )
        return RunView(runs, request.path_params["key"], request.path_params["run"], query)

    def compare_view(self, request: Request) -> CompareView:
        chosen = tuple(dict.fromkeys(request.query_params.getlist("run")))[:_COMPARED_MOST]
        return CompareView(self._runs(request), request.path_params["key"], chosen)

    def _runs(self, request: Request) -> Runs:
        found = self._shown.runs.get(request.path_params["key"])
        if found is None:
            raise HTTPException(404, "This store is not open here any more.")
        return found

    async def builds(self, request: Request) -> Response:
        """Show what `planish cc` compiled."""

        def render() -> str:
            contents = builds_contents(request.query_params.get("folder", ""))
            return self._page(request, "builds.html.jinja", events="", key="", **contents)

        return HTMLResponse(_encoded(await self._shown.live.in_thread(render)))

    async def open(self, request: Request) -> Response:
        """Open a store that is sent."""
        name = Path(request.query_params.get("name", "") or "store").name
        key = f"{len(self._shown.runs)}"
        path = self._shown.scratch.path / f"{key}.db"
        try:
            await self._receive(request, path)
            source = Source(key, path, label=name)
            await self._shown.live.in_thread(source.open, key)
        except (StoreError, _TooLargeError, ClientDisconnect, OSError) as error:
            path.unlink(missing_ok=True)
            return JSONResponse({"error": as_options(str(error)).replace(str(path), name)})
        self._shown.runs[key] = Runs(source)
        return JSONResponse({"page": f"/s/{key}"})

    async def _receive(self, request: Request, path: Path) -> None:
        with path.open("wb") as file:
            async for chunk in request.stream():
                self._shown.used += len(chunk)
                if self._shown.used > UPLOAD_MOST:
                    self._shown.used -= file.tell()
                    raise _TooLargeError(
                        f"The file is larger than {UPLOAD_MOST >> 20:,} MiB: name it by store=."
                    )
                file.write(chunk)

    async def refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return self._message(
            request, "Not found" if error.status_code == 404 else "Sorry", error.detail, error.status_code
        )

    async def failed(self, request: Request, error: Exception) -> Response:
        return self._message(request, "Not shown", as_options(str(error)), 404)

    def _message(self, request: Request, headline: str, text: str, status: int) -> Response:
        page = self._page(request, "message.html.jinja", headline=headline, text=text, events="", key="")
        return HTMLResponse(_encoded(page), status)

    def _page(self, request: Request, template: str, **contents: Any) -> str:
        del request
        sources = [each.source for each in self._shown.runs.values()]
        shared: dict[str, Any] = {"sources": sources, "builds": has_builds(), "drawn": False}
        return fill(template, **{**shared, **contents})


def _sections(view: View, wanted: str) -> Mapping[str, str]:
    """Return the sections that come with the page; the others are sent by its events.

    Args:
        view: of the page.
        wanted: the section that takes the place of an older one; empty where the page is opened.
    """
    names = (wanted,) if wanted in view.sections() else view.first
    return {
        name: view.render(name).html if name in names else f'<section id="{name}"></section>'
        for name in view.sections()
    }


def _encoded(text: str) -> bytes:
    # What failed programs say may hold halves of characters.
    return text.encode("utf-8", "backslashreplace")


def _number(text: str) -> int:
    return int(text) if re.fullmatch("[1-9][0-9]{0,6}", text) else 1


_TYPES = {".js": "text/javascript", ".css": "text/css"}


@cache
def _contents(name: str) -> bytes | None:
    """Return a file of the page; None where there is none of this name."""
    if name == "plotly.js":
        return charts_code()
    for package, folder in (("planish.dashboard", "static"), ("planish.report", "templates")):
        found = files(package) / folder / name
        if re.fullmatch(r"[a-z]+\.(js|css)", name) and found.is_file():
            return found.read_bytes()
    return None


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    found = _contents(name)
    if found is None:
        raise HTTPException(404, "There is no such file.")
    headers: Mapping[str, str] = {"Cache-Control": "max-age=3600"}
    return Response(found, media_type=_TYPES[Path(name).suffix], headers=headers)


_FILES_MOST = 1000


def has_builds() -> bool:
    """Return whether `planish cc` has compiled something here."""
    return (Path(open_cache().folder) / "builds").is_dir()


def builds_contents(folder: str) -> Mapping[str, Any]:
    """Return what the page shows.

    Args:
        folder: only objects in or below it; empty for all.
    """
    done = builds(open_cache().folder, Path(folder or "/"))
    sizes = [one.text for one in done if one.text]
    before, after = (sum(column) for column in zip(*sizes, strict=True)) if sizes else (0, 0)
    return {
        "folder": folder,
        "folders": sorted({str(Path(one.output).parent) for one in done})[:_FILES_MOST],
        "rows": [_row(one) for one in done[:_FILES_MOST]],
        "count": len(done),
        "before": before,
        "after": after,
        "share": share(before, after),
    }


def _row(one: Compiled) -> Mapping[str, Any]:
    before, after = one.text or (0, 0)
    return {
        "one": one,
        "saved": share(before, after) if one.text else "",
        "functions": sorted(one.functions, key=lambda gain: gain.after - gain.before),
        "faster": _faster(one),
    }


def _faster(one: Compiled) -> Sequence[str]:
    return [
        f"{value:.3f} times as fast ({low:.3f} to {high:.3f}) by {each.source}"
        for each in one.faster or ()
        for value, low, high in [each.times]
    ]
