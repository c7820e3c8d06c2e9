"""What a searcher is given beside its space: what was learned before the search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from planish.core.step import Candidate

Outcomes = Sequence[tuple[Candidate, float | None]]
"""Candidates with their cost over the baseline's; None where they failed."""

Tried = Mapping[str, Outcomes]
"""Canonical text of a program to what was tried on it."""


def _nothing() -> Tried:
    return {}


@dataclass(frozen=True)
class SearchContext:
    """What was learned before a search; it is part of the search, as its seed is.

    Args:
        taught: candidates that other programs recommend, the best first; they are stored with the run.
        tried: reads what was tried on other programs on the same target until this run began; it takes a
            while where the store has much.
        models: what can predict or propose, by name.
    """

    taught: Sequence[Candidate] = ()
    tried: Callable[[], Tried] = _nothing
    models: Mapping[str, object] = field(default_factory=dict[str, object])


UNTAUGHT = SearchContext()
"""What is known where nothing is."""
