"""The server of the dashboard: its socket, its address, the browser, and its end."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from importlib import import_module

import uvicorn
from starlette.types import ASGIApp

from planish.core import PlanishError
from planish.core.files import StrPath
from planish.dashboard.app import MAIN, Shown, application
from planish.dashboard.runs import Runs
from planish.dashboard.security import TOKEN
from planish.dashboard.source import Source
from planish.dashboard.views import compile_templates
from planish.sandbox.scratch import Scratch

_NICE = 10
"""Niceness of the server: searches are measured on the same machine."""
_CONNECTIONS = 1000
"""Connections at a time; more are answered with status 503."""
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(
    location: StrPath | None, host: str, port: int, *, browse: bool, say: Callable[[str], None]
) -> None:
    """Serve the pages of a store until a signal ends it.

    Args:
        location: the store: a file or a URL; None for the default one.
        host: the address to listen at. Where other machines can reach it, pages need a token.
        port: 0 chooses a free one.
        browse: whether a browser is opened.
        say: is called with each line for the user.

    Raises:
        StoreError: the store cannot be read.
        PlanishError: the address cannot be listened at.
    """
    source = Source(MAIN, location)
    source.open()
    # Now, and not beside the first search: they take half a second.
    import_module("planish.plot")
    compile_templates()
    shown = Shown({MAIN: Runs(source)}, Scratch())
    try:
        with listening(host, port) as listener:
            bound, chosen = listener.getsockname()[:2]
            token = "" if ipaddress.ip_address(bound).is_loopback else secrets.token_urlsafe(24)
            address, *others = (url_of(name, chosen, token) for name in names_of(host, bound))
            say(f"Dashboard of {source.label}: {address}")
            for other in others:
                say(f"The same at {other}")
            say("Ctrl-C ends it.")
            if browse and not _browse(address):
                say("No browser was found: open the address in one.")
            os.nice(_NICE)
            run_server(application(shown, token, chosen), shown, listener)
    finally:
        shown.close()


@contextmanager
def listening(host: str, port: int) -> Generator[socket.socket]:
    """Listen at an address.

    Raises:
        PlanishError: it cannot be.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        listener = socket.create_server(address[:2], family=family, backlog=128)
    except OSError as error:
        raise _refused(host, port, error) from error
    with listener:
        yield listener


def _refused(host: str, port: int, error: OSError) -> PlanishError:
    if error.errno == errno.EADDRINUSE:
        hint = "Name another one with port=; port=0 takes any that is free."
        return PlanishError(f"port {port} of {host} is in use", hint)
    what = f"port {port} of {host} cannot be listened at: {error.strerror}"
    return PlanishError(what, "Name another one with host= and port=.")


def names_of(host: str, bound: str) -> list[str]:
    """Return the names and addresses by which browsers reach this machine, the likeliest first.

    Args:
        host: as it was asked for.
        bound: the address that is listened at.
    """
    address = ipaddress.ip_address(bound)
    if not address.is_unspecified:
        return [host]
    name, own = socket.gethostname(), _own_addresses(address.version)
    # A name may be known to this machine alone, as one of its own.
    known = [name] if set(own) & _resolved(name) else []
    return [*known, *own] or [name]


def _own_addresses(version: int) -> list[str]:
    """Return the address from which this machine sends to others; none where it has no network."""
    family, outside = (socket.AF_INET, "192.0.2.1") if version == 4 else (socket.AF_INET6, "2001:db8::1")
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as asking:
        asking.connect((outside, 9))  # chooses a route; nothing is sent
        return [asking.getsockname()[0]]
    return []


def _resolved(name: str) -> set[str]:
    """Return the addresses of a name; none where it is not known."""
    with suppress(OSError):
        return {str(each[4][0]) for each in socket.getaddrinfo(name, None)}
    return set()


def url_of(name: str, port: int, token: str) -> str:
    """Return the address of the pages."""
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/" + (f"?{TOKEN}={token}" if token else "")


def _browse(address: str) -> bool:
    """Open a browser, where this machine has one with a window; return whether it does."""
    has_window = sys.platform == "darwin" or any(
        map(os.environ.get, ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))
    )
    try:
        browser = webbrowser.get() if has_window else None
    except webbrowser.Error:
        browser = None
    if browser is None:
        return False
    # A browser may not return before it is closed.
    threading.Thread(target=browser.open, args=(address,), daemon=True).start()
    return True


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def _nothing() -> AsyncGenerator[None]:
    yield


def run_server(
    app: ASGIApp,
    shown: Shown,
    listener: socket.socket,
    beside: AbstractAsyncContextManager[None] | None = None,
    on_end: Callable[[], None] = lambda: None,
    message_bytes: int = 0,
) -> None:
    """Run an application that has the pages until a signal ends it.

    Args:
        app: answers.
        shown: what its pages show.
        listener: the socket.
        beside: a context in which it runs.
        on_end: is called, in a thread, once a signal has come: it lets answers that are waited for end.
        message_bytes: of a message over a WebSocket at most; 0: there are none. They need the package
            `websockets`.
    """
    asyncio.run(_serve(app, shown, listener, beside or _nothing(), on_end, message_bytes))


async def _serve(
    app: ASGIApp,
    shown: Shown,
    listener: socket.socket,
    beside: AbstractAsyncContextManager[None],
    on_end: Callable[[], None],
    message_bytes: int,
) -> None:
    config = uvicorn.Config(
        app,
        http="h11",
        ws="auto" if message_bytes else "none",
        ws_max_size=message_bytes,
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=2,
    )
    server, loop = _Server(config), asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in _STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, ended.set)

    async def end() -> None:
        await ended.wait()
        await shown.live.end()
        await asyncio.to_thread(on_end)
        server.should_exit = True

    ending = asyncio.create_task(end())
    try:
        async with beside:
            await server.serve(sockets=[listener])
    finally:
        ending.cancel()
