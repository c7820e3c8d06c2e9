"""HTTP interface of the service: a POST request for each tool, answers in JSON, and an OpenAPI document."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from planish.serve.service import ErrorCode, MeasuringService, ToolError
from planish.serve.tools import TOOLS, call

BODY_MOST = 256 * 1024
"""Bytes of a request's body."""
_DISCARDED_MOST = 4 << 20
_BODY_S = 10.0
"""Seconds in which a body must be there."""
STATUS: Mapping[ErrorCode, int] = {
    "bad_request": 400,
    "unknown_step": 422,
    "unknown_tool": 404,
    "busy": 429,
    "quota": 429,
    "unavailable": 503,
}
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Tokens:
    """The tokens of clients.

    Args:
        clients: name to token.
    """

    def __init__(self, clients: Mapping[str, str]) -> None:
        self._clients = {name: token.encode() for name, token in clients.items()}

    def client(self, header: str | None) -> str | None:
        """Return whose token an `Authorization` header has; None where it is none of ours.

        The token follows `Bearer`, or is the password of `Basic`, which is all that some clients can send.
        """
        kind, _, text = (header or "").partition(" ")
        given, found = text.strip().encode("utf-8", "replace"), None
        if kind.lower() == "basic":
            with suppress(ValueError):
                given = base64.b64decode(given, validate=True).partition(b":")[2]
        for name, known in self._clients.items():  # all of them, so that the time reveals nothing
            if hmac.compare_digest(known, given) and kind.lower() in ("bearer", "basic"):
                found = name
        return found


def error_response(status: int, code: str, message: str) -> JSONResponse:
    """Return an error as JSON."""
    headers = dict(HEADERS)
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="planish"'
    if code == "busy":  # a quota that is used up stays so
        headers["Retry-After"] = "1"
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


def authorize(request: HTTPConnection, tokens: Tokens) -> str | Response:
    """Return the client of a request, or the answer that refuses it."""
    if "token" in request.query_params:
        what = "A token in an address would be logged. Send it as 'Authorization: Bearer TOKEN'."
        return error_response(400, "bad_request", what)
    if request.headers.get("origin"):
        # Pages of the dashboard do not call this; another site's might.
        return error_response(403, "forbidden", "Requests of web pages are refused.")
    client = tokens.client(request.headers.get("authorization"))
    if client is None:
        return error_response(401, "unauthorized", "Send 'Authorization: Bearer TOKEN' with your token.")
    return client


def api(service: MeasuringService, tokens: Tokens) -> Starlette:
    """Return the application below `/api`."""

    async def tool(request: Request) -> Response:
        client = authorize(request, tokens)
        if isinstance(client, Response):
            return client
        try:
            arguments = await read_arguments(request)
            found = await call(service, client, request.path_params["tool"], arguments)
            return JSONResponse(found, headers=HEADERS)
        except ToolError as error:
            return error_response(STATUS[error.code], error.code, str(error))

    async def openapi(_: Request) -> Response:
        return JSONResponse(openapi_document(), headers=HEADERS)

    return Starlette(
        routes=[
            Route("/api/openapi.json", openapi),
            Route("/api/{tool}", tool, methods=["POST"]),
        ],
        exception_handlers=handlers(),
    )


def handlers() -> dict[Any, Callable[[Request, Exception], Awaitable[Response]]]:
    """Return what answers errors, in JSON."""
    return {HTTPException: _refused, ClientDisconnect: _gone, Exception: _failed}


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    codes = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 408: "timeout"}
    details = {405: "Send a POST request.", 404: "Tools are at /api/NAME; see /api/openapi.json."}
    message = details.get(error.status_code, error.detail)
    return error_response(error.status_code, codes.get(error.status_code, "bad_request"), message)


async def _gone(_: Request, error: Exception) -> Response:
    del error
    return Response(status_code=400)


async def _failed(_: Request, error: Exception) -> Response:
    del error
    return error_response(500, "internal", "The service failed; its log says why.")


async def read_arguments(request: Request) -> object:
    """Read the JSON body of a request."""
    length = request.headers.get("content-length", "0")
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
            # Who sends a little too much is let finish: an answer in the midst of a body is often not read.
            read, sent = 0, int(length) if length.isdigit() else 0
            async for chunk in request.stream() if sent <= _DISCARDED_MOST else _nothing():
                read += len(chunk)
                if read > _DISCARDED_MOST:
                    break
                if read <= BODY_MOST:
                    body += chunk
            if max(read, sent) > BODY_MOST:
                raise HTTPException(413, f"The body has more than {BODY_MOST:,} bytes.")
    except TimeoutError:
        raise HTTPException(408, f"The body was not there after {_BODY_S:g} s.") from None
    return read_json(bytes(body)) if body else {}


def read_json(body: bytes) -> object:
    """Read JSON of a client.

    Raises:
        ToolError: it is none.
    """
    try:
        # NaN and Infinity are not JSON; to some steps they would be numbers.
        found = json.loads(body, parse_constant=_no_number)
        # Half a character, such as "\\ud800", could not be written into an answer.
        json.dumps(found, ensure_ascii=False).encode()
        return found
    except RecursionError:
        raise ToolError("bad_request", "The body is nested too deeply.") from None
    except ValueError as error:
        raise ToolError("bad_request", f"The body is not valid JSON: {error}"[:300]) from None


async def _nothing() -> AsyncGenerator[bytes]:
    for _ in ():
        yield b""


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number in JSON")


def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document of the interface."""
    error = {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
                "required": ["code", "message"],
            }
        },
        "required": ["error"],
    }
    refusals = {
        "400": "malformed",
        "401": "wrong token",
        "413": "too large",
        "422": "unknown step",
        "429": "too many",
        "503": "the service ends, or its engine failed",
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "planish: measuring service", "version": version("planish")},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": {
            f"/api/{tool.name}": {
                "post": {
                    "operationId": tool.name,
                    "summary": tool.summary,
                    "requestBody": {"content": {"application/json": {"schema": tool.schema}}},
                    "responses": {
                        "200": {
                            "description": "the answer",
                            "content": {"application/json": {"schema": {"type": "object"}}},
                        },
                        **{
                            status: {
                                "description": text,
                                "content": {"application/json": {"schema": error}},
                            }
                            for status, text in refusals.items()
                        },
                    },
                }
            }
            for tool in TOOLS.values()
        },
    }
