"""Identical commands at once share their work, and one that is killed does not hold the others up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from planish.core import StoreError
from planish.store import open_store
from planish.testing.synthetic import Lattice

TRIALS = 48
FOLDER = Path(__file__).parents[1]

Command = subprocess.Popen[str]


@pytest.fixture
def commands(tmp_path: Path) -> Generator[list[Command]]:
    """Start the same command four times, on one store."""
    words = ("tune", "lattice 12x6x6", "--option", "pause=0.05", "--trials", TRIALS, "--finalists", 1)
    line = [sys.executable, "-m", "cli.lattices", *map(str, words), "--store", str(tmp_path / "planish.db")]
    path = {**os.environ, "PYTHONPATH": str(FOLDER)}
    started = [
        subprocess.Popen(line, env=path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    yield started
    for each in started:
        each.send_signal(signal.SIGCONT)
        each.kill()
        each.communicate()


def _measured(place: Path) -> tuple[int, int]:
    """Count the trials that were measured, and the candidates."""
    with open_store(place, read_only=True) as store:
        trials = [
            t for run in store.runs() for t in store.run_trials(run.id, Lattice.known_steps) if not t.cached
        ]
    return len(trials), len({trial.candidate for trial in trials})


@pytest.mark.slow
def test_four_at_once_measure_as_much_as_one(tmp_path: Path, commands: list[Command]) -> None:
    for each in commands:
        error = each.communicate(timeout=300)[1]
        assert each.returncode == 0, error
    assert _measured(tmp_path / "planish.db") == (TRIALS, TRIALS)


def test_a_killed_one_does_not_hold_the_others_up(tmp_path: Path, commands: list[Command]) -> None:
    deadline = time.monotonic() + 300
    while not (tmp_path / "planish.db").exists() or _begun(tmp_path / "planish.db") < 8:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for each in commands[:2]:
        each.kill()
    for each in commands[2:]:
        error = each.communicate(timeout=300)[1]
        assert each.returncode == 0, error
    measured, candidates = _measured(tmp_path / "planish.db")
    assert candidates == TRIALS
    assert measured <= TRIALS + 16


def _begun(place: Path) -> int:
    try:
        return _measured(place)[0]
    except StoreError:  # not made yet
        return 0
