"""Disturb searches in every way that a machine does, and count what is lost, wrong or left over.

`PYTHONPATH=tests python -m faults` needs root for the disks that are too small, and PostgreSQL for its part.
It prints a table, and ends with 1 where anything was lost, wrong or left over.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from faults.disturb import KINDS
from faults.running import Tally


def main() -> int:
    """Run the program; gives its exit code."""
    options = _options()
    found: dict[str, Tally] = {}
    _say(f"{'kind':12}{'events':>8}{'lost':>8}{'wrong':>8}{'orphans':>9}{'seconds':>9}")
    for kind in options.kind or KINDS:
        disturb, events = KINDS[kind]
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="planish-faults-") as folder:
            found[kind] = disturb(
                Path(folder), random.Random(f"{options.seed} {kind}"), max(1, round(events * options.share))
            )
        _row(kind, found[kind], time.monotonic() - start)
    _row("all", _sum(found), 0.0)
    return int(not all(tally.clean for tally in found.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="faults", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    parser.add_argument("--share", type=float, default=1.0, help="of the events of a whole campaign")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this one; may be repeated")
    return parser.parse_args()


def _row(kind: str, tally: Tally, seconds: float) -> None:
    counts = f"{tally.events:8,}{tally.lost:8}{tally.wrong:8}{tally.orphans:9}{seconds:9.0f}"
    _say("\n    ".join([f"{kind:12}{counts}", *tally.said]))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _sum(found: dict[str, Tally]) -> Tally:
    total = Tally()
    for tally in found.values():
        total.events += tally.events
        total.lost += tally.lost
        total.wrong += tally.wrong
        total.orphans += tally.orphans
    return total


if __name__ == "__main__":
    sys.exit(main())
