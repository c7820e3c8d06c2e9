"""Stores that another program wrote in order to attack the readers of them."""

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from planish.core import Candidate, Measured, Objective, Step, Target, Task, Trial
from planish.store import open_store


@dataclass(frozen=True)
class Text:
    """A program that is nothing but a text."""

    text: str
    level: str


@dataclass(frozen=True)
class Row:
    """A trial to be planted.

    Args:
        level: of the program.
        text: the program's.
        objectives: the leading one first.
        toolchain: of the target.
        version: of the level.
        steps: of the only candidate.
    """

    level: str
    text: str
    objectives: tuple[Objective, ...] = (Objective("time_s", "s"),)
    toolchain: tuple[tuple[str, str], ...] = ()
    version: str = "1"
    steps: Sequence[Step] = ()


def plant(place: Path, row: Row) -> str:
    """Write a finished run with one trial into a store; return its id."""
    task = Task(
        Text(row.text, row.level), Target("any", toolchain=dict(row.toolchain)), row.objectives, row.version
    )
    with open_store(place) as store:
        run = store.begin_run(task, searcher="random", space="", seed=0)
        values = {objective.name: 1.0 for objective in row.objectives}
        store.add_trials(run, [Trial(Candidate(tuple(row.steps)), Measured(values), 0, 0, {}, "host", 0.0)])
        store.finish_run(run)
    return run


class _Watch:
    def __init__(self) -> None:
        self.on = False
        self.opened: list[str] = []

    def __call__(self, event: str, arguments: Sequence[object]) -> None:
        if self.on and event in ("open", "os.listdir", "os.scandir") and arguments:
            self.opened.append(str(arguments[0]))


_watch = _Watch()
sys.addaudithook(_watch)


@contextmanager
def opened() -> Generator[list[str]]:
    """List what this process opens meanwhile, as Python's audit events tell."""
    _watch.on, _watch.opened = True, []
    try:
        yield _watch.opened
    finally:
        _watch.on = False
