"""Counts of a campaign of random tests, in a file: the same command continues where it was interrupted."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any


class State:
    """Counts and the next test of a campaign, in a file of several campaigns.

    Args:
        path: of the file; None for none.
        name: of the campaign.
        first: number of the first test, where the file has none.
    """

    def __init__(self, path: Path | None, name: str, first: int) -> None:
        self._path, self._name = path, name
        known: dict[str, Any] = json.loads(path.read_text()) if path and path.exists() else {}
        self._all = known
        found = known.get(name, {"first": first, "counts": {}})
        self.first: int = found["first"]
        self.counts: Counter[str] = Counter(found["counts"])

    def save(self, following: int) -> None:
        """Write the counts, and the number of the next test."""
        if self._path:
            self._all[self._name] = {"first": following, "counts": dict(self.counts)}
            temporary = self._path.with_suffix(".new")
            temporary.write_text(json.dumps(self._all) + "\n")
            temporary.replace(self._path)
