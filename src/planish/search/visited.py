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
        return self._note(self.name(candidate))

    def fresh(
        self, candidate: Candidate | None, change: Callable[[Candidate], Candidate | None]
    ) -> Candidate | None:
        """Change a candidate until it is new, and note it.

        A change that leaves its name is not kept: such changes would pile up, and cost more and more.

        Args:
            candidate: to begin with; None where there is none.
            change: gives another; None where there is none.

        Returns:
            The new candidate; None where there is none, or after `PATIENCE` changes that gave no new one.
        """
        if candidate is None:
            return None
        name = self.name(candidate)
        for _ in range(PATIENCE):
            if self._note(name):
                return candidate
            other = change(candidate)
            if other is None:
                return None
            other_name = self.name(other)
            if other_name != name:
                candidate, name = other, other_name
        return None

    def _note(self, name: str) -> bool:
        before = len(self._names)
        self._names.add(name)
        return len(self._names) > before
