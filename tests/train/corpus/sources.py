"""Small C sources, a display that records progress, and what to do where the machine lacks something."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from planish.train.corpus.shards import Kind
from planish.train.corpus.sources import Prepared
from planish.tuning.progress import ProgressDisplay, Status

Build = Callable[..., Mapping[str, Any]]


def lacking(what: str) -> NoReturn:
    """Skip a test for what the machine lacks; fail it where everything should be."""
    pytest.fail(what) if os.environ.get("CI") else pytest.skip(what)


class Recording(ProgressDisplay):
    """Records what is logged, and how many items are done, known and to be done at each update."""

    def __init__(self) -> None:
        super().__init__(show=False)
        self.logged: list[str] = []
        self.seen: list[tuple[int, int, int | None]] = []

    def begin(self, status: Status) -> None:
        self.status = status

    def update(self, *, at_once: bool = False) -> None:
        del at_once
        self.seen.append((self.status.done, self.status.known, self.status.total))

    def log(self, text: str) -> None:
        self.logged.append(text)


@dataclass(frozen=True)
class Deadly:
    """A package that kills the worker."""

    name: str = "deadly"
    kind: Kind = "folder"

    def prepare(self, work: Path, system: Sequence[Path]) -> Prepared:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError(work, system)


def write(folder: Path, **files: str) -> Path:
    """Write C files, whose names are given without their suffix."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.c").write_text(text)
    return folder


def numbered(number: int) -> str:
    """Write a C function that no other number gives."""
    return f"int f{number}(int x) {{ return x * {number} + {number + 1}; }}\n"


@dataclass(frozen=True)
class Unreadable:
    """A package that cannot be had because of an error of the system."""

    error: OSError
    name: str = "unreadable"
    kind: Kind = "folder"

    def prepare(self, work: Path, system: Sequence[Path]) -> Prepared:
        del work, system
        raise self.error
