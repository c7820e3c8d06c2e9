"""What lists save over -Oz on many functions: the columns of the thesis's figures 4.5 and 4.6."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Saving(NamedTuple):
    """What became of one function.

    Args:
        package: where it is from.
        baseline: its cost after -Oz.
        cost: its cost after the list in question.
    """

    package: str
    baseline: int
    cost: int


@dataclass(frozen=True)
class Summary:
    """A row of figure 4.5.

    Args:
        functions: how many there are.
        improved: how many of them cost less than after -Oz.
        regressed: how many cost more.
        saved: summed over those improved.
        lost: summed over those regressed.
        baseline: what all cost after -Oz.
        low: the lower end of the 95 % confidence interval of `overall`.
        high: its upper end.
    """

    functions: int
    improved: int
    regressed: int
    saved: int
    lost: int
    baseline: int
    low: float
    high: float

    @property
    def overall(self) -> float:
        """What is saved of all that there is, as a share."""
        return (self.saved - self.lost) / self.baseline if self.baseline else 0.0


def summarise(effects: Iterable[Saving], *, backup: bool = False) -> Summary:
    """Add up what lists did.

    Args:
        effects: of all functions.
        backup: whether -Oz is taken where the list does worse ("-Oz backup", figure 4.6).
    """
    known = [Saving(e.package, e.baseline, min(e.baseline, e.cost) if backup else e.cost) for e in effects]
    gains = [e.baseline - e.cost for e in known]
    low, high = interval(known)
    return Summary(
        functions=len(known),
        improved=sum(gain > 0 for gain in gains),
        regressed=sum(gain < 0 for gain in gains),
        saved=sum(gain for gain in gains if gain > 0),
        lost=-sum(gain for gain in gains if gain < 0),
        baseline=sum(e.baseline for e in known),
        low=low,
        high=high,
    )


def interval(effects: Sequence[Saving], draws: int = 2000, seed: int = 0) -> tuple[float, float]:
    """Bootstrap the overall improvement over packages, whose functions are alike and so no free draws.

    Returns:
        The 95 % interval; (0, 0) without functions. With few packages it is wide, and not to be trusted.
    """
    import numpy as np

    names = sorted({e.package for e in effects})
    place = {name: i for i, name in enumerate(names)}
    sums = np.zeros((len(names), 2))
    for e in effects:
        sums[place[e.package]] += (e.baseline - e.cost, e.baseline)
    if not sums[:, 1].sum():
        return 0.0, 0.0
    picks = np.random.default_rng(seed).integers(len(names), size=(draws, len(names)))
    drawn = sums[picks].sum(axis=1)
    low, high = np.percentile(drawn[:, 0] / np.maximum(drawn[:, 1], 1), (2.5, 97.5)).tolist()
    return low, high
