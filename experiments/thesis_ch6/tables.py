"""Figures 6.1 and 6.3, and table 6.1, of what `collect.py` wrote.

    python experiments/thesis_ch6/tables.py OUT.jsonl [--plot page.html]

Improvement is in all functions' instructions over -Oz; intervals are bootstrapped over packages. Functions of
csmith's random programs are shown apart, with intervals over programs. Functions that the policy has learnt
from are left out, in whatever package they are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from gates import GATE, MEAN, POLICY, by_trees, column, spent_over_all
from numpy.typing import NDArray
from ways import BUDGETS

from planish.train.cost_tables import read_costs
from planish.train.labeling.run import Saving, interval, summarize

AUTOTUNER, ONCE, TREES = "Autotuner", "Greedy", "Coreset-NVP by trees on AutoPhase's features"
PRIORITY, PRODUCT = "Priority Sampling (PS)", "PS by the product (ours)"
CORESET = "Static coreset"
CSMITH = "csmith"
FIGURE = (
    "Random",
    "Greedy",
    "Nucleus, Temp1.2",
    "Nucleus, Temp1.4",
    CORESET,
    PRIORITY,
)
DIFFERENCES = (
    (PRIORITY, CORESET, (1, 3, 5, 10, 30, 100)),
    (PRIORITY, TREES, (1, 3, 5, 10, 30)),
    (PRIORITY, "Nucleus, Temp1.2", (1, 3, 5, 10, 30, 100)),
    (PRIORITY, "Beam", (1, 3, 5, 10, 30)),
    (PRIORITY, "Unique randomizer", (1, 3, 5, 10, 30)),
    (PRODUCT, PRIORITY, (1, 3, 5, 10, 30)),
    (PRODUCT, CORESET, (1, 3, 5, 10, 30, 100)),
    (PRODUCT, TREES, (1, 3, 5, 10, 30)),
    (PRIORITY, AUTOTUNER, (5, 10, 30, 100)),
)
LEARNT = Path(__file__).parents[1] / "labels" / "joined-lists.npz"
"""Costs on the functions that the policy has learnt from, those for training."""
Tried = Sequence[Mapping[str, Any]]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("collected", type=Path)
    given.add_argument("--plot", type=Path, help="where figures 6.1 and 6.3 go")
    asked = given.parse_args()
    lines = unseen([json.loads(line) for line in asked.collected.read_text().splitlines()])
    tried = [each for each in lines if each["split"] != CSMITH]
    # A random program is what a package is elsewhere: its functions are alike.
    random = [{**each, "package": each["file"]} for each in lines if each["split"] == CSMITH]
    for some in (tried, random):
        if some:
            trees = by_trees(some)
            for each, best in zip(some, trees["best"], strict=True):
                each["ways"][TREES] = {"best": best, "unique": trees["unique"]}
    names = [name for name in tried[0]["ways"] if name != AUTOTUNER]
    show_savings(tried, names, "packages")
    if random:
        print("# Random programs by csmith\n")
        show_savings(random, names, "programs")
    if asked.plot:
        plot(tried, names, asked.plot)


def unseen(tried: Tried) -> Tried:
    """Leave out functions that the policy has learnt from: packages have copies of each other's code."""
    learnt = {*read_costs(LEARNT).split("train").identities.tolist()}
    kept = [each for each in tried if each["identity"] not in learnt]
    print(f"{len(tried) - len(kept)} functions that the policy has learnt from are left out\n")
    return kept


def show_savings(tried: Tried, names: Sequence[str], groups: str) -> None:
    """Print all tables of some functions."""
    packages = len({each["package"] for each in tried})
    print(f"{len(tried):,} functions of {packages} {groups}\n")
    for title, backup in (("Table 6.1", False), ("The same with -Oz as a backup", True)):
        print(f"## {title}: improvement over -Oz\n")
        table(tried, names, backup=backup)
    spending(tried)
    differing(tried)
    print("\n## Figure 6.1: different samples of so many, in the mean\n")
    row(["", *map(str, BUDGETS)])
    row(["---"] * (len(BUDGETS) + 1))
    for name in names:
        row([name, *(f"{each:.1f}" for each in unique(tried, name))])
    print()


def spending(tried: Tried) -> None:
    """Show what so many evaluations a function in the mean save, spent where most is expected."""
    print("## Spent over all functions, with -Oz as a backup: improvement\n")
    row(["evaluations a function in the mean", *map(str, BUDGETS)])
    row(["---"] * (len(BUDGETS) + 1))
    spent, whole = spent_over_all(tried), column(tried, "baseline").sum()
    for name, saved in spent.items():
        row([name, *(f"{each.sum() / whole:.2%}" for each in saved)])
    for name in (POLICY, MEAN):
        pairs = zip(spent[name], spent[GATE], strict=True)
        row([f"{name} less {GATE}, points", *(points(tried, a - b) for a, b in pairs)])
    alike = zip(range(len(BUDGETS)), spent[GATE], strict=True)
    saved = [points(tried, saving(tried, PRIORITY, place) - gated) for place, gated in alike]
    row([f"{PRIORITY}, each function alike, less {GATE}, points", *saved])
    print()


def differing(tried: Tried) -> None:
    """Show how ways differ at so many samples, with 95 % intervals."""
    print("## Differences with -Oz as a backup, in points, with 95 % intervals\n")
    row(["", *map(str, BUDGETS)])
    row(["---"] * (len(BUDGETS) + 1))
    for name, other, budgets in DIFFERENCES:
        if not {name, other} <= tried[0]["ways"].keys():
            continue
        places = [BUDGETS.index(count) if count in budgets else None for count in BUDGETS]
        cells = [
            "-" if place is None else points(tried, saving(tried, name, place) - saving(tried, other, place))
            for place in places
        ]
        row([f"{name} less {other}", *cells])


def saving(tried: Tried, name: str, place: int) -> NDArray[np.int_]:
    """Give what a way saves on each function; the autotuner has one number."""
    found = [each["ways"][name]["best"] for each in tried]
    best = np.array(found if name == AUTOTUNER else [each[place] for each in found])
    return np.maximum(column(tried, "baseline") - best, 0)


def points(tried: Tried, more: NDArray[np.floating] | NDArray[np.int_]) -> str:
    """Tell what is saved more, in points, and its interval."""
    pairs = zip(tried, more.tolist(), strict=True)
    low, high = interval([Saving(e["package"], e["baseline"], e["baseline"] - each) for e, each in pairs])
    mean = more.sum() / column(tried, "baseline").sum()
    return f"{100 * mean:+.2f} ({100 * low:+.2f} to {100 * high:+.2f})"


def table(tried: Tried, names: Sequence[str], *, backup: bool) -> None:
    row(["Method", *(f"Sample {n}" for n in BUDGETS), "95 %, 30 samples"])
    row(["---"] * (len(BUDGETS) + 2))
    for name in names:
        places = range(1 if name == ONCE else len(BUDGETS))
        cells = [f"{improvement(tried, name, place, backup=backup):.2%}" for place in places]
        low, high = interval(effects(tried, name, BUDGETS.index(30), backup=backup))
        row([name, *cells, *["-"] * (len(BUDGETS) - len(cells)), f"{low:.2%} to {high:.2%}"])
    if AUTOTUNER not in tried[0]["ways"]:
        print()
        return
    evaluations = fmean(each["ways"][AUTOTUNER]["evaluations"] for each in tried)
    searched = summarize(Saving(e["package"], e["baseline"], e["ways"][AUTOTUNER]["best"]) for e in tried)
    name = f"{AUTOTUNER} of the labels, {evaluations:.0f} evaluations in the mean"
    dashes, overall = ["-"] * (len(BUDGETS) - 1), f"{searched.overall:.2%}"
    row([name, *dashes, overall, f"{searched.low:.2%} to {searched.high:.2%}"])
    print()


def effects(tried: Tried, name: str, place: int, *, backup: bool) -> list[Saving]:
    """Give what the best of so many samples of a way does to each function."""
    found = [(each, each["ways"][name]["best"][place]) for each in tried]
    return [
        Saving(each["package"], each["baseline"], min(best, each["baseline"]) if backup else best)
        for each, best in found
    ]


def improvement(tried: Tried, name: str, place: int, *, backup: bool) -> float:
    known = effects(tried, name, place, backup=backup)
    return sum(each.baseline - each.cost for each in known) / sum(each.baseline for each in known)


def unique(tried: Tried, name: str) -> list[float]:
    return [fmean(each["ways"][name]["unique"][place] for each in tried) for place in range(len(BUDGETS))]


def row(cells: Sequence[str]) -> None:
    print(f"| {' | '.join(cells)} |")


def plot(tried: Tried, names: Sequence[str], path: Path) -> None:
    """Draw what is improved, and how many samples differ, by how many there are."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    titles = ("figure 6.3: improvement over -Oz, %", "figure 6.1: different samples")
    drawn = make_subplots(rows=2, cols=1, subplot_titles=titles, shared_xaxes=True)
    for name in names:
        better = [100 * improvement(tried, name, place, backup=True) for place in range(len(BUDGETS))]
        seen = True if name in FIGURE else "legendonly"
        for line, values in enumerate((better, unique(tried, name)), 1):
            trace = go.Scatter(
                x=BUDGETS, y=values, name=name, legendgroup=name, showlegend=line == 1, visible=seen
            )
            drawn.add_trace(trace, row=line, col=1)
    drawn.update_xaxes(type="log", title="samples", row=2)
    drawn.update_layout(template="simple_white", height=900)
    drawn.write_html(path, include_plotlyjs=True)


if __name__ == "__main__":
    main()
