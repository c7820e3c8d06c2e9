"""Examples in docstrings are true, and every public function has one."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import planish
from planish import callbacks

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def public() -> Iterator[tuple[str, object]]:
    for name in planish.__all__:
        value = getattr(planish, name)
        if inspect.isroutine(value) or inspect.isclass(value):
            yield name, value
    yield "callbacks.EarlyStopping", callbacks.EarlyStopping


EXAMPLES = [
    example
    for name, value in public()
    for example in doctest.DocTestFinder(recurse=False).find(value, name)
    if example.examples
]


def test_every_public_function_and_class_has_an_example() -> None:
    without = {name for name, _ in public()} - {example.name for example in EXAMPLES}
    assert without == {"Store", "RayCluster"}, "that of open_store serves; a cluster is not at hand"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that the examples share, so that a search of several is made once."""
    return tmp_path_factory.mktemp("examples")


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_says_what_it_shows(
    example: doctest.DocTest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)
