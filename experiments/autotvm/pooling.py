"""How much each of several global models should count: one of many programs, and one of few.

    python experiments/autotvm/pooling.py

Eight of the recorded programs are held back, by turns of chance. Of the others few make one model, as a
user's own, and the rest another, as the one that comes with planish. Both are asked for the programs held
back, centred and scaled as `planish.learn.cost.Pooled` does, and added with weights by the programs that they
learnt from.
Rank correlations, means over the programs held back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from held_out import LEAST, learnt
from numpy.typing import NDArray
from record import SETTINGS
from recorded import Recorded, recorded

from planish.learn.cost.model_quality import rank_correlation
from planish.learn.cost.pooled import SAMPLE

TURNS, HELD = 4, 8
FEW = (1, 2, 4, 8, 12)
"""Programs of the small model."""
Floats = NDArray[np.float32]
RULES: Mapping[str, Callable[[int], float]] = {
    "logarithm": lambda programs: float(np.log2(1 + programs)),
    "square root": lambda programs: programs**0.5,
    "programs": float,
    "equal": lambda _: 1.0,
}


def pooled(told: list[tuple[int, Floats]], rule: Callable[[int], float], rows: NDArray[np.intp]) -> Floats:
    """Add predictions, each (programs, predicted); some rows are the sample by which they are scaled."""
    scaled = [(rule(count), (each - each[rows].mean()) / (each[rows].std() or 1)) for count, each in told]
    return np.sum([weight * each for weight, each in scaled], axis=0)


def judged(told: list[tuple[int, Floats]], space: Recorded) -> list[float]:
    """Give the rank correlations: of the larger, of the smaller, and of both by each rule."""
    costs = np.array([space.costs[each.hash] for each in space.candidates], np.float32)
    rows = np.random.default_rng(0).permutation(len(costs))[:SAMPLE]
    found = [each for _, each in told] + [pooled(told, rule, rows) for rule in RULES.values()]
    return [rank_correlation(each, costs) for each in found]


def main() -> None:
    """Print the table."""
    usual = [each for each in SETTINGS if each.cores == 1 and not each.backend]
    spaces = [space for each in usual if len((space := recorded(each)).candidates) >= LEAST]
    print(f"| programs | the larger | the smaller | {' | '.join(RULES)} |")
    print(f"|---|---|---|{'---|' * len(RULES)}")
    for few in FEW:
        found = list[list[float]]()
        for turn in range(TURNS):
            drawn = [spaces[i] for i in np.random.default_rng(turn).permutation(len(spaces))]
            parts = drawn[HELD + few :], drawn[HELD : HELD + few]
            models = [(len(part), learnt(part, "all")) for part in parts]
            for space in drawn[:HELD]:
                features = space.described("all")
                told = [(count, model.predict(features).mean[:, 0]) for count, model in models]
                found.append(judged(told, space))
        shown = " | ".join(f"{value:.3f}" for value in np.mean(found, axis=0))
        print(f"| {len(spaces) - HELD - few} and {few} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
