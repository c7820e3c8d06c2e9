"""What a searcher has proposed, so that it proposes nothing twice."""

from collections.abc import Callable

from planish.core import Candidate, CanName, Space

PATIENCE = 1_000
"""Repeats in a row after which a space counts as used up."""


class Visited:
    """The candidates seen so far, by state where the space names states, else by hash."""

    def __init__(self, space: Space) -> None:
        # Asked once: a look at a protocol costs as much as the search itself.
        self._state = space.state if isinstance(space, CanName) else None
        self._names: set[str] = set()

    def name(self, candidate: Candidate) -> str:
        """Name what a candidate stands for: equal names need one measurement."""
        return self._state(candidate) if self._state else candidate.hash

    def add(self, candidate: Candidate) -> bool:
        """Note a candidate; tells whether it is new."""
        before = len(self._names)
        self._names.add(self.name(candidate))
        return len(self._names) > before

    def fresh(
        self, candidate: Candidate | None, change: Callable[[Candidate], Candidate | None]
    ) -> Candidate | None:
        """Change a candidate until it is new, and note it.

        Args:
            candidate: to begin with; None where there is none.
            change: gives another; None where there is none.

        Returns:
            The new candidate; None where there is none, or after `PATIENCE` changes that gave no new one.
        """
        for _ in range(PATIENCE):
            if candidate is None or self.add(candidate):
                return candidate
            candidate = change(candidate)
        return None
