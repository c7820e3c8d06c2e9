"""Tables and fit of what `pass_list_scaling.py` wrote.

    python experiments/pass_list_scaling_tables.py OUT.jsonl [--part both] [--goal 1=2.64 --goal 5=3.53]

Of the numbers of epochs, the one with the least error on packages held back within training is shown.
The fit is linear in the logarithms of parameters and functions; intervals are bootstrapped over packages.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

EVALUATIONS, DRAWS, FAR = (1, 3, 5, 10), 2000, 20
Run = Mapping[str, Any]
Floats = NDArray[np.floating]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("out", type=Path)
    given.add_argument("--part", default="both", choices=["validation", "test", "both", "first"])
    given.add_argument("--goal", action="append", default=["1=2.64", "5=3.53"], metavar="EVALUATIONS=PERCENT")
    asked = given.parse_args()
    runs = [json.loads(line) for line in asked.out.read_text().splitlines()]
    some = next(run for run in runs if "judged" in run)["judged"][asked.part]
    most = 100 * sum(some["most"]) / sum(some["baseline"])
    packages = len(some["packages"])
    print(f"{some['functions']:,} functions of {packages} packages; {most:.2f} % by the best list of each\n")
    cells = best_epochs([run for run in runs if run["kind"] != "trees"])
    trees = [run for run in runs if run["kind"] == "trees"]
    print("## Evaluations spent over all functions\n")
    head("AUC")
    for run in [*trees, *(run for run in cells if "judged" in run)]:
        told = f"{run['judged'][asked.part]['auc']:.3f}"
        row(run, [*(f"{saved(run, asked.part, count):.2f}%" for count in EVALUATIONS), told])
    goals = {int(count): float(goal) for count, goal in (each.split("=") for each in asked.goal)}
    fitted([run for run in cells if run["kind"] == "reader"], asked.part, goals)
    print("\n## Each function alike, the most probable list first: validation packages, then test packages\n")
    head(*map(str, EVALUATIONS))
    for run in cells:
        if run["kind"] != "gains alone":  # whose choices mean nothing
            parts = [run["alike"][part] for part in ("validation", "test")]
            row(run, [f"{part[f'saved at {count}']:.2%}" for part in parts for count in EVALUATIONS])


def best_epochs(runs: Sequence[Run]) -> list[Run]:
    cells: dict[tuple[str, int, float], Run] = {}
    for run in sorted(runs, key=lambda run: -held(run)):
        cells[run["kind"], run["width"], run["share"]] = run
    return [cells[place] for place in sorted(cells)]


def held(run: Run) -> float:
    """Give the error on packages held back: squared, of gains, or bits of a list."""
    return float(run.get("held back", run.get("bits held back", np.nan)))


def head(*more: str) -> None:
    heads = ["", "functions", "parameters", "epochs", "held back", *map(str, EVALUATIONS), *more]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")


def row(run: Run, shown: Sequence[str]) -> None:
    name = f"{run['kind']}, width {run['width']}" if "width" in run else run["kind"]
    counts = [f"{run[about]:,}" if about in run else "" for about in ("functions", "parameters")]
    learnt = [str(run["epochs"]), f"{held(run):.3f}"] if "epochs" in run else ["", ""]
    print(f"| {' | '.join([name, *counts, *learnt, *shown])} |")


def saved(run: Run, part: str, count: int, picks: NDArray[np.intp] | None = None) -> float:
    """Give the percentage that is saved over -Oz, of all packages or of some draw of them."""
    found = run["judged"][part]
    each, whole = np.array(found["saved"][str(count)]), np.array(found["baseline"])
    picks = np.arange(len(whole)) if picks is None else picks
    return float(100 * each[picks].sum() / whole[picks].sum())


def fitted(cells: Sequence[Run], part: str, goals: Mapping[int, float]) -> None:
    """Say what twice the parameters and twice the functions are worth, and where a goal would be reached."""
    columns = np.array([[1, np.log2(run["parameters"]), np.log2(run["functions"])] for run in cells])
    last = columns.max(axis=0)
    columns[:, 1:] -= last[1:]  # so that the constant is what the largest of both saves
    packages = len(cells[0]["judged"][part]["packages"])
    draws = np.random.default_rng(0).integers(packages, size=(DRAWS, packages))
    lines = list[str]()
    print(
        "\n| evaluations | the largest, by the fit | twice the parameters | twice the functions | residual |"
    )
    print("|---" * 5 + "|")
    for count in EVALUATIONS:
        measured = np.array([saved(run, part, count) for run in cells])
        found = fit(columns, measured)
        many = [fit(columns, np.array([saved(run, part, count, p) for run in cells])) for p in draws]
        low, high = np.percentile(many, (2.5, 97.5), axis=0)
        worth = [f"{found[n]:+.3f} ({low[n]:+.3f} to {high[n]:+.3f})" for n in (1, 2)]
        left = float(np.sqrt(np.mean((columns @ found - measured) ** 2)))
        print(f"| {count} | {found[0]:.2f}% | {' | '.join(worth)} | {left:.3f} |")
        if count in goals:
            ways = [crossing(goals[count] - found[0], found[n], last[n]) for n in (1, 2)]
            lines.append(f"{goals[count]} % at {count}: {ways[0]} parameters, or {ways[1]} functions")
    print("\n" + "\n".join(f"- {line}" for line in lines))


def crossing(short: float, slope: float, last: float) -> str:
    """Say how many there must be of what is doubled, the other one left as it is."""
    if short <= 0:
        return f"{2**last:,.0f} (reached)"
    if slope <= 0 or short / slope > FAR:
        return "no number of"
    return f"{2 ** (last + short / slope):.2g}"


def fit(columns: Floats, measured: Floats) -> Floats:
    return np.linalg.lstsq(columns, measured, rcond=None)[0]


if __name__ == "__main__":
    main()
