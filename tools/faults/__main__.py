"""Disturb searches in every way that a machine does, and count what is lost, wrong or left over.

`PYTHONPATH=tools:tests python -m faults` needs root for the disks that are too small, and PostgreSQL for its
part. It prints a table, and ends with 1 where anything was lost, wrong or left over. With `--state FILE` it
goes on where it ended the last time, however it ended; with `--events N` it ends after so many, and the table
is of all so far.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from faults.disturb import KINDS
from faults.running import Tally
from planish.core.files import replace_text

_PART = 20
"""Events of a kind, before those of another."""


def main() -> int:
    """Run the program; return its exit code."""
    options = _options()
    found = _read(options.state)
    left = options.events
    while (kind := _next(found, options.kind or [*KINDS])) and left > 0:
        tally = found.setdefault(kind, Tally())
        before = tally.events
        for part in _disturb(kind, before, min(_PART, left, KINDS[kind][1] - before), options.seed):
            tally.add(part)
            if options.state:
                replace_text(options.state, json.dumps({name: asdict(each) for name, each in found.items()}))
        left -= tally.events - before
        _row(kind, tally)
    _say(f"\n{'kind':12}{'events':>8}{'of':>6}{'lost':>8}{'wrong':>8}{'orphans':>9}{'seconds':>9}")
    for kind, tally in found.items():
        _row(kind, tally)
    _row("all", _sum(found))
    return int(not all(tally.clean for tally in found.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="faults", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    parser.add_argument("--events", type=int, default=sys.maxsize, help="at most so many in this part")
    parser.add_argument("--state", type=Path, help="the file that a campaign in parts is kept in")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this one; may be repeated")
    return parser.parse_args()


def _read(state: Path | None) -> dict[str, Tally]:
    if state is None or not state.exists():
        return {}
    return {kind: Tally(**fields) for kind, fields in json.loads(state.read_text()).items()}


def _next(found: dict[str, Tally], kinds: list[str]) -> str:
    """Return the kind of which the least share is done; empty where all are."""
    shares = {kind: found.get(kind, Tally()).events / KINDS[kind][1] for kind in kinds}
    least = min(shares, key=lambda kind: shares[kind])
    return least if shares[least] < 1 else ""


def _disturb(kind: str, before: int, events: int, seed: int) -> Generator[Tally]:
    """Yield what came of some events of a kind; they depend on the number of those before."""
    disturb, _ = KINDS[kind]
    left, start = events, time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="planish-faults-") as folder,
        closing(disturb(Path(folder), random.Random(f"{seed} {kind} {before}"))) as parts,
    ):
        while left > 0:
            part = next(parts)
            now = time.monotonic()
            part.seconds, start = now - start, now
            left -= part.events
            yield part


def _row(kind: str, tally: Tally) -> None:
    whole = KINDS[kind][1] if kind in KINDS else sum(events for _, events in KINDS.values())
    counts = f"{tally.events:8,}{whole:6,}{tally.lost:8}{tally.wrong:8}{tally.orphans:9}{tally.seconds:9.0f}"
    _say("\n    ".join([f"{kind:12}{counts}", *tally.said]))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _sum(found: dict[str, Tally]) -> Tally:
    total = Tally()
    for tally in found.values():
        total.add(tally)
    total.said.clear()
    return total


if __name__ == "__main__":
    sys.exit(main())
