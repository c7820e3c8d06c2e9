"""Decoding of a policy: its most probable candidates, or samples with or without repetition.

All methods ask the policy through one `PrefixTree`, which asks about each prefix once. Priority Sampling
(thesis, algorithm 1) is what searches use; the other methods of table 6.1 stand beside it, by name in
`METHODS`.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray

from planish.core import Candidate, PlanishError, Policy, PolicyState, Space, Step, rng, unknown

Floats = NDArray[np.float64]


@dataclass(eq=False)
class Node:
    """Prefix of a candidate; once it has ended, the whole of it.

    Args:
        state: of the policy.
        log_probability: of all steps up to here, the end included where it has ended.
        depth: how many steps that are, the end included.
        ended: whether this is a whole candidate.
        steps: what may come next, the most probable first, None for the end; empty until it is expanded.
        log_probs: the logarithm of each step's probability.
        children: by the index of the step that leads to them.
    """

    state: PolicyState
    log_probability: float = 0.0
    depth: int = 0
    ended: bool = False
    steps: Sequence[Step | None] = ()
    log_probs: Floats = field(default_factory=lambda: np.empty(0))
    children: dict[int, Node] = field(default_factory=dict[int, "Node"])

    @property
    def candidate(self) -> Candidate:
        """The steps so far."""
        return self.state.candidate


class PrefixTree:
    """Cache of a policy's probabilities, which all samples of a space share.

    Args:
        policy: is asked.
        space: from whose start.

    Attributes:
        root: the prefix without a step.
        inferences: how many prefixes the policy was asked about.
        calls: in how many batches.
    """

    def __init__(self, policy: Policy, space: Space) -> None:
        self._policy = policy
        self.root = Node(policy.begin(space))
        self.inferences = 0
        self.calls = 0

    def expand(self, nodes: Iterable[Node]) -> None:
        """Find the steps that may follow some prefixes: one question for all that are new.

        Raises:
            PlanishError: the policy lets nothing follow, not even the end, or its answer is not a number.
        """
        # Each once and in order: the same question in the same order gives a network's answer to the last
        # digit.
        new = [node for node in dict.fromkeys(nodes) if not node.steps and not node.ended]
        if not new:
            return
        self.inferences, self.calls = self.inferences + len(new), self.calls + 1
        for node, found in zip(new, self._policy.log_probabilities([n.state for n in new]), strict=True):
            # What is impossible is left out, so that no decoder takes it when all else is used up.
            ranked = sorted(((s, p) for s, p in found.items() if p > -math.inf), key=lambda pair: -pair[1])
            if not ranked or not all(math.isfinite(p) for _, p in ranked):
                what = f"the policy has no probabilities after '{node.candidate.text}'"
                raise PlanishError(what, "Use another one: planish policy lists them.")
            node.steps = [step for step, _ in ranked]
            node.log_probs = np.array([p for _, p in ranked])

    def child(self, node: Node, index: int) -> Node:
        """Return a prefix extended by one of its steps."""
        if index not in node.children:
            step = node.steps[index]
            state = node.state if step is None else self._policy.extend(node.state, step)
            node.children[index] = Node(state, total(node, index), node.depth + 1, step is None)
        return node.children[index]


def total(node: Node, index: int) -> float:
    """Return the logarithm of the probability of a prefix with one of its steps."""
    return node.log_probability + float(node.log_probs[index])


RANKINGS: Mapping[str, Callable[[Node, int], float]] = {
    "last": lambda node, index: float(node.log_probs[index]),
    "mean": lambda node, index: total(node, index) / (node.depth + 1),
    "whole": total,
}
"""Ranking of branches: by their own step, as algorithm 1 does; by the geometric mean of all steps, as in
table 6.1; or by the product of all, which the thesis does not try."""

WIDTH = 4
"""Branches that are completed together, unless said otherwise."""


@dataclass(eq=False)
class _Branch:
    """A step that was not taken, and its greedy completion, as far as that is known.

    Args:
        rank: less comes sooner; of equal ones the older.
        parent: the prefix whose step it is; None for the start.
        index: of the step.
        path: prefixes that it leads through.
        end: what follows them; a whole candidate where the branch is complete.
    """

    rank: tuple[float, int]
    parent: Node | None
    index: int
    path: list[Node] = field(default_factory=list[Node])
    end: Node | None = None


def ranking(by: str) -> Callable[[Node, int], float]:
    """Return the key by which branches are ranked: the score of a step after a prefix.

    Raises:
        PlanishError: there is no such ranking.
    """
    if by not in RANKINGS:
        raise unknown("branches are not ranked by", by, RANKINGS)
    return RANKINGS[by]


def priority_samples(
    policy: Policy, space: Space, *, samples: int | None = None, branches: int | None = None, by: str = "last"
) -> Iterator[Candidate]:
    """Yield a policy's candidates by Priority Sampling; see `prioritized`.

    Args:
        policy: is sampled.
        space: from whose start.
        samples: how many; None: until there is no other.
        branches: how many of the next steps are kept of each prefix; None: all.
        by: how branches are ranked.
    """
    tree = PrefixTree(policy, space)
    for node in prioritized(tree, samples=samples, branches=branches, by=by, width=WIDTH):
        yield node.candidate


def prioritized(
    tree: PrefixTree,
    *,
    samples: int | None = None,
    branches: int | None = None,
    by: str = "last",
    width: int = 1,
) -> Iterator[Node]:
    """Yield a policy's candidates: the greedy one, and then from the most probable branch on.

    Each sample is completed greedily, and each step that was not chosen on its way is a branch for later.
    Nothing is drawn, no sample comes twice, and a policy is asked once about each prefix.

    The queue holds no more branches than samples are left: of a longer one the rest would never
    be taken, so the samples are the same. (The thesis bounds it by all samples.)

    With `width`, the branches that come next are completed together, a step of each with one question; one
    that is complete is replaced by the next one in the queue. Each branch is completed as it would be by
    itself, and is taken from the queue in its turn: so **samples and their order are those of one branch
    at a time**, for any width, if the policy's answers do not depend on what else it is asked about; those of
    networks may differ in their last digits, which matters where two branches are as probable. What it may
    cost is inferences for branches that others overtake.

    Args:
        tree: of the policy.
        samples: how many are taken; None: until there is no other.
        branches: how many of the next steps are kept of each prefix, the chosen one included; None: all.
            It is `max_branch` in table 6.1.
        by: how branches are ranked, one of `RANKINGS`.
        width: branches that are completed together.

    Raises:
        PlanishError: branches are not ranked so.
    """
    rank, number, left = ranking(by), count(), samples
    queue = [_Branch((0.0, -1), None, 0, end=tree.root)]
    while queue and left != 0:
        _complete_first(tree, queue, width)
        branch = queue.pop(0)
        left = None if left is None else left - 1
        for node in branch.path:
            # From the second on: the first is the greedy step, which this sample has taken.
            for index in range(1, len(node.steps[:branches])):
                new = _Branch((-rank(node, index), next(number)), node, index)
                # A sorted list and not a heap, since its end is cut off, too.
                insort(queue, new, key=lambda each: each.rank)
            del queue[len(queue) if left is None else left :]
        yield _end(tree, branch)


def _complete_first(tree: PrefixTree, queue: Sequence[_Branch], width: int) -> None:
    """Extend the first few incomplete branches until the very first branch is complete."""
    while not _end(tree, queue[0]).ended:
        few = list(islice((branch for branch in queue if not _end(tree, branch).ended), width))
        nodes = [_end(tree, branch) for branch in few]
        tree.expand(nodes)
        for branch, node in zip(few, nodes, strict=True):
            branch.path.append(node)
            branch.end = tree.child(node, 0)


def _end(tree: PrefixTree, branch: _Branch) -> Node:
    """Return the last node of a branch; its first step is applied on the first call."""
    if branch.end is None:
        assert branch.parent is not None
        branch.end = tree.child(branch.parent, branch.index)
    return branch.end


Beam = Sequence[tuple[float, Node]]
"""Prefixes and whole candidates with their scores, the greatest first."""


def beam(tree: PrefixTree, samples: int, *, groups: int = 1, penalty: float = 0.0) -> Sequence[Node]:
    """Keep the most probable few prefixes of each length (beam search), in groups that avoid each other.

    With several groups it is diverse beam search (Vijayakumar and others, 2018) with Hamming diversity: a
    step is the less likely to be taken the more beams of the groups before took it at the same position.
    Groups are searched each by itself, so two may find the same candidate.

    Args:
        tree: of the policy.
        samples: beams of all groups.
        groups: how many.
        penalty: of a step, for each beam of an earlier group that took it at this position.

    Returns:
        The most probable first.
    """
    groups = min(groups, samples)
    beams: list[Beam] = [[(0.0, tree.root)]] * groups
    sizes = [samples // groups + (index < samples % groups) for index in range(groups)]
    while unfinished := [node for each in beams for _, node in each if not node.ended]:
        tree.expand(unfinished)
        # Anew at each position, as Hamming diversity compares beams.
        taken = Counter[Step | None]()
        for index, size in enumerate(sizes):
            beams[index], steps = _grown(tree, beams[index], size, taken, penalty)
            taken.update(steps)
    found = [node for each in beams for _, node in each]
    # By probability and not by score, which has the penalty in it: that is a matter between groups.
    return sorted(found, key=lambda node: -node.log_probability)


def _grown(
    tree: PrefixTree, old: Beam, size: int, taken: Counter[Step | None], penalty: float
) -> tuple[Beam, Sequence[Step | None]]:
    """Return the best extensions of a beam by one step, with those steps."""
    # Whole candidates stay in the beam, which would lose the short ones otherwise.
    grown: list[tuple[float, Node, int]] = [(score, node, -1) for score, node in old if node.ended]
    for score, node in old:
        grown += [
            (score + float(log_prob) - penalty * taken[step], node, index)
            for index, (step, log_prob) in enumerate(zip(node.steps, node.log_probs, strict=True))
        ]
    best = nlargest(size, grown, key=lambda each: each[0])
    new = [(score, node if index < 0 else tree.child(node, index)) for score, node, index in best]
    return new, [node.steps[index] for _, node, index in best if index >= 0]


def stochastic_beam(
    tree: PrefixTree, samples: int, seed: int, reshape: Callable[[Floats], Floats]
) -> Sequence[Node]:
    """Draw candidates without replacement by stochastic beam search (Kool and others, 2019).

    Every candidate has a score, the logarithm of its probability plus Gumbel noise, and the highest are the
    samples. A prefix has the highest score of all candidates that begin so; so those that begin with none of
    the highest few need not be looked at. As many as `samples` prefixes of each length are asked about.

    Args:
        tree: of the policy.
        samples: how many.
        seed: of the noise.
        reshape: of the policy's probabilities, before they are drawn by.

    Returns:
        The samples in the order in which they would be drawn one by one, fewer where there are fewer.
    """
    random = rng(seed, 0)
    beams: list[tuple[float, float, Node]] = [(0.0, 0.0, tree.root)]
    while unfinished := [node for _, _, node in beams if not node.ended]:
        tree.expand(unfinished)
        grown: list[tuple[float, float, Node, int]] = []
        for score, log_prob, node in beams:
            if node.ended:
                grown.append((score, log_prob, node, -1))
                continue
            log_probs = log_prob + np.log(reshape(node.log_probs))
            scores = _conditioned(score, log_probs + random.gumbel(size=len(log_probs)))
            grown += zip(
                scores.tolist(),
                log_probs.tolist(),
                [node] * len(log_probs),
                range(len(log_probs)),
                strict=True,
            )
        best = nlargest(samples, grown, key=lambda each: each[0])
        beams = [(a, b, node if index < 0 else tree.child(node, index)) for a, b, node, index in best]
    return [node for _, _, node in beams]


def _conditioned(highest: float, scores: Floats) -> Floats:
    """Move scores so that the highest of them is a given one (appendix B.3 there)."""
    # The stable form of log(1 - exp(gap)) and its like: differences of exponentials would lose all digits.
    gap = scores - scores.max()
    # The highest itself has a gap of 0, whose logarithm is -inf, and the next line makes of it just
    # `highest`.
    with np.errstate(divide="ignore"):
        moved = highest - scores + np.log1p(-np.exp(gap))
    return highest - np.maximum(moved, 0) - np.log1p(np.exp(-np.abs(moved)))


Reshape = Callable[[Floats], Floats]
"""Turns logarithms of probabilities, the greatest first, into the probabilities of the first few."""


def reshaped(log_probs: Floats, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> Floats:
    """Sharpen probabilities, and leave out the improbable.

    Args:
        log_probs: logarithms of probabilities, the greatest first.
        temperature: what logarithms are divided by; 0 leaves the most probable alone.
        top_k: number that is kept; 0: all.
        top_p: of those, the first that together have this probability or more: the nucleus.

    Returns:
        Probabilities of the first few, which are kept; they sum to 1.
    """
    if temperature == 0 or len(log_probs) == 1:
        return np.ones(1)
    kept = log_probs[: top_k or None] / temperature
    # The greatest comes first: less it, no exponential overflows, and at least one is not 0.
    chances = np.exp(kept - kept[0])
    chances /= chances.sum()
    # One more than lie below: the step that crosses the threshold belongs to the nucleus.
    inside = int(chances.cumsum().searchsorted(top_p)) + 1
    return chances[:inside] / chances[:inside].sum()


def drawn(tree: PrefixTree, samples: int, seed: int, reshape: Reshape) -> Iterator[Node]:
    """Draw candidates independently of each other; some may be equal.

    Args:
        tree: of the policy.
        samples: how many; the first ones are the same for any number.
        seed: the i-th is drawn by `rng(seed, i)`.
        reshape: of probabilities.
    """
    # One each, not one for all: else the i-th sample would depend on how many are drawn.
    generators = [rng(seed, index) for index in range(samples)]

    def choose(index: int, ends: Floats) -> int:
        return _interval(float(generators[index].random()), ends)

    yield from _together(tree, samples, choose, reshape)


def arithmetic(tree: PrefixTree, samples: int, seed: int, reshape: Reshape) -> Iterator[Node]:
    """Draw candidates by arithmetic sampling (Vilnis and others, 2023): evenly spread over what is probable.

    All candidates share the line from 0 to 1, each as long as it is probable; the samples are where points at
    equal distances lie, which are shifted together by chance. So each by itself is an ordinary draw, a
    candidate of probability p comes np times, rounded up or down, and all samples can be drawn together.
    The paper's points are 1/(n + 1) apart; ours 1/n, so that the number of each candidate is certain.

    Args:
        tree: of the policy.
        samples: how many.
        seed: of the shift.
        reshape: of probabilities.
    """
    codes = (np.arange(samples) / samples + rng(seed, 0).random()) % 1

    def choose(index: int, ends: Floats) -> int:
        chosen = _interval(codes[index], ends)
        begin = ends[chosen - 1] if chosen else 0.0
        # The chosen interval becomes the whole line, as in arithmetic coding: what is left of the point
        # decides the next step.
        codes[index] = (codes[index] - begin) / (ends[chosen] - begin)
        return chosen

    yield from _together(tree, samples, choose, reshape)


def _together(
    tree: PrefixTree, samples: int, choose: Callable[[int, Floats], int], reshape: Reshape
) -> Sequence[Node]:
    """Extend every sample by one step with one query of the policy, until all have ended."""
    nodes = [tree.root] * samples
    while unfinished := [index for index, node in enumerate(nodes) if not node.ended]:
        # Most samples share their first steps, and a network's answer is what takes the time.
        different = dict.fromkeys(nodes[index] for index in unfinished)
        tree.expand(different)
        ends = {node: reshape(node.log_probs).cumsum() for node in different}
        for index in unfinished:
            nodes[index] = tree.child(nodes[index], choose(index, ends[nodes[index]]))
    return nodes


def _interval(point: float, ends: Floats) -> int:
    """Find the interval that a point lies in; sums of probabilities are not quite 1."""
    if len(ends) == 1:  # as most steps are of a policy that chooses among lists
        return 0
    return min(int(ends.searchsorted(point, side="right")), len(ends) - 1)


def unique(tree: PrefixTree, seed: int, reshape: Reshape) -> Iterator[Node]:
    """Draw candidates without replacement, until there is no other.

    A prefix keeps how much of each step's probability was not drawn yet; a candidate that was drawn
    has nothing left. What is left is summed anew on the way back, and not subtracted: so what was drawn whole
    has exactly nothing.

    Args:
        tree: of the policy.
        seed: the i-th candidate is drawn by `rng(seed, i)`.
        reshape: of probabilities.
    """
    chances, left = dict[Node, Floats](), dict[Node, Floats]()
    for number in count():
        way, node, random = list[tuple[Node, int]](), tree.root, rng(seed, number)
        while not node.ended:
            if node not in left:
                tree.expand([node])
                chances[node] = reshape(node.log_probs)
                left[node] = chances[node].copy()
            ends = left[node].cumsum()
            # At the root, for below it a step with nothing left is never drawn.
            if ends[-1] == 0:
                return
            # The first end beyond the point: a step that has nothing left ends where the one before it does,
            # and is passed over.
            index = int((ends > random.random() * ends[-1]).argmax())
            way.append((node, index))
            node = tree.child(node, index)
        yield node
        rest = 0.0
        for node, index in reversed(way):
            left[node][index] = chances[node][index] * rest
            rest = float(left[node].sum())


@dataclass(frozen=True)
class Decoding:
    """Options of decoding a policy; each method reads those that concern it.

    Args:
        method: one of `METHODS`.
        samples: how many; unique ones end where there is no other.
        seed: of what is drawn.
        temperature: of all that draw; 1 leaves probabilities as they are.
        top_k: next steps that top-k sampling keeps.
        top_p: probability that nucleus sampling keeps; the thesis and its authors have 0.95.
        groups: of diverse beam search.
        penalty: of diverse beam search, for each beam of another group that took the step.
        branches: that Priority Sampling keeps of each prefix; 0: all.
        by: how Priority Sampling ranks branches: last, mean or whole.
        width: branches that Priority Sampling completes together, which changes nothing but the time.
    """

    method: str = "priority"
    samples: int = 100
    seed: int = 0
    temperature: float = 1.0
    top_k: int = 5
    top_p: float = 0.95
    groups: int = 4
    penalty: float = 0.5
    branches: int = 0
    by: str = "last"
    width: int = WIDTH

    def __post_init__(self) -> None:
        """Check what is named.

        Raises:
            PlanishError: the method, or the ranking of branches, is unknown.
        """
        ranking(self.by)
        if self.method not in METHODS:
            raise unknown("no way of sampling is called", self.method, METHODS)


def decode(tree: PrefixTree, how: Decoding) -> Iterator[Node]:
    """Take candidates from a policy.

    Args:
        tree: of the policy.
        how: the method and its options.

    Returns:
        Whole candidates with their probabilities; those of methods that draw independently may be equal.
    """
    return islice(METHODS[how.method](tree, how), how.samples)


def _reshape(how: Decoding, top_k: int = 0, top_p: float = 1.0) -> Reshape:
    return partial(reshaped, temperature=how.temperature, top_k=top_k, top_p=top_p)


METHODS: Mapping[str, Callable[[PrefixTree, Decoding], Iterable[Node]]] = {
    "greedy": lambda tree, how: drawn(tree, 1, how.seed, partial(reshaped, temperature=0)),
    "temperature": lambda tree, how: drawn(tree, how.samples, how.seed, _reshape(how)),
    "top-k": lambda tree, how: drawn(tree, how.samples, how.seed, _reshape(how, top_k=how.top_k)),
    "nucleus": lambda tree, how: drawn(tree, how.samples, how.seed, _reshape(how, top_p=how.top_p)),
    "beam": lambda tree, how: beam(tree, how.samples),
    "diverse-beam": lambda tree, how: beam(tree, how.samples, groups=how.groups, penalty=how.penalty),
    "stochastic-beam": lambda tree, how: stochastic_beam(tree, how.samples, how.seed, _reshape(how)),
    "arithmetic": lambda tree, how: arithmetic(tree, how.samples, how.seed, _reshape(how)),
    "unique": lambda tree, how: unique(tree, how.seed, _reshape(how)),
    "priority": lambda tree, how: prioritized(
        tree, samples=how.samples, branches=how.branches or None, by=how.by, width=how.width
    ),
}
"""Name to what it does; `unique` is the unique randomizer."""
