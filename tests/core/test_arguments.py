"""Names of arguments in messages: those of Python, and the options of the command line."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import planish
from planish.cli.commands import load_command
from planish.core.arguments import as_options

SOURCE = Path(planish.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z]")
COMMAND = re.compile(r"\bplanish [a-z]|\bray start\b|\bpip install\b|LLVM version")


@pytest.mark.parametrize(
    ("python", "options"),
    [
        ('Write size="m=192,n=192".', "Write --size m=192,n=192."),
        ('Add size="k=...", or a shape= that has it.', "Add --size k=..., or a --shape that has it."),
        ("trials= takes a whole number, not '3' (str). Write trials=3.",
         "--trials takes a whole number, not '3' (str). Write --trials 3."),
        ("seconds=, target= cannot be given", "--seconds, --target-value cannot be given"),
        ('Write metric="FILE.py:FUNCTION".', "Write --option metric=FILE.py:FUNCTION."),
        ('Name each: files=["PATH"].', "Name each: --file PATH."),
        ("If you trust its author, add run=True.", "If you trust its author, add --run."),
        ("then rerun with settings=Settings(remeasure=True).", "then rerun with --remeasure."),
        ('settings=Settings(space="steps"). Known: a', "--space steps. Known: a"),
        ('a policy: searcher_options={"policy": "NAME"}.', "a policy: --set policy=NAME."),
        # What a user wrote is no argument, nor is one that no command has.
        ("'size=3' is no program: a.size= and m=192", "'size=3' is no program: a.size= and m=192"),
        ("patience= takes a whole number", "patience= takes a whole number"),
    ],
)  # fmt: skip
def test_arguments_are_written_as_options(python: str, options: str) -> None:
    assert as_options(python) == options


def _messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts that a module holds apart from docstrings, with their lines."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def test_no_message_of_the_library_names_an_option_of_the_command_line() -> None:
    """Only whole commands and words of other programs may: `--size` is for one surface."""
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] not in ("cli", "cc")
        if OPTION.search(source := path.read_text())  # few files: to parse all of them takes seconds
        for line, text in _messages(ast.parse(source))
        if " " in text.strip() and OPTION.search(text) and not COMMAND.search(text)
    ]
    assert found == []


NOT_OF_PYTHON = {"option", "setting", "ray", "per_function", "report", "export", "form"}


def test_each_option_of_tune_is_written_as_it_is_typed() -> None:
    for option in load_command("tune").params:
        if option.param_type_name == "option" and option.name not in NOT_OF_PYTHON:
            name = option.name.removesuffix("_value")
            assert as_options(f"{name}= takes") == f"{option.opts[0]} takes"
