"""Tables of searches: how near to the best that is known, after so many trials and seconds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from searching import Curve, Line

TRIALS = (8, 16, 32, 64, 96, 192)
SECONDS = (0.5, 1.0, 2.0)
NEAR = 0.95
DRAWS = 1000
"""Of seeds with replacement, for intervals."""

Curves = Mapping[str, Mapping[str, Sequence[Curve]]]
Shares = NDArray[np.float64]


def show(lines: Sequence[Line], variants: Sequence[str]) -> None:
    """Print shares of the best time that any search found for the program: over all programs, and of each."""
    curves: dict[str, dict[str, list[Curve]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        curves[line.program][line.variant].append(line.curve)
    names = [name for name in variants if any(name in found for found in curves.values())]
    curves = {p: found for p, found in curves.items() if all(name in found for name in names)}
    best = {p: min(c[-1][1] for every in found.values() for c in every) for p, found in curves.items()}
    ways: dict[str, Callable[[Curve], float]] = {
        **{f"{count} trials": partial(_after_trials, count=count) for count in TRIALS},
        **{f"{seconds:g} s": partial(_after_seconds, seconds=seconds) for seconds in SECONDS},
    }
    seeds = max((len(each) for found in curves.values() for each in found.values()), default=0)
    print(f"{len(curves)} programs, {seeds} seeds\n")
    _row(["", *ways, f"trials to {NEAR:.0%}"])
    _row(["---"] * (len(ways) + 2))
    for name in names:
        cells = [
            _summary([np.array([best[p] / way(c) for c in curves[p][name]]) for p in curves])
            for way in ways.values()
        ]
        _row([name, *cells, _trials_to([(best[p], curves[p][name]) for p in curves])])
    print("\nAfter 32 trials:\n")
    _row(["", *names])
    _row(["---"] * (len(names) + 1))
    for program, found in curves.items():
        shares = [
            np.median([best[program] / _after_trials(curve, 32) for curve in found[name]]) for name in names
        ]
        _row([program, *[f"{share * 100:.1f} %" for share in shares]])


def _after_trials(curve: Curve, count: int) -> float:
    """Give the best time after so many trials; not a number where the search had fewer."""
    return curve[count - 1][1] if count <= len(curve) else math.nan


def _after_seconds(curve: Curve, seconds: float) -> float:
    """Give the best time after so many seconds; infinite where nothing was measured by then."""
    return min((best for when, best in curve if when <= seconds), default=math.inf)


def _trials_to(found: Sequence[tuple[float, Sequence[Curve]]]) -> str:
    """Give the median over seeds and programs of the trials until the best known is near."""
    counts = [
        next((i for i, (_, time) in enumerate(curve, 1) if time <= best / NEAR), math.inf)
        for best, curves in found
        for curve in curves
    ]
    middle = float(np.median(counts)) if counts else math.inf
    return f"{middle:g}" if math.isfinite(middle) else "more than it had"


def _summary(mine: Sequence[Shares]) -> str:
    """Give the geometric mean over programs of the medians over seeds, with its 95 % interval."""
    if not mine or any(np.isnan(each).any() for each in mine):
        return ""
    none = sum(int(np.median(each) == 0) for each in mine)
    if none:
        return f"nothing yet of {none}"
    random = np.random.default_rng(0)

    def mean(found: Sequence[Shares]) -> float:
        return float(np.exp(np.mean([np.log(np.median(each)) for each in found])) * 100)

    drawn = [mean([np.maximum(random.choice(each, len(each)), 1e-3) for each in mine]) for _ in range(DRAWS)]
    low, high = np.percentile(drawn, (2.5, 97.5))
    return f"{mean(mine):.1f} % ({low:.1f} to {high:.1f})"


def _row(cells: Sequence[str]) -> None:
    print("| " + " | ".join(cells) + " |")
