"""Checks of each request, and the headers of each answer.

A page on this machine is open to every site that the user's browser visits, unless it is careful:

- a name of an attacker's that resolves to this machine (DNS rebinding) is refused by the header `Host`, which
  has to name the machine itself;
- a form or script of another site may send requests, but what changes something needs an `Origin` of ours;
- texts of programs and of failures are not trusted, so scripts and styles run from files of planish alone.

Where the page can be reached from other machines, every request needs a token, which the printed address
holds: whoever opens that address is given a cookie. Then the name by which the machine is reached does not
matter, since the cookie is sent to that name alone.
"""

from __future__ import annotations

import hmac
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "token"
"""The parameter of an address that holds the token."""
_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_READING = frozenset({"GET", "HEAD"})


class Guard:
    """Middleware that lets requests pass that the user's own browser made.

    Args:
        app: what answers.
        token: that each request needs; empty where other machines cannot reach the page.
        port: that the page is served at, which its cookie is named by.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._cookie = f"planish-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        answer = self._refusal(Request(scope)) or self._app
        await answer(scope, receive, send_guarded)

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that is not let through; None for others."""
        host = request.headers.get("host", "")
        if self._token:
            given = request.query_params.get(TOKEN)
            if given is not None and self._is_token(given) and request.method in _READING:
                return self._admission(request)
            if not self._is_token(request.cookies.get(self._cookie, "")):
                return _refused("Open the address that planish dashboard printed: it holds a token.")
        elif _name(host) not in _OWN_NAMES:
            return _refused(f"This page is at localhost, and not at {_name(host)!r}.")
        if request.method not in _READING and urlsplit(request.headers.get("origin", "")).netloc != host:
            return _refused("Another site sent this.")
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _admission(self, request: Request) -> Response:
        """Return the answer that leaves the token in a cookie, and not in the address."""
        rest = urlencode([pair for pair in request.query_params.multi_items() if pair[0] != TOKEN])
        answer = RedirectResponse(request.url.path + (f"?{rest}" if rest else ""), 303)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="lax", path="/")
        return answer


def _name(host: str) -> str:
    """Return the name in a header `Host`, without the port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _refused(why: str) -> Response:
    return PlainTextResponse(f"{why}\n", 403)
