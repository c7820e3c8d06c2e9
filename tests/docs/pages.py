"""Reading and running the code of a page: what a reader would type, in the order in which it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_KINDS = ("console", "python")


@dataclass(frozen=True)
class Block:
    """A fenced block that is run.

    Args:
        kind: "console", whose lines after `$ ` are commands and whose others are shown, or "python".
        text: what stands between the fences.
        line: of the page, where the text begins.
    """

    kind: str
    text: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    """List what is run of a page: blocks of other kinds, such as `sh` and `text`, are only read."""
    for found in _FENCE.finditer(page):
        if found[1] in _KINDS:
            yield Block(found[1], found[2], page.count("\n", 0, found.start(2)) + 1)


def commands(block: Block) -> list[tuple[str, list[str]]]:
    """Split a block of the console into commands, each with the lines that are shown of its output."""
    split: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            split.append((line[2:], []))
        elif split and split[-1][0].endswith("\\") and not split[-1][1]:
            split[-1] = (f"{split[-1][0]}\n{line}", [])
        else:
            split[-1][1].append(line)
    return split


def run(page: Path) -> None:
    """Run the blocks of a page in the current folder; the Python of a page shares its names.

    Raises:
        AssertionError: a command fails, or does not say what the page shows.
    """
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.kind == "python":
            # Line numbers of a traceback are those of the page.
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
            continue
        for command, shown in commands(block):
            _type(command, shown, f"{page.name}:{block.line}: {command}")


def _type(command: str, shown: list[str], where: str) -> None:
    """Run a command, and see that it says what is shown."""
    done = subprocess.run(
        ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    said = textwrap.indent(done.stdout, "  ")
    assert done.returncode == 0, f"{where}\n{said}"
    missing = [line for line in shown if not _said(line, done.stdout)]
    assert not missing, f"{where} does not say {missing}, but\n{said}"


def _said(line: str, output: str) -> bool:
    """Whether an output has a line; what has digits is measured and varies, and `...` stands for anything."""
    if re.search(r"\d|\.\.\.|^\W*$", line):
        return True
    return _plain(line) in {_plain(said) for said in output.splitlines()}


def _plain(line: str) -> str:
    return " ".join(line.split())


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
    from quick_runs import shorten_comparisons

    shorten_comparisons(setattr)
    run(Path(sys.argv[1]))
