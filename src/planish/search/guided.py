"""Search guided by a cost model: AutoTVM's algorithm 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Protocol

from planish.core import (
    UNTAUGHT,
    Candidate,
    CanEvolve,
    CanFeaturise,
    CanSeed,
    Objective,
    SearchContext,
    rng,
)
from planish.learn.learner import Learner, make_learner
from planish.search.diverse import choose_diverse
from planish.search.model_annealing import Chains
from planish.search.options import Option
from planish.search.recall import Recall
from planish.search.rounds import Rounds, RoundSearcher
from planish.search.sampling import new_sample
from planish.search.visited import Visited

CHAINS_EACH = 4
"""Chains for each candidate of a batch: to draw all chains for a small first batch takes longer than it."""


class CanBeGuided(CanEvolve, CanFeaturise, Protocol):
    """A space whose candidates have neighbours, and are described by numbers."""


@dataclass(frozen=True)
class Plan:
    """How a guided search goes: the options of `ModelGuided`."""

    batch: int
    first: int
    chains: int
    steps: int
    temperature: float
    restarts: int
    epsilon: float
    top: float
    alpha: float


class ModelGuided(RoundSearcher):
    """Simulated annealing over a cost model that learns from each batch (AutoTVM's algorithm 1)."""

    needs = CanBeGuided

    def __init__(
        self,
        space: CanBeGuided,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = UNTAUGHT,
        *,
        batch: Annotated[int, Option("candidates measured before the model learns again", least=2)] = 64,
        first: Annotated[int, Option("candidates of the first batch; they double up to batch", least=2)] = 8,
        chains: Annotated[
            int, Option("parallel chains of annealing, at most 4 for each of a batch", least=1)
        ] = 128,
        steps: Annotated[int, Option("moves of each chain for a batch; TVM has 500", least=1)] = 4,
        temperature: Annotated[
            float, Option("at the first move, in deviations of predictions", least=0)
        ] = 1.0,
        restarts: Annotated[int, Option("chains that go on from the best measured", least=0)] = 32,
        epsilon: Annotated[float, Option("share of a batch that is random", least=0, most=1)] = 0.05,
        top: Annotated[float, Option("lambda: a batch is chosen from so many times as many", least=1)] = 2.0,
        alpha: Annotated[
            float, Option("worth of a new component, in deviations of predictions", least=0)
        ] = 0.02,
        acquisition: Annotated[str, Option("mean, ei or ucb; the last two ask five models")] = "mean",
        bound: Annotated[float, Option("deviations of the confidence bound", least=0)] = 1.0,
        objective: Annotated[str, Option("what local models learn: rank or regression")] = "rank",
        model: Annotated[str, Option("global model: auto, none, or a name or file")] = "auto",
        local: Annotated[str, Option("what learns from the trials: trees or tree-gru")] = "trees",
    ) -> None:
        plan = Plan(batch, first, chains, steps, temperature, restarts, epsilon, top, alpha)
        self._learner = learner = make_learner(space, seed, model, objective, acquisition, bound, local)
        seeds = space.seeds(context) if isinstance(space, CanSeed) else ()
        # Chains walk on, so nothing is recalled; but nothing is drawn before it is asked.
        super().__init__(objectives, guided(space, seed, plan, learner, seeds), Recall())

    @property
    def model_s(self) -> float:
        """Seconds that learning, describing candidates and predicting took; see `planish.core.HasModel`."""
        return self._learner.seconds


def guided(
    space: CanBeGuided, seed: int, plan: Plan, learner: Learner, seeds: Sequence[Candidate] = ()
) -> Rounds:
    """Measure batch after batch, no candidate twice, until nothing new is found.

    As long as nothing is known the batches are random, but for what is known to be good.

    Args:
        space: where to search.
        seed: round r draws by `rng(seed, r)`.
        plan: the constants.
        learner: the model, which learns from each batch.
        seeds: what is known to be good; the chains begin there.
    """
    visited, chains = Visited(space), Chains(space, plan.temperature)
    best: list[tuple[float, Candidate]] = []
    for number in count():
        generator = rng(seed, number)
        size = min(plan.batch, plan.first << min(number, 30))
        batch = [each for each in seeds if visited.add(each)] if number == 0 else []
        if learner.knows:
            chains.begin(seeds, min(plan.chains, CHAINS_EACH * size), generator)
            chains.restart(candidate for _, candidate in best)
            # A small batch is not worth as many moves.
            met = chains.walk(learner.score, max(1, plan.steps * size // plan.batch), generator)
            batch += _chosen(met, visited, plan, size)
        # The random ones, and those that the chains did not meet.
        while len(batch) < size and (drawn := new_sample(space, visited, generator)):
            batch.append(drawn)
        if not batch:
            return
        costs = yield batch
        found = [costs.get(candidate.hash) for candidate in batch]
        learner.learn(batch, found)
        best += [(cost, each) for cost, each in zip(found, batch, strict=True) if cost is not None]
        best = sorted(best, key=lambda pair: pair[0])[: plan.restarts]


def _chosen(met: Mapping[Candidate, float], visited: Visited, plan: Plan, size: int) -> list[Candidate]:
    """Choose the part of a batch that is not random from what the chains met and nobody has measured."""
    import numpy as np

    wanted = size - round(plan.epsilon * size)
    known = visited.known
    ranked = sorted((pair for pair in met.items() if not known(pair[0])), key=lambda pair: pair[1])
    few = ranked[: max(wanted, round(plan.top * size))]
    scores = np.array([score for _, score in few], np.float32)
    unit = float(np.std(list(met.values()))) or 1.0
    places = choose_diverse([candidate for candidate, _ in few], scores / unit, wanted, plan.alpha)
    return [few[place][0] for place in sorted(places) if visited.add(few[place][0])]
