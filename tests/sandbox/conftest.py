"""Workers that write into a diary what they are at."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from planish.executors import LocalExecutor
from planish.sandbox import Limits
from planish.testing.acting import Diary


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """Name the diary."""
    return tmp_path / "diary"


@pytest.fixture
def limits() -> Limits:
    """Return the workers' limits; test modules have their own."""
    return Limits()


@pytest.fixture
def executor(tmp_path: Path, book: Path, limits: Limits) -> Iterator[LocalExecutor]:
    """Start one worker."""
    with LocalExecutor(Diary(book), limits=limits, lock=tmp_path / "lock") as executor:
        yield executor
