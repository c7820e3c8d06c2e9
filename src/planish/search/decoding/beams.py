"""Beam search over a policy, and its two variants: diverse groups, and beams that are drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from heapq import nlargest

import numpy as np

from planish.core import Step, rng
from planish.search.decoding.tree import Floats, Node, PrefixTree

Beam = Sequence[tuple[float, Node]]
"""Beginnings and whole candidates with their scores, the greatest first."""


def beam(tree: PrefixTree, samples: int, *, groups: int = 1, penalty: float = 0.0) -> Sequence[Node]:
    """Keep the most probable few beginnings of each length (beam search), in groups that avoid each other.

    With several groups it is diverse beam search (Vijayakumar and others, 2018) with Hamming diversity: a
    step is the less likely to be taken the more beams of the groups before took it at the same place. Groups
    are searched each by itself, so two may find the same candidate.

    Args:
        tree: of the policy.
        samples: beams of all groups.
        groups: how many.
        penalty: of a step, for each beam of an earlier group that took it at this place.

    Returns:
        The most probable first.
    """
    groups = min(groups, samples)
    beams: list[Beam] = [[(0.0, tree.root)]] * groups
    sizes = [samples // groups + (place < samples % groups) for place in range(groups)]
    while going := [node for each in beams for _, node in each if not node.ended]:
        tree.open(going)
        # Anew at each place: Hamming diversity compares beams position by position.
        taken = Counter[Step | None]()
        for place, size in enumerate(sizes):
            beams[place], steps = _grown(tree, beams[place], size, taken, penalty)
            taken.update(steps)
    found = [node for each in beams for _, node in each]
    # By probability and not by score, which has the penalty in it: that is a matter between groups.
    return sorted(found, key=lambda node: -node.log_probability)


def _grown(
    tree: PrefixTree, old: Beam, size: int, taken: Counter[Step | None], penalty: float
) -> tuple[Beam, Sequence[Step | None]]:
    """Give the best that a beam becomes by one step, and the steps that it takes."""
    # Whole candidates hold their places: a beam that let go of them would lose the short ones.
    grown: list[tuple[float, Node, int]] = [(score, node, -1) for score, node in old if node.ended]
    for score, node in old:
        grown += [
            (score + float(sure) - penalty * taken[step], node, place)
            for place, (step, sure) in enumerate(zip(node.steps, node.sure, strict=True))
        ]
    best = nlargest(size, grown, key=lambda each: each[0])
    new = [(score, node if place < 0 else tree.child(node, place)) for score, node, place in best]
    return new, [node.steps[place] for _, node, place in best if place >= 0]


def stochastic_beam(
    tree: PrefixTree, samples: int, seed: int, reshape: Callable[[Floats], Floats]
) -> Sequence[Node]:
    """Draw candidates without replacement by stochastic beam search (Kool and others, 2019).

    Every candidate has a score, the logarithm of its probability plus Gumbel noise, and the highest are the
    samples. A beginning has the highest score of all that begin so; so what begins with none of the highest
    few need not be looked at. As many as `samples` beginnings of each length are asked about.

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
    while going := [node for _, _, node in beams if not node.ended]:
        tree.open(going)
        grown: list[tuple[float, float, Node, int]] = []
        for score, sure, node in beams:
            if node.ended:
                grown.append((score, sure, node, -1))
                continue
            sures = sure + np.log(reshape(node.sure))
            scores = _conditioned(score, sures + random.gumbel(size=len(sures)))
            grown += zip(scores.tolist(), sures.tolist(), [node] * len(sures), range(len(sures)), strict=True)
        best = nlargest(samples, grown, key=lambda each: each[0])
        beams = [(a, b, node if place < 0 else tree.child(node, place)) for a, b, node, place in best]
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
