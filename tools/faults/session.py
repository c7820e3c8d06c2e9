"""The command `planish tune` on a lattice, which writes down each trial once the store has it.

`python -m faults.session JOURNAL WORDS...`: what the journal has and the store has not was lost.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from planish.cli.script import leave_at_once
from planish.core import Trial

READY = b"ready\n"


def main() -> None:
    """Run the command; it prints a line once signals are handled."""
    leave_at_once()
    os.write(1, READY)
    from cli import lattices
    from planish.cli.script import main as planish
    from planish.tuning import progress
    from planish.tuning.recorder import Progress

    lattices.install()
    progress.LINE_S = 0.1
    journal, sys.argv[1:] = Path(sys.argv[1]), sys.argv[2:]
    number = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    add = Progress.add

    def added(progress: Progress, trial: Trial) -> None:
        os.write(number, f"{trial.candidate.hash}\n".encode())
        add(progress, trial)

    setattr(Progress, "add", added)  # noqa: B010  (its own type is narrower)
    planish()


if __name__ == "__main__":
    main()
