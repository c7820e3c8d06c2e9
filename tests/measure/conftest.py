"""Fixtures of workers that log their evaluations."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from planish.measure.executors import LocalExecutor
from planish.sandbox import Limits
from planish.testing.synthetic import LoggingSpec


@pytest.fixture(autouse=True)
def workers_as_users_have(new_interpreters: None) -> None:
    """Start workers as those of users are: here they are what is tested."""
    del new_interpreters


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the path of the log."""
    return tmp_path / "log"


@pytest.fixture
def limits() -> Limits:
    """Return the workers' limits; test modules have their own."""
    return Limits()


@pytest.fixture
def executor(tmp_path: Path, log: Path, limits: Limits) -> Iterator[LocalExecutor]:
    """Start one worker."""
    with LocalExecutor(LoggingSpec(log), limits=limits, lock=tmp_path / "lock") as executor:
        yield executor
