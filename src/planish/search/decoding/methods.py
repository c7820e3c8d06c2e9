"""The ways of taking candidates from a policy, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice

from planish.core import unknown
from planish.search.decoding.beams import beam, stochastic_beam
from planish.search.decoding.draws import Reshape, arithmetic, drawn, reshaped
from planish.search.decoding.priority import WIDTH, prioritised, ranking
from planish.search.decoding.tree import Node, PrefixTree
from planish.search.decoding.unique import unique


@dataclass(frozen=True)
class Decoding:
    """How candidates are taken from a policy; each method heeds what concerns it.

    Args:
        method: one of `METHODS`.
        samples: how many; unique ones end where there is no other.
        seed: of what is drawn.
        temperature: of all that draw; 1 leaves probabilities as they are.
        top_k: next steps that top-k sampling keeps.
        top_p: probability that nucleus sampling keeps; the thesis and its authors have 0.95.
        groups: of diverse beam search.
        penalty: of diverse beam search, for each beam of another group that took the step.
        branches: that Priority Sampling keeps of each beginning; 0: all.
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


def _drawn(tree: PrefixTree, how: Decoding, reshape: Reshape) -> Iterable[Node]:
    return drawn(tree, how.samples, how.seed, reshape)


def _tempered(how: Decoding) -> Reshape:
    return partial(reshaped, temperature=how.temperature)


METHODS: Mapping[str, Callable[[PrefixTree, Decoding], Iterable[Node]]] = {
    "greedy": lambda tree, how: drawn(tree, 1, how.seed, partial(reshaped, temperature=0)),
    "temperature": lambda tree, how: _drawn(tree, how, _tempered(how)),
    "top-k": lambda tree, how: _drawn(
        tree, how, partial(reshaped, temperature=how.temperature, top_k=how.top_k)
    ),
    "nucleus": lambda tree, how: _drawn(
        tree, how, partial(reshaped, temperature=how.temperature, top_p=how.top_p)
    ),
    "beam": lambda tree, how: beam(tree, how.samples),
    "diverse-beam": lambda tree, how: beam(tree, how.samples, groups=how.groups, penalty=how.penalty),
    "stochastic-beam": lambda tree, how: stochastic_beam(tree, how.samples, how.seed, _tempered(how)),
    "arithmetic": lambda tree, how: arithmetic(tree, how.samples, how.seed, _tempered(how)),
    "unique": lambda tree, how: unique(tree, how.seed, _tempered(how)),
    "priority": lambda tree, how: prioritised(
        tree, samples=how.samples, branches=how.branches or None, by=how.by, width=how.width
    ),
}
"""Name to what it does; `unique` is the unique randomizer."""
