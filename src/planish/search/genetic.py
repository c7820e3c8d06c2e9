"""Genetic search: AutoTVM's baseline of the same name.

Where there is a cost model for such candidates, the first generation is the best predicted of a pool of
samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Annotated

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    CanEvolve,
    CanSample,
    CanSeed,
    Objective,
    PlanishError,
    SearchContext,
    rng,
)
from planish.search.factory import Option
from planish.search.rounds import (
    Recall,
    Rounds,
    RoundSearcher,
    Visited,
    changed,
    new_candidates,
    new_from,
    new_sample,
    quality,
    recording,
    sample,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

    from planish.models.learner import Prior

POOL, TAKEN = 32, 8
"""Samples that are drawn together, and how many of them are taken: the best predicted."""
IDLE = 4
"""Pools in a row without anything new, after which no other is drawn."""


def prescreen(space: CanSample, visited: Visited, prior: Prior, seed: int) -> Iterator[Candidate]:
    """Draw a pool of samples, yield the best predicted of them, the best first, and so on.

    What was proposed before is passed over, and what is yielded is recorded. A pool depends on no
    measurement, so a resumed search draws the same ones.

    Args:
        space: is sampled.
        visited: what was proposed.
        prior: predicts what candidates cost.
        seed: pool p is drawn with `rng(seed, 0, p)`.
    """
    idle = 0
    for number in count():
        generator = rng(seed, 0, number)
        drawn = [*dict.fromkeys(each for _ in range(POOL) if (each := sample(space, generator)))]
        if not drawn or idle == IDLE:
            return
        idle += 1
        # Stable, so that of equals the one that was drawn first comes first.
        for index in prior.score(drawn).argsort(kind="stable")[:TAKEN].tolist():
            if visited.add(drawn[index]):
                idle = 0
                yield drawn[index]


class Genetic(RoundSearcher):
    """Genetic search: crossover and mutation of parents drawn by fitness (AutoTVM's baseline)."""

    needs = CanEvolve

    def __init__(
        self,
        space: CanEvolve,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = EMPTY_CONTEXT,
        *,
        population: Annotated[int, Option("candidates of each generation", least=2)] = 100,
        elite: Annotated[int, Option("best candidates so far that stay parents", least=0)] = 3,
        mutation: Annotated[float, Option("chance of each step to be changed", least=0, most=1)] = 0.1,
        model: Annotated[str, Option("chooses the first generation: auto, none, or a name or file")] = "auto",
    ) -> None:
        recall = Recall()
        self._prior = _prior(space, model, objectives[0].name)
        first = space.seeds(context) if isinstance(space, CanSeed) else ()
        rounds = genetic(space, seed, population, elite, mutation, first, recall, self._prior)
        super().__init__(objectives, rounds, recall)

    @property
    def model_s(self) -> float:
        """Seconds that describing candidates and predicting took; see `planish.core.Searcher`."""
        return self._prior.seconds if self._prior else 0.0

    @property
    def notes(self) -> Sequence[str]:
        """Notes on the models that chose the first generation; see `planish.core.Searcher`."""
        return (self._prior.note,) if self._prior else ()


@dataclass(frozen=True)
class _Parent:
    candidate: Candidate
    cost: float


def genetic(
    space: CanEvolve,
    seed: int,
    population: int,
    elite: int,
    mutation: float,
    first: Sequence[Candidate] = (),
    recall: Recall | None = None,
    prior: Prior | None = None,
) -> Rounds:
    """Breed generation after generation, no candidate twice, until nothing new is found.

    The parents of a generation are the last one and the elite. As in AutoTVM, each child has two
    parents drawn in proportion to their fitness, and is changed until it is new. There a failure
    is a parent of fitness 0; here it is none. With fewer than two parents, a generation is sampled. The
    first one begins with what is known to be good; with a model of other programs, the rest of it are the
    best predicted samples, where AutoTVM's are any.

    Args:
        space: where to search.
        seed: the i-th candidate is made with `rng(seed, i)`.
        population: candidates of each generation.
        elite: how many of the best so far stay parents.
        mutation: the chance of each step of a child to be changed.
        first: what is known to be good.
        recall: what was proposed before.
        prior: a model of other programs; None for none.
    """
    visited, parents, best = Visited(space, recall), list[_Parent](), list[_Parent]()
    seeded = filter(visited.add, first)
    if prior:
        seeded = chain(seeded, prescreen(space, visited, prior, seed))
    for start in count(0, population):
        breed = partial(_breed, space, visited, parents, _fitness(parents), mutation)
        bred = new_candidates(visited, seed, range(start, start + population), breed, seeded)
        generation = list[Candidate]()
        # Bred as they are asked for: no whole generation is bred to measure a few.
        costs = yield recording(bred, generation)
        seeded = iter(())
        if not generation:
            return
        measured = [_Parent(each, cost) for each in generation if (cost := costs.get(each.hash)) is not None]
        best = sorted(best + measured, key=lambda parent: parent.cost)[:elite]
        # One that stood there twice would be drawn twice as often, and could be both parents.
        names = {parent.candidate.hash for parent in measured}
        parents = measured + [parent for parent in best if parent.candidate.hash not in names]


def _prior(space: CanEvolve, model: str, measured: str) -> Prior | None:
    """Find the model that the user named, or one for such candidates; None where there is none."""
    from planish.models.learner import LearnableSpace, prior_of

    if isinstance(space, LearnableSpace):
        return prior_of(space, model, measured)
    if model in ("auto", "none"):
        return None
    raise PlanishError(
        f"no model is for the candidates of {type(space).__name__}",
        "Leave the searcher's option 'model' out.",
    )


def _breed(
    space: CanEvolve,
    visited: Visited,
    parents: Sequence[_Parent],
    fitness: NDArray[np.float64],
    mutation: float,
    generator: Generator,
) -> Candidate | None:
    """Cross two parents, and change the child as often as it has steps that fall to the mutation's chance."""
    if len(parents) < 2:
        return new_sample(space, visited, generator)
    # Without replacement: a parent crossed with itself is its own copy, and would be mutation alone.
    a, b = (parents[number].candidate for number in draw_two(fitness, generator))
    child = space.crossover(a, b, generator)[0]
    # At least one trial: the empty candidate has no steps, but neighbors all the same.
    times = generator.binomial(max(1, len(child.steps)), mutation)
    return new_from(space, visited, changed(space, child, times, generator), generator)


def draw_two(chances: NDArray[np.float64], generator: Generator) -> Sequence[int]:
    """Draw two indices as `Generator.choice` does without replacement, in a fifth of its time."""
    first, second = _drawn(chances, generator.random(2))
    if first == second:
        others = chances.copy()
        others[first] = 0.0
        (second,) = _drawn(others, generator.random(1))
    return first, second


def _drawn(chances: NDArray[np.float64], numbers: NDArray[np.float64]) -> Sequence[int]:
    """Return the indices to which numbers from 0 to 1 fall."""
    sums = chances.cumsum()
    return (sums / sums[-1]).searchsorted(numbers, side="right").tolist()


def _fitness(parents: Sequence[_Parent]) -> NDArray[np.float64]:
    """Return each parent's chance to be drawn; above zero, since two must be drawn."""
    import numpy as np

    best = min((parent.cost for parent in parents), default=0.0)
    weights = [quality(parent.cost, best) + 1e-8 for parent in parents]
    return np.array(weights) / sum(weights)
