"""How well the shipped cost model orders recorded candidates: by element type, cores and vector width.

    python experiments/autotvm/conditions.py [--write src/planish/models/model-loops.npz]

For each condition a table shows means over its recorded programs: the rank correlation of what the model
predicts with what was measured, the fastest of the eight candidates that it prefers of those that were drawn,
over the fastest candidate of the recording, and the same of eight at random (a mean of 1,000 draws). The
last column counts the programs on which the model's eight are better than the random ones. A program with
fewer than 32 drawn candidates is left out.

With `--write` the model's file states the conditions for which searches ask it: those of its own trials
(`collect.py`: time, float32, one core, AVX-512), and those of this table under which its eight candidates are
better on at least three quarters of the programs. Searches under other conditions do not ask it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from plans import DOUBLES, NARROW, NARROW_MORE, TARGETS, settings
from recorded import recorded
from searching import TIME, Setting

from planish.core.ranks import rank_correlation
from planish.models.cost_model import Predicts
from planish.models.model_files import load_model, model_paths, write_model
from planish.models.provenance import OBJECTIVE, Value, stated

TOP, DRAWS, SHARE = 8, 1000, 0.75
FEWEST_DRAWN = 32
"""With fewer there is little to choose eight from."""
USUAL: Mapping[str, Value] = {OBJECTIVE: TIME.name, "element type": "float32", "cores": 1, "vector bytes": 64}
PRODUCTS = settings("64x64x64", "192x192x192", "384x384x384", "768x768x768")
CONDITIONS: Mapping[str, tuple[Mapping[str, Value], Sequence[Setting]]] = {
    "as its trials": ({}, (*TARGETS, *settings("C1", "C2", "C3", "C4", "C5", "C6"), *PRODUCTS)),
    "AVX2": ({"vector bytes": 32}, (*NARROW, *NARROW_MORE)),
    "two cores": ({"cores": 2}, tuple(replace(each, cores=2) for each in TARGETS)),
    "float64": ({"element type": "float64"}, DOUBLES),
}


def judged(model: Predicts, setting: Setting) -> tuple[float, float, float]:
    """Return the rank correlation, and the best of eight over the best: by the model, and at random."""
    space = recorded(setting)
    costs = np.array([space.costs[each.hash] or np.inf for each in space.candidates])
    predicted = model.predict(space.described("all")).mean[:, 0]
    known = np.isfinite(costs)
    order = rank_correlation(predicted[known], costs[known].astype(np.float32))
    drawn = space.drawn
    chosen = drawn[np.argsort(predicted[drawn], kind="stable")[:TOP]]
    random = np.random.default_rng(0)
    others = [costs[random.choice(drawn, TOP, replace=False)].min() for _ in range(DRAWS)]
    return order, float(costs[chosen].min() / space.best), float(np.mean(others) / space.best)


def main() -> None:
    """Print the table; write what it shows where that is asked for."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--write", type=Path, help="a copy of the shipped model that states its conditions")
    asked = given.parse_args()
    model = load_model(asked.write or model_paths()["loops"])
    helps = [USUAL]
    print(f"| | programs | rank correlation | best of {TOP} over best | of {TOP} at random | better |")
    print("|---|---|---|---|---|---|")
    for name, (differing, programs) in CONDITIONS.items():
        known = [each for each in programs if len(recorded(each).drawn) >= FEWEST_DRAWN]
        found = np.array([judged(model.predicts, each) for each in known])
        order, mine, theirs = found.T
        better = int((mine < theirs).sum())
        means = " | ".join(f"{np.exp(np.log(each).mean()):.3f}" for each in (mine, theirs))
        print(f"| {name} | {len(found)} | {order.mean():.2f} | {means} | {better} of {len(found)} |")
        if differing and better >= SHARE * len(found):
            helps.append({**USUAL, **differing})
    if asked.write:
        write_model(replace(model, conditions=stated(helps)), asked.write)


if __name__ == "__main__":
    main()
