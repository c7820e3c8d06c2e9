"""Process of the service: its engine, its socket with the dashboard's pages beside the tools, and its end."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import secrets
from collections.abc import Callable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from starlette.types import ASGIApp, Receive, Scope, Send

from planish.core import PlanishError, Program
from planish.core.files import StrPath
from planish.core.installation import install_command
from planish.core.level import Level
from planish.dashboard.app import MAIN, Shown, application
from planish.dashboard.runs import Runs
from planish.dashboard.server import listening, names_of, run_server, url_of
from planish.dashboard.source import Source
from planish.sandbox.scratch import Scratch
from planish.serve.http import BODY_MOST, Tokens, api
from planish.serve.openenv import PATH, openenv
from planish.serve.service import MeasuringService
from planish.store import open_store
from planish.tuning.settings import Settings

AGENT = "agent"
"""The client that there is where none is named."""


def read_tokens(path: Path) -> dict[str, str]:
    """Read the tokens of clients from a file; make it, with one client, where there is none.

    Args:
        path: a line `NAME TOKEN` for each client.

    Raises:
        PlanishError: it cannot be read or made, or a line is not of that form.
    """
    try:
        if not path.exists():
            line = f"{AGENT} {secrets.token_urlsafe(24)}\n"
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(line)
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PlanishError(f"the tokens cannot be read from {path}: {error}", "Name another file.") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or len(words[1]) < 16 or words[0] in found or words[1] in found.values():
            what = f"line {number} of {path} is not NAME TOKEN, with a token of at least 16 characters"
            raise PlanishError(what, "Write one line for each client, each with a token of its own.")
        found[words[0]] = words[1]
    if not found:
        raise PlanishError(f"{path} names no client", "Write a line NAME TOKEN, or name a new file.")
    return found


class Router:
    """Application that sends requests to the tools or to the pages.

    Args:
        pages: the dashboard.
        tools: path prefix to its application.
    """

    def __init__(self, pages: ASGIApp, tools: Mapping[str, ASGIApp]) -> None:
        self._pages, self._tools = pages, tools

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        path = scope.get("path", "")
        for prefix, app in self._tools.items():
            if scope["type"] != "lifespan" and (path == prefix or path.startswith(f"{prefix}/")):
                await app(scope, receive, send)
                return
        await self._pages(scope, receive, send)


def serve_tools(
    level: Level,
    program: Program,
    settings: Settings,
    location: StrPath | None,
    host: str,
    port: int,
    tokens: Mapping[str, str],
    quota: int | None,
    compare_s: float,
    say: Callable[[str], None],
) -> None:
    """Serve the tools and the dashboard of a task until a signal ends it.

    Args:
        level: of the program.
        program: that clients tune.
        settings: objectives, space, cores and seed.
        location: the store: a file or a URL; None for the default one.
        host: the address to listen at. Where other machines can reach it, the pages need a token too.
        port: 0 chooses a free one.
        tokens: client name to token.
        quota: candidates that each client may have measured; None for no limit.
        compare_s: seconds that a comparison may take.
        say: is called with each line for the user.

    Raises:
        PlanishError: the address cannot be listened at, or the baseline cannot be measured.
    """
    with listening(host, port) as listener, open_store(location) as store:
        service = MeasuringService(level, program, settings, store, quota, compare_s)
        shown = None
        try:
            service.start()
            source = Source(MAIN, location)
            source.open()
            shown = Shown({MAIN: Runs(source)}, Scratch())
            bound, chosen = listener.getsockname()[:2]
            page_token = "" if ipaddress.ip_address(bound).is_loopback else secrets.token_urlsafe(24)
            known = Tokens(tokens)
            tools: dict[str, ASGIApp] = {"/api": api(service, known), PATH: openenv(service, known)}
            beside = None
            if mcp := _mcp(say):
                tools[mcp.PATH], running = mcp.over_http(service, known)
                beside = running()
            app = Router(application(shown, page_token, chosen), tools)
            # What is loaded by now stays: to look through it takes tens of milliseconds, each time.
            gc.collect()
            gc.freeze()
            # Last, since clients may call from now on.
            for name in names_of(host, bound):
                address = url_of(name, chosen, "")
                also = f", as MCP {address}mcp" if beside is not None else ""
                say(f"Tools of {len(tokens)} client{'' if len(tokens) == 1 else 's'}: {address}api{also}")
                say(f"Dashboard of {source.label}: {url_of(name, chosen, page_token)}")
            say("Ctrl-C ends it.")
            run_server(app, shown, listener, beside, service.stop, BODY_MOST)
        finally:
            service.stop()
            if shown is not None:
                shown.close()


def _mcp(say: Callable[[str], None]) -> ModuleType | None:
    """Return the interface by MCP; None where its package is missing, or too old, which is said."""
    if not find_spec("mcp"):
        return None
    try:
        from planish.serve import mcp
    except ImportError:
        say(f"The tools are not served as MCP: mcp {version('mcp')} is too old: {install_command('serve')}")
        return None
    return mcp


def serve_streams(
    level: Level,
    program: Program,
    settings: Settings,
    location: StrPath | None,
    quota: int | None,
    compare_s: float,
) -> None:
    """Serve the tools as MCP over standard input and output, until the client closes them.

    Args:
        level: of the program.
        program: that the client tunes.
        settings: objectives, space, cores and seed.
        location: the store: a file or a URL; None for the default one.
        quota: candidates that the client may have measured; None for no limit.
        compare_s: seconds that a comparison may take.

    Raises:
        PlanishError: the baseline cannot be measured.
    """
    from planish.serve.mcp import over_streams

    with open_store(location) as store:
        service = MeasuringService(level, program, settings, store, quota, compare_s)
        try:
            service.start()
            asyncio.run(over_streams(service))
        finally:
            service.stop()
