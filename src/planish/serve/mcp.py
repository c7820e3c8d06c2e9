"""MCP interface of the service: the tools for agents, over HTTP or over standard streams."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from typing import Any

from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from planish.serve.http import BODY_MOST, Tokens, authorize
from planish.serve.service import MeasuringService, ToolError
from planish.serve.tools import TOOLS, call

PATH = "/mcp"
_CLIENT = "planish.client"
_INSTRUCTIONS = (
    "Make a program faster (or smaller, as `describe` says). Read `describe` first. A candidate is a list of "
    "steps from the unchanged program; `legal_steps` lists what may follow. `evaluate` verifies and measures "
    "it; a single measurement is not conclusive. Call `compare` at the end: its verdict counts."
)


def mcp_server(
    service: MeasuringService, client_of: Callable[[ServerRequestContext[Any]], str]
) -> Server[Any]:
    """Return the MCP server of a service.

    Args:
        service: carries out the tools.
        client_of: returns the client of a request.
    """

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                Tool(
                    name=tool.name,
                    description=tool.summary,
                    input_schema=tool.schema,
                    annotations=ToolAnnotations(
                        read_only_hint=tool.name not in ("evaluate", "compare"), open_world_hint=False
                    ),
                )
                for tool in TOOLS.values()
            ]
        )

    async def call_tool(ctx: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        try:
            return _result(await call(service, client_of(ctx), params.name, params.arguments))
        except ToolError as error:
            return _result({"error": {"code": error.code, "message": str(error)}}, failed=True)

    return Server(
        "planish",
        version=version("planish"),
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _result(document: dict[str, Any], *, failed: bool = False) -> CallToolResult:
    text = TextContent(type="text", text=json.dumps(document))
    return CallToolResult(content=[text], structured_content=document, is_error=failed)


class _Authorized:
    """Application that answers requests with a token alone, and notes whose it is."""

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app, self._tokens = app, tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = authorize(Request(scope), self._tokens)
        if isinstance(client, Response):
            await client(scope, receive, send)
            return
        scope[_CLIENT] = client
        await self._app(scope, receive, send)


def over_http(
    service: MeasuringService, tokens: Tokens
) -> tuple[ASGIApp, Callable[[], AbstractAsyncContextManager[None]]]:
    """Return the application at `/mcp`, and the context in which it runs."""

    def client_of(ctx: ServerRequestContext[Any]) -> str:
        assert isinstance(ctx.request, Request)
        return ctx.request.scope[_CLIENT]

    server = mcp_server(service, client_of)
    # Each request has a token, which a page of another site cannot have.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=BODY_MOST,
        transport_security=security,
    )

    @asynccontextmanager
    async def running() -> AsyncGenerator[None]:
        async with server.session_manager.run():
            yield

    return _Authorized(app, tokens), running


async def over_streams(service: MeasuringService) -> None:
    """Serve one client over standard input and output, until it closes them."""
    server = mcp_server(service, lambda _: "agent")
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
