"""Which index a trial has in its run."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from planish.core import Candidate, Trial


class Indices:
    """Gives the candidates of a run their indices: a stored one keeps its own, a new one gets the least free.

    So a run that was killed fills the gaps that it left, as if it had never been, and no index is given twice
    even where the candidates that are proposed have changed.

    Args:
        stored: the trials that the store holds of the run.
    """

    def __init__(self, stored: Iterable[Trial] = ()) -> None:
        held = [(trial.candidate.hash, trial.index) for trial in stored]
        self._given = dict(reversed(held))
        taken = {index for _, index in held}
        self._free = (index for index in count() if index not in taken)

    def of(self, candidate: Candidate) -> int:
        """Give a candidate's index; the same one whenever it is asked for."""
        if candidate.hash not in self._given:
            self._given[candidate.hash] = next(self._free)
        return self._given[candidate.hash]
