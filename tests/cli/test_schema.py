"""The version of JSON documents: every command that writes one, and every export."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import planish.cli
from cli.conftest import PROGRAM, Kept, Planish
from planish.cli.commands import app, load_command
from planish.core.hashing import SCHEMA_VERSION

CHEAP = {
    "tune": [PROGRAM, "--trials", "3"],
    "show": ["RUN"],
    "report": ["RUN"],
    "export": ["RUN", "out"],
    "levels": [],
    "searchers": [],
    "targets": [],
    "runs": [],
    "runs delete": ["RUN", "--yes"],
    "runs export": ["other.db", "RUN"],
    "runs merge": ["PLACE"],
    "models": [],
    "policy": [],
    "size": [sys.executable],
}
"""Commands with arguments, which are run here."""

COSTLY = {
    "inspect", "validate", "compare", "passes", "bench-passes", "corpus build", "corpus card", "corpus label",
    "corpus costs", "corpus tokens", "learn", "models fit", "models evaluate", "policy train",
    "policy evaluate",
}  # fmt: skip
"""Commands that need a model, a module or a corpus: their documents are written by the same function."""


def commands(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    if any("--format" in parameter.opts for parameter in command.params):
        yield " ".join(path)
    for name, sub in getattr(command, "commands", {}).items():
        yield from commands(sub, (*path, name))


def test_every_command_that_writes_json_is_listed_here() -> None:
    names = typer.main.get_group(app).commands
    found = {each for name in names for each in commands(load_command(name), (name,))}
    assert found == CHEAP.keys() | COSTLY


@pytest.mark.usefixtures("uncompared")
@pytest.mark.parametrize("name", CHEAP)
def test_a_document_begins_with_its_schema_version(
    name: str, kept: Kept, planish: Planish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [{"RUN": kept.run, "PLACE": str(kept.place)}.get(word, word) for word in CHEAP[name]]
    said = planish(*name.split(), *words, "--format", "json")
    assert said.code == 0, said.error
    document = json.loads(said.out)
    assert next(iter(document)) == "schema_version"
    assert document["schema_version"] == SCHEMA_VERSION


def test_no_command_prints_json_by_itself() -> None:
    """`document` alone prints it, so that the commands that are not run here have a version too."""
    folder = Path(planish.cli.__file__).parent
    printing = list[tuple[str, str]]()
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            is_call = isinstance(node, ast.Call) and ast.unparse(node.func) in ("say", "print", "typer.echo")
            if is_call and "json.dumps" in ast.unparse(node):
                printing.append((file.name, ast.unparse(node)))
    assert printing == [("output.py", "say(json.dumps(_finite(versioned(value)), indent=2))")]
