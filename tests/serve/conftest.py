"""The service as a process, and requests to it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "cli.lattices"]
"""planish, with the level of lattices alone."""
PLANISH = [sys.executable, "-c", "from planish.cli.script import main; main()"]
QUICK = [sys.executable, "-m", "quick_runs"]
TOKENS = {"agent": "a" * 24, "other": "b" * 24}


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONWARNINGS": "error"}


@dataclass
class Service:
    """A running service.

    Args:
        process: the command.
        port: it listens at.
        store: its store.
    """

    process: subprocess.Popen[str]
    port: int
    store: Path
    lines: list[str] = field(default_factory=list[str])

    def send(self, method: str, path: str, body: bytes | str = b"", **headers: str) -> tuple[int, Any]:
        """Send a request; return the status and the answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=240)
        try:
            connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, json.loads(text) if text.startswith(("{", "[")) else text
        finally:
            connection.close()

    def post(self, tool: str, client: str = "agent", /, **arguments: Any) -> tuple[int, Any]:
        """Call a tool as a client; return the status and the answer."""
        bearer = f"Bearer {TOKENS[client]}"
        return self.send("POST", f"/api/{tool}", json.dumps(arguments), Authorization=bearer)

    def call(self, tool: str, client: str = "agent", /, **arguments: Any) -> Any:
        """Call a tool as a client; return its answer."""
        status, answer = self.post(tool, client, **arguments)
        assert status == 200, answer
        return answer


@contextmanager
def serving(
    folder: Path, *words: str, command: list[str] = COMMAND, program: str = "lattice 20x20x20"
) -> Generator[Service]:
    """Start a service; it is killed at the end."""
    tokens = folder / "tokens.txt"
    tokens.write_text("".join(f"{name} {token}\n" for name, token in TOKENS.items()))
    store = folder / "planish.db"
    options = ["--store", str(store), "--port", "0", "--tokens", str(tokens)]
    process = subprocess.Popen(
        [*command, "serve", program, *options, *words],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        lines = list[str]()
        while (line := process.stdout.readline()) and not line.startswith("Ctrl-C"):
            lines.append(line)
        found = re.search(r":(\d+)/api", "".join(lines))
        assert found, (lines, process.stderr and process.stderr.read())
        yield Service(process, int(found[1]), store, lines)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service of a lattice, for the tests of a file."""
    with serving(tmp_path_factory.mktemp("serve"), "--option", "pause=0.01") as started:
        yield started
