"""Search guided by a cost model: AutoTVM's algorithm 1.

Chains of simulated annealing walk over what the model predicts, and of the best candidates that they meet a
batch is measured that is good and diverse (equation 3).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Annotated, Protocol

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    CanEvolve,
    CanFeaturize,
    Objective,
    ScheduleError,
    SearchContext,
    TrialPrediction,
    rng,
)
from planish.models.learner import (
    FIRST,
    GP_THRESHOLD,
    GROWTH,
    MOST,
    LearnableSpace,
    Learner,
    batch_sizes,
    distinct_seeds,
    make_learner,
)
from planish.search.factory import Option
from planish.search.rounds import Costs, Recall, Rounds, RoundSearcher, Visited, neighbor, new_sample, sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

Score = Callable[[Sequence[Candidate]], "NDArray[np.float32]"]
"""Predicts what candidates cost; less is better."""

COLDEST = 1e-3
"""Of the first temperature: below it nothing worse is accepted."""


class Chains:
    """Chains of annealing, each of which begins a walk where the last one ended; all move at once.

    Args:
        space: where they walk.
        temperature: at the first step of a walk, in standard deviations of the chains' predictions; it falls
            evenly to 0.
    """

    def __init__(self, space: CanEvolve, temperature: float) -> None:
        self._space, self._temperature = space, temperature
        self.states: list[Candidate] = []
        self._energies: NDArray[np.float32] | None = None

    def walk(self, score: Score, steps: int, generator: Generator) -> dict[Candidate, float]:
        """Move all chains a number of steps; return all that they met, with the predictions."""
        import numpy as np

        if not self.states:  # the space found nothing legal to begin with
            return {}
        # Asked anew, for the model has learnt since the last walk: energies of before are of another scale.
        energies = score(self.states)
        met = dict(zip(self.states, energies.tolist(), strict=True))
        # Where all are predicted alike, any unit will do.
        unit = float(energies.std()) or 1.0
        for step in range(steps):
            # Bounded below, for the chance of being accepted divides by it.
            heat = max(self._temperature * (1 - step / steps), COLDEST) * unit
            moved = [neighbor(self._space, state, generator) or state for state in self.states]
            # One question for all chains: a model answers a batch in hardly more time than a single
            # candidate.
            found = score(moved)
            met.update(zip(moved, found.tolist(), strict=True))
            # What is better has a chance of 1: without the minimum its exponential might overflow.
            chance = np.exp(np.minimum((energies - found) / heat, 0))
            accepted = generator.random(len(moved)) < chance
            energies = np.where(accepted, found, energies)
            self.states = [
                new if yes else old for new, old, yes in zip(moved, self.states, accepted, strict=True)
            ]
        self._energies = energies
        return met

    def begin(self, first: Sequence[Candidate], count: int, generator: Generator) -> None:
        """Fill up the chains to a number: those that there are, known good candidates, and samples."""
        if not self.states:
            # What is known to be good stands first, so samples are what is cut where there are too many.
            self.states, self._energies = list(first), None
        if len(self.states) > count:
            dropped = set(self._worst_first()[: len(self.states) - count])
            # Before the first walk none is known to be worse, and the last ones go.
            kept = [index for index in range(len(self.states)) if index not in dropped][:count]
            self.states = [self.states[index] for index in kept]
            if self._energies is not None:
                self._energies = self._energies[kept]
        while len(self.states) < count and (drawn := sample(self._space, generator)):
            self.states.append(drawn)

    def restart(self, candidates: Iterable[Candidate]) -> None:
        """Replace the chains with the worst predictions by candidates."""
        for index, candidate in zip(self._worst_first(), candidates, strict=False):
            self.states[index] = candidate

    def _worst_first(self) -> list[int]:
        """List the chains that have walked, those with the worst predictions first."""
        import numpy as np

        if self._energies is None:
            return []
        # Stable, so that of equals a resumed run restarts the same.
        return np.argsort(-self._energies, kind="stable").tolist()


def choose_diverse(
    candidates: Sequence[Candidate], scores: NDArray[np.float32], count: int, alpha: float
) -> list[int]:
    """Choose candidates one by one, each time the one that adds most to equation 3.

    That is less predicted cost, and `alpha` for each step that none of those chosen before has. It is
    submodular, so the greedy choice is at least 63 % as good as the best one.

    Args:
        candidates: the best few.
        scores: their predicted costs, in any unit that `alpha` is in.
        count: how many are chosen.
        alpha: what a new component is worth; 0 chooses by the scores alone.

    Returns:
        Their indices, in the order in which they were chosen.
    """
    import numpy as np

    # Equation 3's components are the space's knobs; here they are steps, which all spaces have.
    number = {step: i for i, step in enumerate(dict.fromkeys(s for c in candidates for s in c.steps))}
    holds = np.zeros((len(candidates), len(number)), bool)
    for row, candidate in enumerate(candidates):
        holds[row, [number[step] for step in candidate.steps]] = True
    new, left = holds.sum(axis=1), np.ones(len(number), bool)
    gain = -np.asarray(scores, np.float64)
    chosen: list[int] = []
    for _ in range(min(count, len(candidates))):
        best = int(np.argmax(gain + alpha * new))
        # An entry of -inf is never the greatest again, so none is chosen twice.
        chosen.append(best)
        gain[best] = -np.inf
        # Only what has just been covered is taken off: to count all anew would cost a pass for each choice.
        covered = holds[best] & left
        new = new - holds[:, covered].sum(axis=1)
        left &= ~covered
    return chosen


_log = logging.getLogger("planish")

CHAINS_EACH = 4
"""Chains for each candidate of a batch: to draw all chains for a small first batch takes longer than it."""
ERA = 8
"""Batches after which the chains begin anew, from the best: what a resumed run has to walk again, at most.

What the paper does is no better at equal measurements (`experiments/autotvm/chains.py`)."""


class CanBeGuided(CanEvolve, CanFeaturize, Protocol):
    """A space whose candidates have neighbors, and are described by numbers."""


@dataclass(frozen=True)
class GuidedPlan:
    """Options of a guided search: those of `ModelGuided`."""

    batch: int
    first: int
    growth: float
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
        context: SearchContext = EMPTY_CONTEXT,
        *,
        batch: Annotated[int, Option("candidates measured at most before it learns again", least=2)] = MOST,
        first: Annotated[int, Option("candidates of the first batch, and of each at least", least=2)] = FIRST,
        growth: Annotated[
            float, Option("size of a batch, relative to the number of earlier trials", least=0)
        ] = GROWTH,
        chains: Annotated[
            int, Option("parallel chains of annealing, at most 4 for each of a batch", least=1)
        ] = 128,
        steps: Annotated[int, Option("moves of each chain for a batch; TVM has 500", least=1)] = 4,
        temperature: Annotated[
            float, Option("at the first move, in deviations of predictions", least=0)
        ] = 1.0,
        restarts: Annotated[int, Option("chains that continue from the best measured", least=0)] = 32,
        epsilon: Annotated[float, Option("share of a batch that is random", least=0, most=1)] = 0.05,
        top: Annotated[float, Option("lambda: proposals for each candidate of a batch", least=1)] = 2.0,
        alpha: Annotated[
            float, Option("worth of a new component, in deviations of predictions", least=0)
        ] = 0.02,
        acquisition: Annotated[str, Option("mean, ei or ucb; the last two ask five models")] = "mean",
        bound: Annotated[float, Option("deviations of the confidence bound", least=0)] = 1.0,
        objective: Annotated[str, Option("what local models learn: rank or regression")] = "rank",
        model: Annotated[str, Option("global model: auto, none, or a name or file")] = "auto",
        local: Annotated[str, Option("what learns from the trials: trees or tree-gru")] = "trees",
        gp_threshold: Annotated[
            int, Option("trials below which a Gaussian process learns from them; 0: none", least=0)
        ] = GP_THRESHOLD,
    ) -> None:
        plan = GuidedPlan(batch, first, growth, chains, steps, temperature, restarts, epsilon, top, alpha)
        self._predictions: dict[str, TrialPrediction] = {}
        self._space = space
        self._learner = learner = make_learner(
            space, seed, model, objective, acquisition, bound, local, gp_threshold, objectives[0].name
        )
        if learner.missing_library:  # at once, and not only when the search is over
            _log.warning("%s", learner.missing_library)
        seeds = distinct_seeds(space, context)
        recall = Recall()
        rounds = guided(space, seed, plan, learner, seeds, recall, self._predictions)
        super().__init__(objectives, rounds, recall)

    @property
    def model_s(self) -> float:
        """Seconds that learning, describing candidates and predicting took; see `planish.core.Searcher`."""
        return self._learner.seconds

    @property
    def notes(self) -> Sequence[str]:
        """Notes on the models that guided the search, and why nothing was learnt; see
        `planish.core.Searcher`."""
        return self._learner.notes

    def prediction(self, candidate: Candidate) -> TrialPrediction | None:
        """Return the model's score of a candidate of the last batch; see `planish.core.Searcher`."""
        return self._predictions.get(candidate.hash)

    def importance(
        self, candidate: Candidate, others: Callable[[], Sequence[Candidate]]
    ) -> Sequence[tuple[str, float]]:
        """Vary the candidate's features one by one; see `planish.core.Searcher`."""
        if not self._learner.ready:
            return ()
        return feature_importance(self._space, self._learner, candidate, others())


SHOWN_FEATURES = 12
"""The number of features whose importance is kept."""


def feature_importance(
    space: LearnableSpace, learner: Learner, candidate: Candidate, others: Sequence[Candidate]
) -> Sequence[tuple[str, float]]:
    """Predict a candidate with other candidates' values, one feature at a time; see `Searcher.importance`."""
    import numpy as np

    if not others:
        return ()
    try:
        base = space.features([candidate])[0]
    except ScheduleError:  # it need not be of the space, as a library's call
        return ()
    rows = space.features(others)
    varied = np.flatnonzero((rows != base).any(axis=0))
    if not len(varied):
        return ()
    changed = np.tile(base, (len(varied), len(rows), 1))
    for number, column in enumerate(varied):
        changed[number, :, column] = rows[:, column]
    unit = float(learner.predict(rows).std()) or 1.0
    found = learner.predict(changed.reshape(-1, rows.shape[1])).reshape(len(varied), len(rows))
    worse = (found.mean(axis=1) - learner.predict(base[None])[0]) / unit
    order = np.argsort(-np.abs(worse), kind="stable")[:SHOWN_FEATURES]
    names = space.schema.names
    return [(names[varied[i]], float(worse[i])) for i in order if worse[i]]


def guided(
    space: CanBeGuided,
    seed: int,
    plan: GuidedPlan,
    learner: Learner,
    seeds: Sequence[Candidate] = (),
    recall: Recall | None = None,
    predictions: dict[str, TrialPrediction] | None = None,
) -> Rounds:
    """Measure batch after batch, no candidate twice, until nothing new is found.

    As long as nothing is known the batches are random, but for what is known to be good.

    Args:
        space: where to search.
        seed: round r draws by `rng(seed, r)`.
        plan: the constants.
        learner: the model, which learns from each batch.
        seeds: what is known to be good, each state once; the chains begin there.
        recall: what was proposed before; whole eras of it are taken without asking the model.
        predictions: where the model's scores of each batch are kept, by hash, until the next one.
    """
    search = _Search(space, seed, plan, learner, seeds, recall or Recall())
    for number in count():
        batch = search.batch(number)
        if not batch:
            return
        if predictions is not None:
            predictions.clear()
            predictions.update(search.predictions(batch))
        search.learn(batch, (yield batch))


class _Search:
    """State of a guided search; see `guided`."""

    def __init__(
        self,
        space: CanBeGuided,
        seed: int,
        plan: GuidedPlan,
        learner: Learner,
        seeds: Sequence[Candidate],
        recall: Recall,
    ) -> None:
        self._space, self._seed, self._plan, self._learner = space, seed, plan, learner
        self._visited = Visited(space, recall)
        self._seeds = seeds
        self._chains = Chains(space, plan.temperature)
        self._sizes = batch_sizes(plan.first, plan.batch, plan.growth, len(seeds))
        self._size_of: list[int] = []
        self._best: list[tuple[float, Candidate]] = []
        self._recalled: list[Candidate] = []
        self._was_recalled = False

    def batch(self, number: int) -> list[Candidate]:
        """Choose the next candidates; none where nothing new is found."""
        if number % ERA == 0:
            self._chains = Chains(self._space, self._plan.temperature)
            era = range(number, number + ERA)
            # A whole era or nothing: the chains walk within an era, so one that is recalled in part could not
            # go on as the earlier session did.
            self._recalled = self._visited.all_recalled(sum(self._size(each) for each in era))
        size = self._size(number)
        self._was_recalled = len(self._recalled) > 0
        if self._was_recalled:
            batch, self._recalled = self._recalled[:size], self._recalled[size:]
            return batch
        generator = rng(self._seed, number)
        batch = [each for each in self._seeds if self._visited.add(each)] if number == 0 else []
        # A model that has seen no successful candidate ranks at random: then samples serve as well, and are
        # free.
        if self._learner.ready:
            batch += self._chosen(self._met(size, generator), number, len(batch))
        # The random ones, and those that the chains did not meet.
        while len(batch) < size and (drawn := new_sample(self._space, self._visited, generator)):
            batch.append(drawn)
        return batch

    def predictions(self, batch: Sequence[Candidate]) -> Mapping[str, TrialPrediction]:
        """Return the model's scores of a batch, by hash; none where it is recalled, or nothing is known."""
        if self._was_recalled or not self._learner.ready:
            return {}
        scores = self._learner.score(batch)
        learned = self._learner.learned
        return {c.hash: TrialPrediction(float(s), learned) for c, s in zip(batch, scores, strict=True)}

    def learn(self, batch: Sequence[Candidate], costs: Costs) -> None:
        """Record the costs of a batch."""
        found = [costs.get(candidate.hash) for candidate in batch]
        # Failures too: what fails is what the model should learn to avoid.
        self._learner.learn(batch, found)
        self._best += [(cost, each) for cost, each in zip(found, batch, strict=True) if cost is not None]
        self._best = sorted(self._best, key=lambda pair: pair[0])[: self._plan.restarts]

    def _size(self, number: int) -> int:
        while len(self._size_of) <= number:
            self._size_of.append(next(self._sizes))
        return self._size_of[number]

    def _met(self, size: int, generator: Generator) -> Mapping[Candidate, float]:
        """Move the chains; return all they met, with the predictions."""
        plan, best = self._plan, [candidate for _, candidate in self._best]
        self._chains.begin([*self._seeds, *best], min(plan.chains, CHAINS_EACH * size), generator)
        # From what was measured, not from what was predicted: where the model errs, its chains would stay
        # there.
        self._chains.restart(best)
        # A small batch is not worth as many moves.
        return self._chains.walk(self._learner.score, max(1, plan.steps * size // plan.batch), generator)

    def _random(self, number: int) -> int:
        """Return how many of a batch are random: of all batches so far together, the share epsilon.

        Each batch rounded by itself would have none below eleven candidates.
        """
        size = self._size(number)
        before = sum(self._size_of[:number])
        return round(self._plan.epsilon * (before + size)) - round(self._plan.epsilon * before)

    def _chosen(self, met: Mapping[Candidate, float], number: int, there: int) -> list[Candidate]:
        """Choose the part of a batch that is not random from what the chains met and are not measured.

        Args:
            met: with the predictions.
            number: of the batch.
            there: how many it has already.
        """
        import numpy as np

        plan, visited, size = self._plan, self._visited, self._size(number)
        # Epsilon-greedy (algorithm 1): random ones keep the model from believing only in what it chose.
        wanted = max(0, size - self._random(number) - there)
        ranked = sorted(
            (pair for pair in met.items() if not visited.known(pair[0])), key=lambda pair: pair[1]
        )
        # Equation 3 is maximized over the best lambda * b candidates of the walk, not over all it met.
        few = ranked[: max(wanted, round(plan.top * size))]
        if not few:
            return []
        scores = np.array([score for _, score in few], np.float32)
        # In deviations of what is predicted, so that alpha weighs the same whatever a model predicts.
        unit = float(np.std(list(met.values()))) or 1.0
        chosen = choose_diverse([candidate for candidate, _ in few], scores / unit, wanted, plan.alpha)
        # The best predicted first: a run may end within a batch.
        return [few[index][0] for index in sorted(chosen) if visited.add(few[index][0])]
