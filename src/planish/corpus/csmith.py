"""Random C programs without undefined behaviour, by csmith."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from planish.core import PlanishError, TargetError
from planish.sandbox import Ran, run_tool

_SECONDS = 30.0
SMALL = (
    *("--max-funcs", "12", "--max-block-depth", "2", "--max-block-size", "3"),
    *("--max-expr-complexity", "4", "--no-checksum"),
)
"""Options for functions of 100 instructions in the median, as real code has; the defaults make 277."""
_HEADERS = ("/usr/include/csmith", "/usr/local/include/csmith")


def find_csmith() -> tuple[str, Path]:
    """Find the program and the folder of its headers.

    Raises:
        TargetError: one of them is missing.
    """
    program = shutil.which("csmith")
    headers = next((place for place in map(Path, _HEADERS) if (place / "csmith.h").is_file()), None)
    if program is None or headers is None:
        lacking = "csmith" if program is None else "csmith's headers"
        raise TargetError(f"random programs need {lacking}", "Try: apt-get install csmith libcsmith-dev.")
    return program, headers


def csmith_version(program: str) -> str:
    """Ask csmith for its version."""
    said = _run([program, "--version"]).output.decode(errors="replace")
    return said.split("\n", 1)[0].removeprefix("csmith").strip()


def random_program(program: str, seed: int, options: Sequence[str] = SMALL) -> str:
    """Make a C program; the same seed and options make the same one.

    Args:
        program: csmith.
        seed: of its randomness.
        options: what the program is like.

    Raises:
        PlanishError: csmith fails, or does not end.
    """
    try:
        ran = _run([program, "--seed", str(seed), *options])
    except TimeoutError as error:
        raise PlanishError(f"csmith did not end within {_SECONDS:g} s on seed {seed}") from error
    if ran.code:
        raise PlanishError(f"csmith fails on seed {seed}: {ran.message.strip()[:200]}")
    return ran.output.decode(errors="replace")


def _run(command: list[str]) -> Ran:
    """Run csmith in a folder of its own: it leaves a file where it runs."""
    with TemporaryDirectory() as folder:
        return run_tool(command, seconds=_SECONDS, folder=folder)
