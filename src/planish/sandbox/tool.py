"""Processes outside the pools: tools such as compilers."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from planish.sandbox.linux import descendants


class Ran(NamedTuple):
    """Exit code and output of a program.

    Args:
        code: its exit code; negative for a signal.
        output: what it wrote.
        errors: what it wrote to its standard error.
    """

    code: int
    output: bytes
    errors: bytes

    @property
    def message(self) -> str:
        """Return its standard error as text."""
        return self.errors.decode(errors="replace")


def run_tool(
    command: Sequence[str],
    *,
    seconds: float,
    given: bytes = b"",
    folder: Path | str | None = None,
    variables: Mapping[str, str] | None = None,
) -> Ran:
    """Run a program to its end.

    It is in the process group of its caller, so that it ends with a worker, and at Ctrl-C.

    Args:
        command: the program and its arguments.
        seconds: how long it may take.
        given: what its standard input holds.
        folder: where it runs; the default is here.
        variables: of the environment, beside those that there are.

    Raises:
        TimeoutError: it took longer; then all that it started is ended too.
        OSError: it cannot be started.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={**os.environ, **(variables or {})},
    ) as process:
        try:
            output, errors = process.communicate(given, seconds)
        except BaseException as error:
            _end(process.pid)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeoutError(f"{command[0]} did not end within {seconds:g} s") from error
            raise
    return Ran(process.returncode, output, errors)


def _end(pid: int) -> None:
    """Kill a process and its descendants; a compiler's driver has the compiler itself as a child."""
    # All are listed before any is killed: once a parent is dead, its children are no longer listed under it.
    for each in descendants(pid):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
