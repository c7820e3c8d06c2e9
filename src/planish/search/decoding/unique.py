"""Candidates drawn one by one, none of them twice: the unique randomizer (Shi and others, 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from planish.core import rng
from planish.search.decoding.draws import Reshape
from planish.search.decoding.tree import Floats, Node, PrefixTree


def unique(tree: PrefixTree, seed: int, reshape: Reshape) -> Iterator[Node]:
    """Draw candidates without replacement, until there is no other.

    A beginning keeps how much of each step's probability was not given out yet; a candidate that was drawn
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
                tree.open([node])
                chances[node] = reshape(node.sure)
                left[node] = chances[node].copy()
            ends = left[node].cumsum()
            # At the root, for below it a step with nothing left is never drawn.
            if ends[-1] == 0:
                return
            # The first end beyond the point: a step that has nothing left ends where its forerunner does, and
            # is passed over.
            place = int((ends > random.random() * ends[-1]).argmax())
            way.append((node, place))
            node = tree.child(node, place)
        yield node
        rest = 0.0
        for node, place in reversed(way):
            left[node][place] = chances[node][place] * rest
            rest = float(left[node].sum())
