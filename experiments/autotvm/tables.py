"""Tables of searches of recorded spaces: how near to the best there is, after so many trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

TRIALS = (4, 8, 16, 32, 64, 128)
NEAR = (0.90, 0.95, 0.99)
DRAWS = 1000
"""Of seeds with replacement, for intervals."""

Curves = Mapping[str, Mapping[str, Sequence[Sequence[float]]]]
"""Variant, then program, to its searches' curves: the share of the best after each trial."""
Shares = NDArray[np.float64]


def show(curves: Curves, trials: int) -> None:
    """Print of each variant the geometric mean over programs of the median over seeds, with its interval."""
    every = [each for found in curves.values() for each in found.values()]
    seeds = sorted({len(each) for each in every})
    programs = max((len(found) for found in curves.values()), default=0)
    print(f"{programs} programs, {' or '.join(map(str, seeds))} seeds\n")
    counts = [count for count in TRIALS if count <= trials]
    row(["", *[f"{count} trials" for count in counts], *[f"trials to {near:.0%}" for near in NEAR]])
    row(["---"] * (len(counts) + len(NEAR) + 1))
    for name, found in curves.items():
        cells = [_mean([at(searches, count) for searches in found.values()]) for count in counts]
        row([name, *cells, *[_reached(found, near) for near in NEAR]])
    if "random" in curves:
        _against_random(curves, trials)


def at(searches: Sequence[Sequence[float]], count: int) -> Shares:
    """Give each search's share after so many trials; of one that had fewer, the last."""
    return np.array([curve[min(count, len(curve)) - 1] for curve in searches])


def _mean(shares: Sequence[Shares]) -> str:
    random = np.random.default_rng(0)
    drawn = np.stack(
        [np.median(each[random.integers(len(each), size=(DRAWS, len(each)))], 1) for each in shares]
    )
    low, high = np.percentile(_geometric(drawn), (2.5, 97.5))
    middle = float(_geometric(np.array([np.median(each) for each in shares])))
    return f"{middle * 100:.1f} % ({low * 100:.1f} to {high * 100:.1f})"


def _geometric(shares: Shares) -> Shares:
    """Give the geometric mean over the first axis; what found nothing counts as one part in a thousand."""
    return np.exp(np.log(np.maximum(shares, 1e-3)).mean(axis=0))


def trials_to(curve: Sequence[float], share: float) -> float:
    """Count the trials until a search is so near; infinite where it never is."""
    return next((float(i) for i, reached in enumerate(curve, 1) if reached >= share), math.inf)


def _reached(found: Mapping[str, Sequence[Sequence[float]]], share: float) -> str:
    """Give the median over programs of the median over seeds."""
    medians = [np.median([trials_to(curve, share) for curve in searches]) for searches in found.values()]
    middle = float(np.median(medians))
    return f"{middle:g}" if math.isfinite(middle) else "more than it had"


def _against_random(curves: Curves, trials: int) -> None:
    """Print how many trials each variant needs for what random search has at its end, over that one's."""
    random = curves["random"]
    print(f"\nTrials to what random search has after {trials}, over random search's; *: some never\n")
    row(["", "geometric mean", *random])
    row(["---"] * (len(random) + 2))
    wanted = {p: float(np.median(at(searches, trials))) for p, searches in random.items()}
    # A median of an even number of searches may be what half of them never have.
    usual = {p: min(_median_to(each, wanted[p]), max(map(len, each))) for p, each in random.items()}
    for name, found in curves.items():
        medians = {p: _median_to(searches, wanted[p]) for p, searches in found.items()}
        most = {p: max(map(len, searches)) for p, searches in found.items()}
        shares = {p: min(medians[p], most[p]) / usual[p] for p in found}
        never = {p: "" if math.isfinite(medians[p]) else "*" for p in found}
        mean = float(np.exp(np.mean(np.log([*shares.values()]))))
        cells = [f"{shares[p]:.2f}{never[p]}" if p in shares else "" for p in random]
        row([name, f"{mean:.2f}{'*' if any(never.values()) else ''}", *cells])


def _median_to(searches: Sequence[Sequence[float]], share: float) -> float:
    return float(np.median([trials_to(curve, share) for curve in searches]))


def row(cells: Sequence[str]) -> None:
    """Print a row of a table."""
    print("| " + " | ".join(cells) + " |")
