"""Candidates drawn step by step: as probable as the policy has them, sharpened, cut, or spread evenly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from planish.core import rng
from planish.search.decoding.tree import Floats, Node, PrefixTree

Reshape = Callable[[Floats], Floats]
"""Makes of the logarithms of probabilities, the greatest first, those that are drawn by: of the first few."""


def reshaped(sure: Floats, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> Floats:
    """Sharpen probabilities, and leave out the improbable.

    Args:
        sure: logarithms of probabilities, the greatest first.
        temperature: what logarithms are divided by; 0 leaves the most probable alone.
        top_k: so many are kept; 0: all.
        top_p: of those, the first that together have this probability or more: the nucleus.

    Returns:
        Probabilities of the first few, which are kept; they sum to 1.
    """
    if temperature == 0 or len(sure) == 1:
        return np.ones(1)
    kept = sure[: top_k or None] / temperature
    # The greatest stands first: less it, no exponential overflows, and at least one is not 0.
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
    generators = [rng(seed, place) for place in range(samples)]

    def choose(place: int, ends: Floats) -> int:
        return _place_of(float(generators[place].random()), ends)

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

    def choose(place: int, ends: Floats) -> int:
        chosen = _place_of(codes[place], ends)
        begin = ends[chosen - 1] if chosen else 0.0
        # The chosen interval becomes the whole line, as in arithmetic coding: what is left of the point
        # decides the next step.
        codes[place] = (codes[place] - begin) / (ends[chosen] - begin)
        return chosen

    yield from _together(tree, samples, choose, reshape)


def _together(
    tree: PrefixTree, samples: int, choose: Callable[[int, Floats], int], reshape: Reshape
) -> Sequence[Node]:
    """Take a step of every sample with one question, until all have ended."""
    nodes = [tree.root] * samples
    while going := [place for place, node in enumerate(nodes) if not node.ended]:
        # Most samples share their first steps, and a network's answer is what takes the time.
        different = dict.fromkeys(nodes[place] for place in going)
        tree.open(different)
        ends = {node: reshape(node.sure).cumsum() for node in different}
        for place in going:
            nodes[place] = tree.child(nodes[place], choose(place, ends[nodes[place]]))
    return nodes


def _place_of(point: float, ends: Floats) -> int:
    """Find the interval that a point lies in; sums of probabilities are not quite 1."""
    if len(ends) == 1:  # as most steps are of a policy that chooses among lists
        return 0
    return min(int(ends.searchsorted(point, side="right")), len(ends) - 1)
