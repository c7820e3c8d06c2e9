"""Sessions that are disturbed, and what must hold after each disturbance."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cli.lattices import LatticeLevel
from planish.core import Failed, Measured, Outcome, StoreError, Trial
from planish.store import open_store
from planish.testing.synthetic import Lattice

TOOLS = Path(__file__).parents[1]
SIZES = (40, 40, 40)
LEFT_S = 10.0
"""How long processes may take to end after the one that started them."""


@dataclass
class Tally:
    """What became of the disturbances of one kind.

    Args:
        events: how many there were.
        lost: trials that had been stored and are not there any more.
        wrong: stored outcomes that are not true, commands that end otherwise than they say, tracebacks.
        orphans: processes that went on without the one that started them.
        said: what was found, in sentences.
        seconds: that it took.
    """

    events: int = 0
    lost: int = 0
    wrong: int = 0
    orphans: int = 0
    said: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Return whether nothing was lost, wrong or left over."""
        return not (self.lost or self.wrong or self.orphans)

    def add(self, other: Tally) -> None:
        """Count others of the same kind too."""
        self.events += other.events
        self.lost += other.lost
        self.wrong += other.wrong
        self.orphans += other.orphans
        self.said += other.said
        self.seconds += other.seconds

    def blame(self, what: str) -> None:
        """Count something wrong."""
        self.wrong += 1
        self.said.append(what)


@dataclass(frozen=True)
class Session:
    """A search on a store of its own, which is begun again and again.

    Args:
        folder: for the journal and the store.
        store: where the store is.
    """

    folder: Path
    store: str

    @property
    def mark(self) -> Path:
        """The working folder of this session's processes alone, by which they are known."""
        return self.folder / "working"

    @classmethod
    def new(cls, folder: Path) -> Session:
        """Return a session with a folder of its own in a folder."""
        own = Path(tempfile.mkdtemp(dir=folder))
        return cls(own, str(own / "planish.db"))

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Begin the search, or go on with it."""
        self.mark.mkdir(exist_ok=True)
        sizes = "x".join(map(str, SIZES))
        command = [
            sys.executable,
            "-m",
            "faults.session",
            str(self.folder / "journal"),
            "tune",
            f"lattice {sizes}",
        ]
        return subprocess.Popen(
            [*command, "--store", self.store, "--finalists", "1", *words],
            cwd=self.mark,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TOOLS), *sys.path])},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def check(self, tally: Tally) -> Tally:
        """Compare the store with the journal and with the truth, and look for processes that are left.

        Returns:
            The tally, with what was found.
        """
        stored = self._stored()
        reported = self.reported()
        lost = reported - stored.keys()
        tally.lost += len(lost)
        if lost:
            tally.said.append(f"{len(lost)} of {len(reported)} trials are lost")
        for outcome, trial in ((truth(trial), trial) for trial in stored.values()):
            if not same(outcome, trial.outcome):
                tally.blame(f"{trial.candidate} is stored as {trial.outcome}")
        left = self._left()
        tally.orphans += len(left)
        tally.said += [f"process {pid} is left: {command}" for pid, command in left.items()]
        return tally

    def reported(self) -> set[str]:
        """Return the hashes of the trials in the journal."""
        journal = self.folder / "journal"
        return set(journal.read_text().split()) if journal.exists() else set()

    def compared(self) -> bool:
        """Return whether the newest run's finalists were measured again beside the baseline."""
        with open_store(self.store, read_only=True) as store:
            return len(store.result_rows(store.runs(limit=1)[0].id, LatticeLevel().steps)) > 0

    def _stored(self) -> Mapping[str, Trial]:
        found: dict[str, Trial] = {}
        with suppress(StoreError), open_store(self.store, read_only=True) as store:  # it may be empty yet
            for run in store.runs():
                trials = store.run_trials(run.id, LatticeLevel().steps)
                found |= {trial.candidate.hash: trial for trial in trials}
        return found

    def _left(self) -> Mapping[int, str]:
        """List the processes of this session that do not end."""
        end = time.monotonic() + LEFT_S
        while (left := dict(processes(self.mark))) and time.monotonic() < end:
            time.sleep(0.05)
        return left


def processes(mark: Path) -> Iterator[tuple[int, str]]:
    """List the living processes that were started in a folder, with their commands."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == mark:
                yield int(entry.name), (entry / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue  # it has ended meanwhile


def truth(trial: Trial) -> Outcome:
    """Return what a trial must have measured."""
    return Lattice(SIZES).outcome(trial.candidate)


def same(true: Outcome, stored: Outcome) -> bool:
    """Return whether an outcome is the true one."""
    if isinstance(true, Measured):
        return isinstance(stored, Measured) and stored.values["time_s"] == true.values["time_s"]
    return isinstance(stored, Failed) and stored.reason == true.reason
