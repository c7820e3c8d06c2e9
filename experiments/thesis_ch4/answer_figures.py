"""Tables of figures 4.5 to 4.9, of what `answers.py` has collected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from baselines import OBJECTIVE, run, tabled

from planish.levels.llvm.passes.catalogue import base_name, elements
from planish.levels.llvm.passes.space import oz_of
from planish.train.cost_tables import read_joined
from planish.train.labeling.choice import lists_of_table
from planish.train.labeling.run import HEADS, Saving, cells, summarize

LABELS, LISTS = Path(__file__).parents[1] / "labels" / "joined-lists.npz", 40
"""What the model and the baselines learn from, and so many lists of it at most."""
SIZES = (128, 256, 512, 1024, 2048)
"""Tokens of functions, where figure 4.9 divides them."""
OURS, LABELED = "the language model", "the labels"


@dataclass(frozen=True)
class Answered:
    """A function, the model's list for it, and the best that is known.

    Args:
        identity: the hash of its IR.
        package: where it is from.
        tokens: of it.
        oz: instructions after -Oz.
        cost: instructions after the model's list; of the function as it is, where that fails.
        passes: the model's list.
        best: instructions after the labels' list.
        label: that list; -Oz where no list is better.
    """

    identity: str
    package: str
    tokens: int
    oz: int
    cost: int
    passes: Sequence[str]
    best: int
    label: Sequence[str]


def baselines(answered: Sequence[Answered], held: Path) -> None:
    """Figure 4.5: each approach without -Oz behind it."""
    compare(answered, held, backup=False)


def with_backup(answered: Sequence[Answered], held: Path) -> None:
    """Figure 4.6: each approach with -Oz behind it, which costs a compilation where the list is another."""
    compare(answered, held, backup=True)


def compare(answered: Sequence[Answered], held: Path, *, backup: bool) -> None:
    """Print rows of figure 4.5 or 4.6."""
    joined = read_joined([LABELS, held], OBJECTIVE, described=True)
    table = joined.take(np.isin(joined.identities, [one.identity for one in answered]))
    labels = joined.split("train")
    coreset = lists_of_table(labels, OBJECTIVE, LISTS)
    print(f"{len(answered):,} functions\n\n| | additional compilations | {' | '.join(HEADS)} |")
    print("|---" * (len(HEADS) + 2) + "|")
    others = sum(tuple(one.passes) != oz() for one in answered)
    row(LABELED, "", [Saving(one.package, one.oz, one.best) for one in answered], backup=backup)
    for name, order, counts in tabled(labels, table, coreset):
        effects, ran, backups = run(table, order, counts)
        row(name, f"{ran + (backups if backup else 0):,}", effects, backup=backup)
    mine = [Saving(one.package, one.oz, one.cost) for one in answered]
    row(OURS, f"{others if backup else 0:,}", mine, backup=backup)


def oz() -> tuple[str, ...]:
    """Give the list that is -Oz."""
    found = oz_of({*elements()})
    assert found is not None
    return (found,)


def row(name: str, compilations: str, effects: Sequence[Saving], *, backup: bool) -> None:
    summary = summarize(effects, backup=backup)
    columns = cells({**asdict(summary), "overall": summary.overall})
    print(f"| {name} | {compilations} | {' | '.join(columns)} |")


def passes(answered: Sequence[Answered], _: Path) -> None:
    """Figure 4.7: how often passes are in lists, how long lists are, and which lists are new."""
    chosen: dict[str, Callable[[Answered], Sequence[str]]] = {
        LABELED: lambda one: one.label,
        OURS: lambda one: one.passes,
    }
    often = {
        name: Counter(each for one in answered for each in {base_name(text) for text in lists(one)})
        for name, lists in chosen.items()
    }
    print(f"| pass | {LABELED} | {OURS} |\n|---|---|---|")
    for name in sorted({*often[LABELED], *often[OURS]}, key=lambda each: -often[LABELED][each]):
        shares = [f"{often[who][name] / len(answered):.1%}" for who in (LABELED, OURS)]
        print(f"| `{name}` | {' | '.join(shares)} |")
    known = {tuple(one.label) for one in answered}
    for name, lists in chosen.items():
        longer = [len(lists(one)) for one in answered if tuple(lists(one)) != oz()]
        alone = 1 - len(longer) / len(answered)
        others = f"; others have {fmean(longer):.1f} passes, at most {max(longer)}" if longer else ""
        print(f"\n{name}: -Oz alone for {alone:.1%}{others}")
    different = {tuple(one.passes) for one in answered}
    print(f"\ndifferent lists: {len(known)} of the labels, {len(different)} of the model, ", end="")
    print(f"{len(different - known)} of them not among those of the labels")


def by_package(answered: Sequence[Answered], _: Path) -> None:
    """Figure 4.8: the improvement over -Oz by data set."""
    print(f"| package | functions | {LABELED} | {OURS} | with -Oz behind it |\n|---|---|---|---|---|")
    for package in sorted({one.package for one in answered}):
        shares(package, [one for one in answered if one.package == package])
    shares("all", answered)


def by_size(answered: Sequence[Answered], _: Path) -> None:
    """Figure 4.9: the improvement over -Oz by the size of the input."""
    print(f"| tokens | functions | {LABELED} | {OURS} | with -Oz behind it |\n|---|---|---|---|---|")
    least = 0
    for most in (*SIZES, max(one.tokens for one in answered)):
        shares(f"{least + 1:,} to {most:,}", [one for one in answered if least < one.tokens <= most])
        least = max(least, most)


def shares(name: str, some: Sequence[Answered]) -> None:
    """Print what is saved of all that -Oz leaves of some functions; without functions, nothing."""
    whole = sum(one.oz for one in some)
    if whole:
        costs = (
            sum(min(one.best, one.oz) for one in some),
            sum(one.cost for one in some),
            sum(min(one.cost, one.oz) for one in some),
        )
        print(f"| {name} | {len(some)} | {' | '.join(f'{1 - cost / whole:.2%}' for cost in costs)} |")
