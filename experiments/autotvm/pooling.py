"""How much each of several global models should count: one of many programs, and one of few.

    python experiments/autotvm/pooling.py

Eight of the recorded programs are held back, by turns of chance. Of the others few make one model, as a
user's own, and the rest another, as the one that comes with planish. Both are asked for the programs held
back, centered and scaled as `planish.models.combined.Pooled` does, and added with weights by the programs
that they learnt from. The same holds of programs that are of a kind with those of the small model.
Rank correlations, means over the programs held back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from held_out_programs import LEAST, learnt
from numpy.typing import NDArray
from record import SETTINGS
from recorded import Recorded, recorded

from planish.core.ranks import rank_correlation
from planish.models.combined import SAMPLE
from planish.models.trees import XgboostTrees

TURNS, HELD, KIN = 4, 8, 3
FEW = (1, 2, 4, 8, 12)
"""Programs of the small model."""
Floats = NDArray[np.float32]
RULES: Mapping[str, Callable[[int], float]] = {
    "logarithm": lambda programs: float(np.log2(1 + programs)),
    "square root": lambda programs: programs**0.5,
    "programs": float,
    "equal": lambda _: 1.0,
}


def pooled(parts: list[tuple[int, Floats]], rule: Callable[[int], float], rows: NDArray[np.intp]) -> Floats:
    """Add predictions, each (programs, predicted); some rows are the sample by which they are scaled."""
    scaled = [(rule(count), (each - each[rows].mean()) / (each[rows].std() or 1)) for count, each in parts]
    return np.sum([weight * each for weight, each in scaled], axis=0)


def judged(parts: list[tuple[int, Floats]], space: Recorded) -> list[float]:
    """Give the rank correlations: of the larger, of the smaller, and of both by each rule."""
    costs = np.array([space.costs[each.hash] for each in space.candidates], np.float32)
    rows = np.random.default_rng(0).permutation(len(costs))[:SAMPLE]
    found = [each for _, each in parts] + [pooled(parts, rule, rows) for rule in RULES.values()]
    return [rank_correlation(each, costs) for each in found]


def told_by(space: Recorded, larger: Sequence[Recorded], smaller: Sequence[Recorded]) -> list[float]:
    """Learn two models, and judge them on a space that neither saw."""
    features = space.described("all")
    models = [(len(part), model_of(tuple(part))) for part in (larger, smaller)]
    return judged([(count, model.predict(features).mean[:, 0]) for count, model in models], space)


@lru_cache(maxsize=4)
def model_of(spaces: tuple[Recorded, ...]) -> XgboostTrees:
    """Learn from some rows of spaces."""
    return learnt([*spaces], "all")


def unlike(spaces: Sequence[Recorded], few: int) -> list[list[float]]:
    """Judge on programs drawn from all; so are those of the small model."""
    found = list[list[float]]()
    for turn in range(TURNS):
        drawn = [spaces[i] for i in np.random.default_rng(turn).permutation(len(spaces))]
        found += [told_by(each, drawn[HELD + few :], drawn[HELD : HELD + few]) for each in drawn[:HELD]]
    return found


def alike(spaces: Sequence[Recorded], few: int) -> list[list[float]]:
    """Judge on programs of the kind that the small model learnt from alone, and the larger one never saw."""
    found = list[list[float]]()
    for kind in (r"C\d+", r"\d+x\d+x\d+"):
        own = [space for space in spaces if re.fullmatch(kind, space.setting.text)]
        others = [space for space in spaces if space not in own]
        for turn in range(TURNS):
            drawn = [own[i] for i in np.random.default_rng(turn).permutation(len(own))]
            found += [told_by(each, others, drawn[KIN : KIN + few]) for each in drawn[:KIN]]
    return found


def main() -> None:
    """Print the tables."""
    usual = [each for each in SETTINGS if each.cores == 1 and not each.backend and each.dtype == "float32"]
    spaces = [space for each in usual if len((space := recorded(each)).candidates) >= LEAST]
    for judge, counts in ((alike, FEW[:3]), (unlike, FEW)):
        print(f"\n| {judge.__name__} | the larger | the smaller | {' | '.join(RULES)} |")
        print(f"|---|---|---|{'---|' * len(RULES)}")
        for few in counts:
            shown = " | ".join(f"{value:.3f}" for value in np.mean(judge(spaces, few), axis=0))
            print(f"| {few} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
