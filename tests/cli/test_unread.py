"""Options that nothing would read are refused in one line, by every command."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import typer

from cli.conftest import Planish
from planish.cli import options
from planish.cli.commands import app, load_command
from planish.cli.options import ProgramOptions

REFUSED: dict[tuple[str, ...], str] = {
    ("show", "--file", "x"): "the list of runs does not read --file. Name a run, or leave it out.",
    ("show", "abc", "--limit", "3"): "a run does not read --limit. Leave it out.",
    (
        *("policy", "evaluate", "loops", "--corpus", "x", "--split", "test"),
    ): "the evaluation of a policy of level 'loops' does not read --corpus, --split. Leave it out.",
    (
        *("policy", "evaluate", "llvm", "--store", "x"),
    ): "the evaluation of a policy of level 'llvm' does not read --store. Leave it out.",
    (
        *("policy", "train", "--level", "llvm", "--network", "decoder", "--first", "x", "--width", "32"),
    ): "training of an existing network does not read --width. Leave it out.",
    (
        *("corpus", "build", "out", "--ir", "x", "--seed", "2"),
    ): "a corpus without --csmith does not read --seed. Leave it out.",
    (
        *("corpus", "build", "out", "--folder", "x", "--keep-sources"),
    ): "a corpus without Debian packages does not read --keep-sources. Leave it out.",
    (
        *("corpus", "label", "in", "out", "--lists", "0", "--sample", "9"),
    ): "labeling with --lists 0 does not read --sample. Leave it out.",
    (
        *("corpus", "label", "in", "out", "--searcher", "random-minimize", "--no-coreset"),
    ): "labeling by random-minimize does not read --coreset. Leave it out.",
}


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_options_of_another_mode_are_refused(
    planish: Planish, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert planish(*words).error == REFUSED[words]
    assert not [*tmp_path.glob("out*")]


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    yield name, command
    for word, each in getattr(command, "commands", {}).items():
        yield from commands(each, f"{name} {word}")


def test_every_option_of_every_command_is_read_somewhere() -> None:
    names = typer.main.get_group(app).commands
    found = dict(pair for name in names for pair in commands(load_command(name), name))
    assert len(found) > 25
    groups = set[Any]()
    for name, command in found.items():
        if command.callback is None:
            continue
        function = inspect.unwrap(command.callback)
        hints = get_type_hints(function)
        names = {node.id for node in walk(inspect.getsource(function)) if isinstance(node, ast.Name)}
        assert {*hints} - {*names, "return"} == set(), name
        groups |= {hint for hint in hints.values() if is_dataclass(hint)}
    assert ProgramOptions in groups
    sources = [file.read_text() for file in Path(options.__file__).parent.glob("*.py")]
    attributes = {each.attr for text in sources for each in walk(text) if isinstance(each, ast.Attribute)}
    for group in groups - {ProgramOptions}:  # which `level_options` reads as a whole
        assert {field.name for field in fields(group)} - attributes == set(), group


def walk(source: str) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(textwrap.dedent(source)))
