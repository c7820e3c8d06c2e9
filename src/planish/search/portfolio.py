"""Portfolio search: known good candidates, then local search around the best few with minimisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Annotated, Protocol

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    CanEvolve,
    CanSeed,
    CanShrink,
    Objective,
    SearchContext,
)
from planish.search.factory import Option
from planish.search.minimisation import minimise
from planish.search.proposals import Archive, changed, new_candidates, new_from, new_sample
from planish.search.rounds import Recall, Rounds, RoundSearcher

if TYPE_CHECKING:
    from numpy.random import Generator


CROSSED = 0.25
"""The share of variations that begin with two of the best."""


class Varied(CanSeed, CanShrink, Protocol):
    """Space that `Portfolio` searches."""


class Portfolio(RoundSearcher):
    """Known good candidates first, then variations of the best few, minimised after each stage."""

    needs = Varied

    def __init__(
        self,
        space: Varied,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = EMPTY_CONTEXT,
        *,
        stage: Annotated[int, Option("new candidates before each minimisation", least=1)] = 64,
        few: Annotated[int, Option("best candidates that are varied", least=1)] = 8,
        explore: Annotated[float, Option("share of new candidates drawn afresh", least=0, most=1)] = 0.3,
    ) -> None:
        recall = Recall()
        rounds = portfolio(space, seed, Mixture(stage, few, explore), context, recall)
        super().__init__(objectives, rounds, recall)


@dataclass(frozen=True)
class Mixture:
    """Mixture of proposals of one stage.

    Args:
        stage: new candidates of each stage.
        few: how many of the best are varied.
        explore: the share of new candidates that are samples; the others vary one of the best.
    """

    stage: int
    few: int
    explore: float


def portfolio(
    space: Varied,
    seed: int,
    mixture: Mixture,
    context: SearchContext = EMPTY_CONTEXT,
    recall: Recall | None = None,
) -> Rounds:
    """Measure the space's seeds, then stages of samples and variations, until nothing new is found.

    At the end of a stage the best candidate is minimised, if it is a new one. The next stage draws the steps
    of the best few more often, if the space can do so (`CanSeed.focused`).

    Args:
        space: where to search.
        seed: the i-th new candidate is made with `rng(seed, i)`.
        mixture: what a stage is made of.
        context: what was learned before.
        recall: what was proposed before.
    """
    archive, minimised = Archive(space, mixture.few, recall), None
    yield from archive.measure_new(space.seeds(context))
    for first in count(0, mixture.stage):
        best = archive.best()
        variation = _Variation(space, best, mixture.explore, archive)
        indices = range(first, first + mixture.stage)
        new = list(new_candidates(archive.visited, seed, indices, variation.draw))
        yield from archive.measure(new)
        # To minimise takes as many measurements as there are steps: once for each new best, no more.
        if archive.best()[:1] not in ([], [minimised]):
            yield from minimise(space, archive, archive.best()[0])
            minimised = archive.best()[0]
        if len(new) < mixture.stage:
            return


@dataclass(frozen=True)
class _Variation:
    """Makes new candidates by sampling, and from the best few."""

    whole: CanSeed
    best: Sequence[Candidate]
    explore: float
    archive: Archive

    @cached_property
    def space(self) -> CanEvolve:
        """The space as it is drawn from; focusing it takes a while, and what is recalled does without."""
        return self.whole.focused(self.best) if self.best else self.whole

    def draw(self, generator: Generator) -> Candidate | None:
        """Sample, or change one of the best, or a cross of two, once or more; None where none is new."""
        space, visited = self.space, self.archive.visited
        if not self.best or generator.random() < self.explore:
            return new_sample(space, visited, generator)
        one, other = self._parent(generator), self._parent(generator)
        # Of equal parents the draw is spared; their cross is the parent itself.
        crossed = one != other and generator.random() < CROSSED
        child = space.crossover(one, other, generator)[0] if crossed else one
        # Each time more is half as likely.
        return new_from(
            space, visited, changed(space, child, int(generator.geometric(0.5)), generator), generator
        )

    def _parent(self, generator: Generator) -> Candidate:
        """Draw one of the best few: each half as likely as the one before it."""
        # A draw beyond the last one wraps around, to the best.
        return self.best[(int(generator.geometric(0.5)) - 1) % len(self.best)]
