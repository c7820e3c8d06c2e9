"""The command line with the level of `cli.lattices`, on a store of its own."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli import lattices
from planish.cli.commands import app
from planish.store import open_store
from planish.tuning import engine
from planish.tuning.api import tune
from planish.tuning.final_state import SearchOutcome
from planish.tuning.finish import finish
from planish.tuning.recorder import Listener
from planish.tuning.result import Result
from planish.tuning.settings import Budget

PROGRAM = "lattice 6x4x4"


@dataclass(frozen=True)
class Said:
    """What a command said.

    Args:
        code: its exit code.
        out: its standard output.
        err: its standard error.
    """

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The error, which must be all that was said on standard error, in one line."""
        assert self.err.count("\n") == 1
        assert self.err.startswith("planish: error: ")
        return self.err.removeprefix("planish: error: ").rstrip("\n")


Planish = Callable[..., Said]
Offer = Callable[[type[lattices.LatticeLevel]], None]


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Return a function that offers a lattice level alone."""
    return lambda level: lattices.install(monkeypatch.setattr, level)


@pytest.fixture
def lattice(offer: Offer) -> None:
    """Offer the usual lattice level alone."""
    offer(lattices.LatticeLevel)


@pytest.fixture
def uncompared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have searches end without a comparison, as one that is stopped twice does."""

    def finish_at_once(search: SearchOutcome, listener: Listener, *, at_once: bool) -> Result:
        del at_once
        return finish(search, listener, at_once=True)

    monkeypatch.setattr(engine, "finish", finish_at_once)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name a store that does not exist yet, and make it the default."""
    place = tmp_path / "planish.db"
    monkeypatch.setenv("PLANISH_STORE", str(place))
    return place


@pytest.fixture
def planish(place: Path) -> Planish:
    """Run a command."""
    del place

    def run(*words: object) -> Said:
        done = CliRunner().invoke(app, [str(word) for word in words])
        return Said(done.exit_code, done.stdout, done.stderr)

    return run


@dataclass(frozen=True)
class Kept:
    """A run that is stored.

    Args:
        place: the store.
        run: the run's id.
    """

    place: Path
    run: str


@pytest.fixture(scope="session")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    place = tmp_path_factory.mktemp("made") / "planish.db"
    with pytest.MonkeyPatch.context() as patch, open_store(place) as store:
        lattices.install(patch.setattr)
        return Kept(place, tune(PROGRAM, budget=Budget(trials=40), store=store).run.id)


@pytest.fixture
def kept(_made: Kept, place: Path, lattice: None) -> Kept:
    """Return a finished run of 40 trials, in a store of its own."""
    del lattice
    shutil.copy(_made.place, place)
    return Kept(place, _made.run)
