"""What searchers may offer beyond asking and telling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from planish.core.protocols import Searcher
from planish.core.step import Candidate


@runtime_checkable
class CanRecall(Searcher, Protocol):
    """A searcher that need not find again what the same search proposed before.

    What it proposes is the same, and so is what follows.

    Offered by searchers written as generators of rounds; used by the loop, when it takes a run up again.
    """

    def recall(self, proposed: Callable[[int], Candidate | None]) -> None:
        """Take what the same search has proposed before; to be called before it is asked or told anything.

        Args:
            proposed: gives the proposal of a place, from 0; None where it is not known.
        """
        ...


@runtime_checkable
class HasModel(Searcher, Protocol):
    """A searcher that asks a model, and knows how long that took.

    Offered by `model-guided`, `policy` and `priority`; used by the loop, which counts that time beside the
    search's.
    """

    @property
    def model_s(self) -> float:
        """Seconds that the model took so far, a part of what it took to ask and to tell."""
        ...


@runtime_checkable
class HasSearchNotes(Searcher, Protocol):
    """A searcher that has something to tell the user of how it searched.

    Offered by `model-guided` alone, for others do as their options say, while it depends on the models and
    libraries that there are; used by the run, which shows and stores the notes beside those of evaluators.
    """

    @property
    def notes(self) -> Sequence[str]:
        """Sentences, without full stops; asked for when the search is over."""
        ...
