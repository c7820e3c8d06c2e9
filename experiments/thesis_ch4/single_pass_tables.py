"""Figure 4.19's table and page, of what a model made of single passes; see `single_passes.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np

from planish.levels.llvm.passes.catalogue import base_name
from planish.train.cost_tables import FAILED, CostTable, read_costs

LABELS = Path(__file__).parents[1] / "labels" / "joined-lists.npz"
OBJECTIVE = "instructions"


class Translation(NamedTuple):
    """What a model made of a pass and a function.

    Args:
        name: of the pass.
        changed: whether the pass changes the function at all.
        copied: BLEU of the input.
        bleu: of what was written.
        exact: whether it is what the pass makes.
        valid: whether it compiles.
    """

    name: str
    changed: bool
    copied: float
    bleu: float
    exact: bool
    valid: bool


COLUMNS: Mapping[str, Callable[[Translation], float]] = {
    "the pass changes": lambda one: one.changed,
    "BLEU": lambda one: one.bleu,
    "copy: BLEU": lambda one: one.copied,
    "exact": lambda one: one.exact,
    "copy: exact": lambda one: not one.changed,
    "compiles": lambda one: one.valid,
}


def show(found: Sequence[Translation], plot: Path | None = None) -> None:
    """Print the whole, what passes change, and each pass; the best BLEU first."""
    saving, losing = contributions(read_costs(LABELS).split("train"))
    passes = {name: [one for one in found if one.name == name] for name in {one.name for one in found}}
    order = sorted(passes, key=lambda name: (-fmean(one.bleu for one in passes[name]), name))
    heads = ["functions", *COLUMNS, "in lists that save", "that lose"]
    print(f"\n| | {' | '.join(heads)} |\n|---{'|---' * len(heads)}|")
    row("all", found)
    row("changed by the pass", [one for one in found if one.changed])
    for name in order:
        row(
            f"`{base_name(name)}`",
            passes[name],
            saving.get(base_name(name), 0),
            losing.get(base_name(name), 0),
        )
    for label, counts in (("save", saving), ("lose", losing)):
        correlated = correlation(
            [fmean(one.bleu for one in passes[name]) for name in order],
            [counts.get(base_name(name), 0) for name in order],
        )
        print(f"\ncorrelation of BLEU with how often a pass is in lists that {label}: {correlated:.2f}")
    if plot:
        draw(passes, order, (saving, losing), plot)


def row(name: str, some: Sequence[Translation], *counts: int) -> None:
    """Print a row of the table; without functions, none."""
    if some:
        values = [fmean(map(value, some)) for value in COLUMNS.values()]
        cells = [
            f"{value:.3f}" if "BLEU" in head else f"{value:.0%}"
            for head, value in zip(COLUMNS, values, strict=True)
        ]
        print(
            f"| {name} | {len(some)} | {' | '.join(cells)} | {' | '.join(f'{n:,}' for n in counts) or '|'} |"
        )


def contributions(table: CostTable) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Count, by pass, lists that it is in and that save over -Oz on a function, and those that lose."""
    costs = table.costs[:, :, table.columns.objectives.index(OBJECTIVE)]
    baseline = table.baseline[:, table.columns.objectives.index(OBJECTIVE), None]
    saving, losing = dict[str, int](), dict[str, int]()
    for counts, those in ((saving, costs < baseline), (losing, costs > baseline)):
        often = (those & (costs != FAILED)).sum(axis=0).tolist()
        for passes, count in zip(table.columns.lists, often, strict=True):
            for name in {base_name(each) for each in passes}:
                counts[name] = counts.get(name, 0) + count
    return saving, losing


def correlation(some: Sequence[float], others: Sequence[float]) -> float:
    """Give Pearson's; where one does not vary, there is none."""
    return float(np.corrcoef(some, others)[0, 1]) if np.std(some) and np.std(others) else float("nan")


def draw(
    passes: Mapping[str, Sequence[Translation]],
    order: Sequence[str],
    counted: tuple[Mapping[str, int], Mapping[str, int]],
    path: Path,
) -> None:
    """Draw figure 4.19: how often passes are in lists that save and that lose, and how good their code is."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    names = [base_name(name) for name in order]
    drawn = make_subplots(rows=1, cols=2, shared_yaxes=True, subplot_titles=("lists", "code"))
    for label, counts in zip(("save", "lose"), counted, strict=True):
        often = [counts.get(name, 0) for name in names]
        drawn.add_trace(go.Bar(y=names, x=often, name=label, orientation="h"), row=1, col=1)
    for label in ("BLEU", "copy: BLEU", "exact", "compiles"):
        shares = [fmean(map(COLUMNS[label], passes[name])) for name in order]
        drawn.add_trace(go.Scatter(y=names, x=shares, name=label, mode="markers"), row=1, col=2)
    drawn.update_yaxes(autorange="reversed")
    drawn.update_layout(template="simple_white", height=1400)
    drawn.write_html(path, include_plotlyjs=True)
