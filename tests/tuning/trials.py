"""Trials of a search, without a store."""

from __future__ import annotations

from collections.abc import Iterable

from planish.core import Candidate, Trial


class Tried(list[Trial]):
    """Trials that can be asked for."""

    def of(self, candidates: Iterable[Candidate]) -> dict[str, Trial]:
        """Return those of some candidates, by hash."""
        wanted = {candidate.hash for candidate in candidates}
        return {trial.candidate.hash: trial for trial in self if trial.candidate.hash in wanted}
