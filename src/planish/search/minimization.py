"""Minimization: candidates without the steps that do not contribute, and searchers that minimize.

`minimize` leaves out one step at a time and measures each attempt (thesis 4.3.2). `RandomMinimize` is the
thesis's autotuner that does so after each stage of random search; `Portfolio` begins with known good
candidates and varies the best few instead. `shrink` tests many steps at once by delta debugging (Zeller and
Hildebrandt, 2002), for tests that can answer for several candidates side by side.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, count
from typing import TYPE_CHECKING, Annotated, Protocol

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    CanEvolve,
    CanObserve,
    CanSample,
    CanSeed,
    CanShrink,
    CanStep,
    Objective,
    PlanishError,
    SearchContext,
    Space,
)
from planish.search.factory import Option
from planish.search.rounds import (
    Archive,
    Recall,
    Rounds,
    RoundSearcher,
    changed,
    new_candidates,
    new_from,
    new_sample,
    recording,
)

if TYPE_CHECKING:
    import numpy as np

    from planish.search.factory import TimedPolicy

Indices = tuple[int, ...]
WillDo = Callable[[Sequence[Candidate]], Sequence[bool] | None]
"""The test: which of some candidates will do; None ends the search for shorter ones."""


def ddmin(count: int) -> Generator[list[Indices], Sequence[bool], Indices]:
    """Find a few of many indices that still pass a test, such that none of them alone can be left out.

    Unlike the original, it asks for complements alone, which is enough for that; and where each of several
    parts can be left out, it asks whether all of them can at once.

    Args:
        count: how many indices there are; all of them together pass.

    Yields:
        Sets of indices; it is sent, for each, whether it passes.

    Returns:
        The indices, in order.
    """
    # Begins with halves, as in the paper: where most steps are idle, each answer takes off half of them.
    kept, parts = tuple(range(count)), 2
    while kept:
        # Finer than single indices there is nothing to ask.
        parts = min(parts, len(kept))
        # Of integers, so that the parts' lengths differ by one at most and none is empty.
        cuts = [kept[len(kept) * i // parts : len(kept) * (i + 1) // parts] for i in range(parts)]
        # Asked together, since they do not depend on each other: they may be tested side by side.
        answers = yield [_without(kept, cut) for cut in cuts]
        idle = [cut for cut, will_do in zip(cuts, answers, strict=True) if will_do]
        # Each part is a single index, and each is needed: 1-minimal, in the paper's words.
        if not idle and parts == len(kept):
            return kept
        if len(idle) > 1:
            (all_at_once,) = yield [_without(kept, chain(*idle))]
            # Each part may be idle only because another does its work: then they cannot all go.
            idle = idle if all_at_once else idle[:1]
        kept = _without(kept, chain(*idle))
        # The granularity of the paper: the parts that remain, as they were cut; or twice as many.
        parts = max(2, parts - len(idle)) if idle else 2 * parts
    return kept


def _without(indices: Indices, left_out: Iterable[int]) -> Indices:
    out = set(left_out)
    return tuple(index for index in indices if index not in out)


def shrink(space: CanShrink, candidate: Candidate, will_do: WillDo) -> Candidate:
    """Leave steps out of a candidate by delta debugging.

    Args:
        space: what the candidate belongs to.
        candidate: it passes the test.
        will_do: the test of legal candidates; none is asked for twice.

    Returns:
        A candidate that passes, from which no single step can be left out; where `will_do` ended the
        search, the shortest one so far.
    """
    known: dict[Candidate, bool] = {candidate: True}
    asking = ddmin(len(candidate.steps))
    answers: list[bool] | None = None
    try:
        while True:
            batch = asking.send(answers) if answers is not None else next(asking)
            # A step may need another one, so a selection may not be a legal candidate: then it does not pass.
            found = [space.selected(candidate, indices) for indices in batch]
            # Different indices may select the same candidate, for a step can come several times.
            new = list(dict.fromkeys(c for c in found if c is not None and c not in known))
            verdicts = will_do(new) if new else ()
            if verdicts is None:
                return min((c for c, does in known.items() if does), key=lambda c: len(c.steps))
            known.update(zip(new, verdicts, strict=True))
            answers = [c is not None and known[c] for c in found]
    except StopIteration as end:
        return space.selected(candidate, end.value) or candidate


def minimize(space: CanShrink, archive: Archive, candidate: Candidate) -> Rounds:
    """Leave out one step after another while the cost does not rise.

    In the end no single step can be left out. As in the thesis, steps are tried one at a time; there in
    random order, here each once from the first to the last, and again from where the last success was.
    That takes about as many measurements as there are steps, and one more for each that stays.

    Args:
        space: what the candidate belongs to.
        archive: where the candidate's cost is known, and each shorter one's is recorded; its best candidate
            is the result, unless another one is better than both.
        candidate: what to shorten.
    """
    # None where the candidate failed: then there is nothing to keep below.
    index, limit = 0, archive.cost(candidate)
    while limit is not None:
        every = tuple(range(len(candidate.steps)))
        lacking_one = (space.selected(candidate, _without(every, [step])) for step in every)
        shorter = [each for each in lacking_one if each is not None]
        # After a success the same index holds the next step, unless it was the last.
        order = [*range(index, len(shorter)), *range(min(index, len(shorter)))]
        for index in order:
            yield from archive.measure_new([shorter[index]])
            cost = archive.cost(shorter[index])
            # Equal counts as no worse: a step that changes nothing goes. Where costs are times, the bound
            # falls with each success, so noise cannot add up to a slower program.
            if cost is not None and cost <= limit:
                candidate, limit = shorter[index], cost
                break
        else:
            return


class Shrinkable(CanSample, CanShrink, Protocol):
    """Space that `RandomMinimize` searches."""


class RandomMinimize(RoundSearcher):
    """Random search that then leaves out what does not contribute, again and again (thesis 4.3.2)."""

    needs = Shrinkable

    def __init__(
        self,
        space: Shrinkable,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = EMPTY_CONTEXT,  # noqa: ARG002
        *,
        samples: Annotated[int, Option("random candidates before each minimization", least=1)] = 1000,
    ) -> None:
        recall = Recall()
        super().__init__(objectives, random_minimize(space, seed, samples, recall), recall)


def random_minimize(space: Shrinkable, seed: int, samples: int, recall: Recall | None = None) -> Rounds:
    """Sample, minimize the best so far, and begin again, until the space seems used up.

    The thesis samples for 780 seconds and minimizes once; here the budget belongs to the loop, so a stage
    is counted in samples.

    Args:
        space: where to search.
        seed: the i-th sample is drawn by `rng(seed, i)`.
        samples: random candidates of each stage.
        recall: what was proposed before.
    """
    archive = Archive(space, recall=recall)
    draw = partial(new_sample, space, archive.visited)
    for first in count(0, samples):
        drawn = list[Candidate]()
        new = new_candidates(archive.visited, seed, range(first, first + samples), draw)
        yield from archive.measure(recording(new, drawn))
        for best in archive.best():
            yield from minimize(space, archive, best)
        # Fewer than were wanted: the draws met nothing new in many tries, so the next stage would not either.
        if len(drawn) < samples:
            return


PROPOSED = 8
"""Candidates of a policy that are measured before the other seeds (`experiments/first_lists.py`)."""


class PolicyProposals:
    """Most probable candidates of a policy; none where it did not read the whole program.

    Args:
        policy: is asked when the first candidate is taken.
        space: where it proposes.
        count: how many candidates.
    """

    def __init__(self, policy: TimedPolicy, space: CanStep, count: int) -> None:
        self._policy, self._space, self._count = policy, space, count

    def __iter__(self) -> Iterator[Candidate]:
        from planish.search.decoding import PrefixTree, prioritized

        # A policy that reads a program in part warns of it: then its proposals are no better than the seeds.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tree = PrefixTree(self._policy, self._space)
            found = [each.candidate for each in prioritized(tree, samples=self._count, by="whole")]
        yield from () if caught else found

    @property
    def seconds(self) -> float:
        """Seconds that the policy took."""
        return self._policy.seconds


def policy_proposals(space: Space, name: str, count: int, context: SearchContext) -> PolicyProposals | None:
    """Find the policy that proposes candidates of a space; None where none fits, or none is wanted.

    Args:
        space: of the candidates.
        name: of a policy, a file, "auto" or "none".
        count: how many candidates it proposes.
        context: what was learned before.

    Raises:
        PlanishError: the named policy cannot be read, or does not fit.
    """
    from planish.search.factory import timed_policy

    if name == "none" or not isinstance(space, CanObserve):
        return None
    try:
        return PolicyProposals(timed_policy(space, name, context), space, count)
    except PlanishError:
        if name == "auto":
            return None
        raise


CROSSED = 0.25
"""The share of variations that begin with two of the best."""


class Varied(CanSeed, CanShrink, Protocol):
    """Space that `Portfolio` searches."""


class Portfolio(RoundSearcher):
    """Known good candidates first, then variations of the best few, minimized after each stage."""

    needs = Varied

    def __init__(
        self,
        space: Varied,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = EMPTY_CONTEXT,
        *,
        stage: Annotated[int, Option("new candidates before each minimization", least=1)] = 64,
        few: Annotated[int, Option("best candidates that are varied", least=1)] = 8,
        explore: Annotated[float, Option("share of new candidates drawn afresh", least=0, most=1)] = 0.3,
        policy: Annotated[str, Option("proposes candidates early: auto, none, or a name or file")] = "auto",
        proposed: Annotated[int, Option("candidates that the policy proposes", least=1)] = PROPOSED,
    ) -> None:
        recall, self._proposals = Recall(), policy_proposals(space, policy, proposed, context)
        rounds = portfolio(space, seed, Mixture(stage, few, explore), context, recall, self._proposals)
        super().__init__(objectives, rounds, recall)

    @property
    def model_s(self) -> float:
        """Seconds that the policy took; see `planish.core.Searcher`."""
        return self._proposals.seconds if self._proposals else 0.0


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
    proposals: PolicyProposals | None = None,
) -> Rounds:
    """Measure the space's seeds, then stages of samples and variations, until nothing new is found.

    At the end of a stage the best candidate is minimized, if it is a new one. The next stage draws the steps
    of the best few more often, if the space can do so (`CanSeed.focused`).

    Args:
        space: where to search.
        seed: the i-th new candidate is made with `rng(seed, i)`.
        mixture: what a stage is made of.
        context: what was learned before.
        recall: what was proposed before.
        proposals: of a policy; they come after the first seed and what other programs recommend.
    """
    archive, minimized = Archive(space, mixture.few, recall), None
    seeds = space.seeds(context)
    head = next((i for i, seed in enumerate(seeds) if i and seed not in context.warm_start), len(seeds))
    yield from archive.measure_new(chain(seeds[:head], proposals or (), seeds[head:]))
    for first in count(0, mixture.stage):
        best = archive.best()
        variation = _Variation(space, best, mixture.explore, archive)
        indices = range(first, first + mixture.stage)
        new = list(new_candidates(archive.visited, seed, indices, variation.draw))
        yield from archive.measure(new)
        # To minimize takes as many measurements as there are steps: once for each new best, no more.
        if archive.best()[:1] not in ([], [minimized]):
            yield from minimize(space, archive, archive.best()[0])
            minimized = archive.best()[0]
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

    def draw(self, generator: np.random.Generator) -> Candidate | None:
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

    def _parent(self, generator: np.random.Generator) -> Candidate:
        """Draw one of the best few: each half as likely as the one before it."""
        # A draw beyond the last one wraps around, to the best.
        return self.best[(int(generator.geometric(0.5)) - 1) % len(self.best)]
