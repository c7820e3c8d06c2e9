"""Tables and fit of what `pass_list_scaling.py` wrote.

    python experiments/pass_list_scaling_tables.py OUT.jsonl [--part both] [--goal 1=2.64 5=3.53]

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
    given.add_argument("--goal", nargs="*", default=[], metavar="EVALUATIONS=PERCENT", help="else the trees'")
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
        auc = f"{run['judged'][asked.part]['auc']:.3f}"
        row(run, [*(f"{saved(run, asked.part, count):.2f}%" for count in EVALUATIONS), auc])
    readers = [run for run in cells if run["kind"] == "reader"]
    beside(readers, trees, asked.part)
    goals = {int(count): float(goal) for count, goal in (each.split("=") for each in asked.goal)}
    goals = goals or {count: max(saved(run, asked.part, count) for run in trees) for count in EVALUATIONS}
    fitted(readers, asked.part, goals, most)
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


def beside(readers: Sequence[Run], trees: Sequence[Run], part: str) -> None:
    """Give what readers save beside trees that learnt from the same functions, in points, and intervals."""
    print(f"\n| less the trees | functions | {' | '.join(map(str, EVALUATIONS))} |\n{'|---' * 6}|")
    for run in readers:
        for other in (each for each in trees if each["share"] == run["share"]):
            cells = list[str]()
            for count in EVALUATIONS:
                many = [saved(run, part, count, p) - saved(other, part, count, p) for p in draws(run, part)]
                low, high = np.percentile(many, (2.5, 97.5))
                more = saved(run, part, count) - saved(other, part, count)
                cells.append(f"{more:+.2f} ({low:+.2f} to {high:+.2f})")
            print(f"| width {run['width']} | {run['functions']:,} | {' | '.join(cells)} |")


def draws(run: Run, part: str) -> NDArray[np.intp]:
    packages = len(run["judged"][part]["packages"])
    return np.random.default_rng(0).integers(packages, size=(DRAWS, packages))


def fitted(cells: Sequence[Run], part: str, goals: Mapping[int, float], most: float) -> None:
    """Say what twice the parameters and twice the functions are worth, and where a goal would be reached."""
    columns = np.array([[1, np.log2(run["parameters"]), np.log2(run["functions"])] for run in cells])
    last = columns.max(axis=0)
    columns[:, 1:] -= last[1:]  # so that the constant is what the largest of both saves
    picks, lines = draws(cells[0], part), list[str]()
    print("\n| evaluations | the largest, by the fit | twice the parameters | twice the functions | error |")
    print("|---" * 5 + "|")
    for count in EVALUATIONS:
        measured = np.array([saved(run, part, count) for run in cells])
        found = fit(columns, measured)
        many = [fit(columns, np.array([saved(run, part, count, p) for run in cells])) for p in picks]
        low, high = np.percentile(many, (2.5, 97.5), axis=0)
        worth = [f"{found[n]:+.3f} ({low[n]:+.3f} to {high[n]:+.3f})" for n in (1, 2)]
        left = float(np.sqrt(np.mean((columns @ found - measured) ** 2)))
        print(f"| {count} | {found[0]:.2f}% | {' | '.join(worth)} | {left:.3f} |")
        if count in goals:
            ways = [crossing(goals[count] - found[0], found[n], last[n]) for n in (1, 2)]
            reached = f"{ways[0]} parameters, or {ways[1]} functions"
            lines.append(
                f"{goals[count]:.2f} % at {count}: {reached if goals[count] < most else 'no list saves that'}"
            )
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
