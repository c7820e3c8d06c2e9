"""What a searcher has proposed, so that it proposes nothing twice."""

from collections.abc import Callable

from planish.core import Candidate, CanName, Space
from planish.search.recall import Recall

PATIENCE = 1_000
"""Repeats in a row after which a space counts as used up."""


class Visited:
    """The candidates proposed so far, by state where the space names states, else by hash.

    Args:
        space: what they belong to.
        recall: what was proposed before; the place of a proposal is how many were noted before it.
    """

    def __init__(self, space: Space, recall: Recall | None = None) -> None:
        self._recall = recall or Recall()
        # Asked once: a look at a protocol costs as much as the search itself.
        self._state = space.state if isinstance(space, CanName) else None
        self._names: set[str] = set()

    def name(self, candidate: Candidate) -> str:
        """Name what a candidate stands for: equal names need one measurement."""
        return self._state(candidate) if self._state else candidate.hash

    def known(self, candidate: Candidate) -> bool:
        """Whether a candidate, or what stands for the same, was noted."""
        return self.name(candidate) in self._names

    def add(self, candidate: Candidate) -> bool:
        """Note a candidate; tells whether it is new."""
        return self._note(self.name(candidate), candidate)

    def all_recalled(self, count: int) -> list[Candidate]:
        """Give the next so many proposals as an earlier session made them, and note them; or none of them."""
        first = len(self._names)
        # All are looked up before any is noted: noting one that differs would forget the rest.
        found = [known for place in range(first, first + count) if (known := self._recall.at(place))]
        return [each for each in found if self.add(each)] if len(found) == count else []

    def recalled(self) -> Candidate | None:
        """Give the next proposal as an earlier session made it, and note it; None where it must be drawn."""
        known = self._recall.at(len(self._names))
        return known if known is not None and self.add(known) else None

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
            if self._note(name, candidate):
                return candidate
            other = change(candidate)
            if other is None:
                return None
            other_name = self.name(other)
            if other_name != name:
                candidate, name = other, other_name
        return None

    def _note(self, name: str, candidate: Candidate) -> bool:
        if name in self._names:
            return False
        # Before it is counted: the place of a proposal is how many were noted before it.
        self._recall.check(len(self._names), candidate)
        self._names.add(name)
        return True
