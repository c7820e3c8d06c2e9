"""The tools for agents, with the client of the package `mcp`: over HTTP, and over standard streams."""

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from planish.core import TargetError
from serve.conftest import COMMAND, TOKENS, Service, environment

pytest.importorskip("mcp", reason="needs mcp: pip install 'planish[serve]'")

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

STEPS = [["Set", {"knob": 0, "value": 17}]]


def over_http(service: Service, token: str, work: Callable[[Client], Awaitable[None]]) -> None:
    """Connect a client to the service over HTTP, and let it work."""

    async def connected() -> None:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=240) as http:
            url = f"http://127.0.0.1:{service.port}/mcp"
            async with Client(streamable_http_client(url, http_client=http)) as client:
                await work(client)

    asyncio.run(connected())


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found
    return found.structured_content


async def use(client: Client) -> None:
    """Use the tools as an agent does."""
    listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == [
        *("describe", "legal_steps", "evaluate", "compare", "history", "best")
    ]
    described = await call(client, "describe")
    assert described["level"] == "lattice"
    found = await call(client, "evaluate", steps=STEPS)
    assert found["outcome"] == "measured"
    assert (await call(client, "legal_steps", steps=STEPS))["next_steps"] == found["next_steps"]
    refused = await client.call_tool("evaluate", {"steps": [["Sett", {}]]})
    assert refused.is_error
    assert refused.structured_content
    assert refused.structured_content["error"]["code"] == "unknown_step"
    assert (await client.call_tool("nothing", {})).is_error


def test_an_agent_over_http(service: Service) -> None:
    over_http(service, TOKENS["agent"], use)
    assert service.call("evaluate", steps=STEPS)["cached"]
    assert service.call("describe")["used"]["evaluations"] >= 1


def test_an_agent_without_a_token(service: Service) -> None:
    with pytest.raises((MCPError, httpx2.HTTPStatusError, ExceptionGroup)):
        over_http(service, "guess", use)


def test_an_mcp_that_is_too_old(tmp_path: Path) -> None:
    (tmp_path / "mcp" / "server").mkdir(parents=True)
    for folder in ("mcp", "mcp/server"):
        (tmp_path / folder / "__init__.py").touch()
    ended = subprocess.run(
        [*COMMAND, "serve", "lattice 20x20x20", "--stdio", "--store", str(tmp_path / "planish.db")],
        env=environment() | {"PYTHONPATH": os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])},
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert ended.returncode == TargetError.exit_code
    assert ended.stderr.startswith(
        "planish: error: the service needs mcp, which is too old here. Install it: "
    )


def test_an_agent_that_starts_the_service(tmp_path: Path) -> None:
    command, *words = COMMAND
    server = StdioServerParameters(
        command=command,
        args=[*words, "serve", "lattice 20x20x20", "--stdio", "--store", str(tmp_path / "planish.db")],
        env=environment(),
    )

    async def connected() -> None:
        async with Client(server) as client:
            await use(client)
            found = await call(client, "compare")
            assert found["conclusive"]

    asyncio.run(connected())
