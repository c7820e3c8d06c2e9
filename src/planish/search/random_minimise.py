"""Random search with minimisation: the thesis's autotuner for one program (4.3.2)."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Annotated, Protocol

from planish.core import UNTAUGHT, Candidate, CanSample, CanShrink, Objective, SearchContext, rng
from planish.search.archive import Archive
from planish.search.minimise import minimise
from planish.search.options import Option
from planish.search.recall import Recall
from planish.search.rounds import Rounds, RoundSearcher
from planish.search.sampling import new_sample


class Shrinkable(CanSample, CanShrink, Protocol):
    """What `RandomMinimise` needs of a space."""


class RandomMinimise(RoundSearcher):
    """Random search that then leaves out what does not contribute, again and again (thesis 4.3.2)."""

    needs = Shrinkable

    def __init__(
        self,
        space: Shrinkable,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = UNTAUGHT,  # noqa: ARG002
        *,
        samples: Annotated[int, Option("random candidates before each minimisation", least=1)] = 1000,
    ) -> None:
        recall = Recall()
        super().__init__(objectives, random_minimise(space, seed, samples, recall), recall)


def random_minimise(space: Shrinkable, seed: int, samples: int, recall: Recall | None = None) -> Rounds:
    """Sample, minimise the best so far, and begin again, until the space seems used up.

    The thesis samples for 780 seconds and minimises once; here the budget belongs to the loop, so a stage
    is counted in samples.

    Args:
        space: where to search.
        seed: the i-th sample is drawn by `rng(seed, i)`.
        samples: random candidates of each stage.
        recall: what was proposed before.
    """
    ledger = Archive(space, recall=recall)
    for first in count(0, samples):
        drawn: list[Candidate] = []
        yield from ledger.measure(_draw(space, seed, range(first, first + samples), ledger, drawn))
        for best in ledger.best():
            yield from minimise(space, ledger, best)
        # Fewer than were wanted: the draws met nothing new in many tries, so the next stage would not either.
        if len(drawn) < samples:
            return


def _draw(
    space: CanSample, seed: int, places: range, ledger: Archive, drawn: list[Candidate]
) -> Iterator[Candidate]:
    """Draw new candidates, and note them, until none is new."""
    for place in places:
        new = ledger.visited.recalled() or new_sample(space, ledger.visited, rng(seed, place))
        if new is None:
            return
        drawn.append(new)
        yield new
