"""Pass lists for single functions of a module that was begun, the most useful first."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

Passes = tuple[str, ...]
_KEPT = (0.9, 0.7, 0.5, 0.3)
_MOST_MORE = 3


@dataclass(frozen=True)
class Lists:
    """What may be run on functions.

    Args:
        simplify: what -Oz runs on a function, as passes.
        more: passes that are good in other places too.
        first: lists that are good for most functions, by greedy cover, each with the share of the code that
            it saves beside those before it.
    """

    simplify: Passes
    more: Passes
    first: tuple[tuple[Passes, float], ...]


@cache
def shipped_lists() -> Lists:
    """Read the lists that come with planish; `experiments` says how they were found."""
    data = json.loads((files("planish.llvm.modules") / "lists.json").read_text(encoding="utf-8"))
    first = tuple((tuple(each["passes"]), float(each["saves"])) for each in data["first"])
    return Lists(tuple(data["simplify"]), tuple(data["more"]), first)


def further_lists(seed: int = 0) -> Iterator[Passes]:
    """Draw lists without end: what -Oz runs, without some of it, and with few passes more."""
    lists, number = shipped_lists(), 0
    while True:
        number += 1
        yield _drawn(lists, random.Random(f"{seed} {number}"))


def _drawn(lists: Lists, rng: random.Random) -> Passes:
    kept = rng.choice(_KEPT)
    passes = [text for text in lists.simplify if rng.random() < kept]
    for _ in range(rng.randint(0, _MOST_MORE)):
        passes.insert(rng.randrange(len(passes) + 1), _one(lists.more, rng))
    return tuple(passes)


def _one(texts: Sequence[str], rng: random.Random) -> str:
    return texts[rng.randrange(len(texts))]
