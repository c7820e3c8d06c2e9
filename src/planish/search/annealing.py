"""Simulated annealing on measured values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Annotated

from planish.core import EMPTY_CONTEXT, Candidate, CanEvolve, Objective, SearchContext, rng
from planish.search.factory import Option
from planish.search.rounds import Archive, Rounds, RoundSearcher, neighbor, new_sample, quality

if TYPE_CHECKING:
    from numpy.random import Generator

STUCK = 100
"""Moves in a row over known candidates after which a chain starts again elsewhere."""


class Annealing(RoundSearcher):
    """Simulated annealing on measured values, with several parallel chains."""

    needs = CanEvolve

    def __init__(
        self,
        space: CanEvolve,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = EMPTY_CONTEXT,  # noqa: ARG002
        *,
        chains: Annotated[int, Option("parallel Markov chains", least=1)] = 4,
        hot: Annotated[float, Option("temperature at first", least=1e-6)] = 0.5,
        cold: Annotated[float, Option("temperature that it never falls below", least=1e-6)] = 0.01,
        cooling: Annotated[float, Option("temperature's factor after each round", least=0, most=1)] = 0.95,
    ) -> None:
        super().__init__(objectives, annealing(space, seed, chains, CoolingSchedule(hot, cold, cooling)))


@dataclass(frozen=True)
class CoolingSchedule:
    """The temperature by round: it falls geometrically, for the length of the run is not known.

    A temperature is in units of the logarithm of a ratio of costs: at 0.5, a candidate that takes
    e ** 0.5 = 1.65 times as long is accepted with probability 1 / e.
    """

    hot: float
    cold: float
    cooling: float

    def __call__(self, round_: int) -> float:
        # Never 0, for the chance of being accepted divides by it.
        return max(self.cold, self.hot * self.cooling**round_)


@dataclass
class _Chain:
    """State of a chain; empty before its first measured candidate."""

    candidate: Candidate | None = None
    cost: float = 0.0

    def consider(self, candidate: Candidate, cost: float | None, heat: float, generator: Generator) -> None:
        """Accept or refuse a measured neighbor (Metropolis); a failed one is always refused."""
        if cost is None:
            return
        # quality is known / new where the new one is worse, so this is exp(-log(new / known) / heat).
        chance = 1.0 if self.candidate is None else min(1.0, quality(cost, self.cost)) ** (1 / heat)
        if generator.random() < chance:
            self.candidate, self.cost = candidate, cost

    def propose(
        self, space: CanEvolve, archive: Archive, heat: float, generator: Generator
    ) -> Candidate | None:
        """Move over known candidates until the chain meets a new one; None where there is none."""
        for _ in range(STUCK):
            if self.candidate is None:
                break
            moved = neighbor(space, self.candidate, generator)
            if moved is None or archive.visited.add(moved):
                return moved
            # A neighbor that another chain proposed in this round has no cost yet: refused.
            self.consider(moved, archive.cost(moved), heat, generator)
        self.candidate = None
        return new_sample(space, archive.visited, generator)


def annealing(space: CanEvolve, seed: int, chains: int, schedule: CoolingSchedule) -> Rounds:
    """Let each chain propose one new neighbor a round, until no chain finds a new one.

    AutoTVM anneals on its cost model's scores, which lie between 0 and 1; here the energy is the
    logarithm of the measured cost, so a cost's unit does not matter. A neighbor that was measured
    before is accepted or refused at once, without a new measurement. A chain that meets nothing
    new in 100 moves starts again from a sample.

    Args:
        space: where to search.
        seed: chain c moves in round r with `rng(seed, c, r)`.
        chains: how many candidates make one round.
        schedule: round to temperature.
    """
    # No recall: where a chain is follows from costs and draws of every round, so a resumed walk walks it
    # again.
    archive, states = Archive(space), [_Chain() for _ in range(chains)]
    for round_ in count():
        heat = schedule(round_)
        # One for each chain and round: how often a chain draws must not move the others.
        generators = [rng(seed, chain, round_) for chain in range(chains)]
        pairs = list(zip(states, generators, strict=True))
        proposals = [chain.propose(space, archive, heat, generator) for chain, generator in pairs]
        if not any(proposals):
            return
        # All chains' proposals are one round: measured side by side, and learnt from in the order of the
        # chains, so that the walk does not depend on which answer came first.
        yield from archive.measure(filter(None, proposals))
        for proposal, (chain, generator) in zip(proposals, pairs, strict=True):
            if proposal:
                chain.consider(proposal, archive.cost(proposal), heat, generator)
