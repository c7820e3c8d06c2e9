"""What a level sees in a program, as a run shows it: first, each line once, and never beside JSON."""

import json
from io import StringIO
from itertools import count

import pytest
from rich.console import Console

from cli import lattices
from cli.conftest import PROGRAM, Offer, Planish
from planish.core import Task
from planish.testing.stores import make_task
from planish.tuning.progress import ProgressDisplay, RunStatus
from planish.tuning.recorder import Progress
from planish.tuning.settings import Budget

SHORT = "--trials", 20, "--finalists", 1
KNOWN = ["a lattice: it has three axes", "relevant: 2 of 3 axes"]


class Knowing(lattices.LatticeLevel):
    """A level that knows one line when a run begins, and the other once the search has proposed something."""

    def __init__(self) -> None:
        self._asked = count(1)

    def summary(self, task: Task) -> list[str]:
        assert task.program.level == "lattice"
        return KNOWN[: next(self._asked)]


@pytest.fixture
def known(offer: Offer) -> None:
    """Offer that level, one for all that asks."""
    offer(Knowing)


@pytest.mark.usefixtures("known")
def test_without_a_terminal_it_comes_first_and_each_line_once(planish: Planish) -> None:
    said = planish("tune", PROGRAM, *SHORT)
    assert said.code == 0
    lines = said.err.splitlines()
    assert lines[2:4] == KNOWN  # below the run and how long it takes
    assert all(said.err.count(line) == 1 for line in KNOWN)


@pytest.mark.usefixtures("known")
def test_beside_json_nothing_is_said(planish: Planish) -> None:
    said = planish("tune", PROGRAM, *SHORT, "--format", "json")
    assert json.loads(said.out)["trials"] == 20
    assert said.err == ""


def test_on_a_terminal_it_stands_above_what_changes() -> None:
    console = Console(file=StringIO(), width=70, force_terminal=True, color_system=None)
    display = ProgressDisplay(console=console)
    progress = Progress(make_task("flat"), "1a2b3c4d", summary=KNOWN[:1])
    display.begin(RunStatus(progress, Budget(trials=10)))
    progress.summary = KNOWN
    with console.capture() as drawn:
        console.print(display.draw())
    assert [line.rstrip() for line in drawn.get().splitlines()[2:4]] == KNOWN
