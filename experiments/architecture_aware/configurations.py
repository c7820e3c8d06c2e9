"""What the paper compares: the baseline (BL), the class's lists (AS), and random ones (PO)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planish.core import rng
from planish.levels.graph.architecture import CLASSES, Recognition
from planish.levels.graph.passes import Selection, find_pass, passes_of_kind, selection_of
from planish.levels.graph.starting_lists import PaperPass, starting_list, table4

if TYPE_CHECKING:
    from numpy.random import Generator

RANDOM = 4
FEWEST, MOST = 4, 8
"""Passes of table 4 in a random list, as in the paper's table 5."""
_RULES = {"Level1_RuleBasedTransformer", "Level2_RuleBasedTransformer"}


@dataclass(frozen=True)
class Configuration:
    """One of the paper's seven.

    Args:
        name: BL, AS-0, AS-1, PO-0 to PO-3.
        selection: what is run.
        orders: other orders of its rewriting passes, of which the fastest is taken (PO alone).
    """

    name: str
    selection: Selection
    orders: tuple[Selection, ...] = ()


def configurations(recognition: Recognition, seed: int, tries: int) -> Iterator[Configuration]:
    """Give the seven for a network.

    Args:
        recognition: what it was recognized as.
        seed: of the random lists.
        tries: orders that are tried for each random list.
    """
    yield Configuration("BL", Selection())
    for order in range(2):
        yield Configuration(f"AS-{order}", selection_of(starting_list(recognition, order)))
    symbols = {CLASSES[name].paper for name in recognition.classes if name in CLASSES}
    pool = [row for row in table4() if {*row.classes} & {*symbols, "AD", "BL"} and _stands(row)]
    for place in range(RANDOM):
        drawn = list(_drawn(pool, rng(seed, place), tries))
        yield Configuration(f"PO-{place}", drawn[0], tuple(drawn[1:]))


def _stands(row: PaperPass) -> bool:
    return bool(row.runtime or any(not find_pass(name).is_intended for name in row.rewrites))


def _drawn(pool: list[PaperPass], generator: Generator, tries: int) -> Iterator[Selection]:
    """Draw passes of table 4, and some orders of them."""
    count = int(generator.integers(FEWEST, MOST, endpoint=True))
    rows = [pool[int(i)] for i in generator.choice(len(pool), min(count, len(pool)), replace=False)]
    first = [name for row in rows for name in row.rewrites[:1] if not find_pass(name).is_intended]
    kept = {name for row in rows for name in row.runtime}
    if any(find_pass(name).kind == "rule" for name in kept):
        kept |= _RULES
    out = frozenset(each.name for each in passes_of_kind("rule", "transformer") if each.name not in kept)
    for _ in range(tries):
        yield Selection(tuple(first[int(i)] for i in generator.permutation(len(first))), out)
