"""What a run has proposed before, so that a search that is resumed need not find it again."""

from collections.abc import Callable

from planish.core import Candidate

Proposed = Callable[[int], Candidate | None]
"""The place of a proposal, from 0, to the proposal; None where it is not known."""


class Recall:
    """Proposals by their place, as long as the search proposes what it proposed before.

    A proposal follows from the seed, its place, and what the earlier ones cost. So what is known of the same
    search need not be drawn again. A search that has changed since differs where it draws by itself:
    then all else is drawn too.
    """

    def __init__(self) -> None:
        self._proposed: Proposed | None = None

    def begin(self, proposed: Proposed) -> None:
        """Take what was proposed before; to be called before the search begins."""
        self._proposed = proposed

    def at(self, place: int) -> Candidate | None:
        """Give the proposal at a place; None where it is not known."""
        return self._proposed(place) if self._proposed else None

    def check(self, place: int, candidate: Candidate) -> None:
        """Compare what was drawn with what is known; where they differ, nothing is known from here on."""
        known = self.at(place)
        # What follows was proposed by a search that knew other things: to mix both would give a third one.
        if known is not None and known.hash != candidate.hash:
            self._proposed = None
