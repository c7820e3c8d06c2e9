"""The card of labels: what the lists save, and which they are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from planish.core import PlanishError
from planish.core.replacing import replace_text
from planish.corpus.card import CARD, PAGE, card_in
from planish.corpus.labelling.label import Label
from planish.corpus.labelling.label_plan import LabelBench
from planish.corpus.labelling.label_shards import read_labels
from planish.corpus.labelling.savings import Saving, Summary, summarise
from planish.corpus.markdown import table

_FREQUENT = 30


def write_label_card(folder: Path, bench: LabelBench, command: str) -> dict[str, Any]:
    """Count what was found, and write it for programs and for people.

    Raises:
        OSError: it cannot be written.
    """
    labels = list(read_labels(folder))
    lists = [label.passes for label in labels if label.saved]
    card: dict[str, Any] = {
        "functions": len(labels),
        "llvm": bench.backend.version,
        "plan": asdict(bench.plan),
        "command": command,
        "evaluations": sum(label.evaluations for label in labels),
        "refused": sum(len(label.refused) for label in labels),
        "found_by": dict(Counter(label.found_by for label in labels)),
        "rows": [_row(*each) for each in _groups(bench.plan.splits, labels)],
        "different_lists": len(set(lists)),
        "length": round(sum(map(len, lists)) / max(1, len(lists)), 2),
        "longest": max(map(len, lists), default=0),
        "passes": Counter(p for passes in lists for p in passes).most_common(_FREQUENT),
        "lists": [[",".join(passes), count] for passes, count in Counter(lists).most_common(_FREQUENT)],
    }
    replace_text(folder / PAGE, label_page(card))
    replace_text(folder / CARD, json.dumps(card, indent=1))
    return card


def read_label_card(folder: Path) -> dict[str, Any]:
    """Read the card of finished labels.

    Raises:
        PlanishError: there is none.
    """
    card = card_in(folder)
    if "plan" not in card:
        raise PlanishError(
            f"{folder} holds no finished labels", "Make them: planish corpus label CORPUS DIR."
        )
    return card


def _groups(splits: Iterable[str], labels: Sequence[Label]) -> list[tuple[str, Sequence[Label]]]:
    groups = [(split, [label for label in labels if label.split == split]) for split in splits]
    real = [label for label in labels if label.split != "csmith"]
    return [*((name, some) for name, some in groups if some), ("real", real), ("all", labels)]


def _row(name: str, labels: Sequence[Label]) -> dict[str, Any]:
    """Make the two rows of figures 4.5 and 4.6: without -Oz behind the lists, and with it."""
    alone = summarise(Saving(label.package, label.baseline, label.other) for label in labels)
    behind = summarise(Saving(label.package, label.baseline, label.best) for label in labels)
    return {
        "split": name,
        "unoptimised": sum(label.unoptimised for label in labels),
        "without_backup": _columns(alone),
        "with_backup": _columns(behind),
    }


def _columns(summary: Summary) -> dict[str, Any]:
    return {**asdict(summary), "overall": summary.overall}


HEADS = ("functions", "improved", "regressed", "saved", "lost", "overall", "95 % interval")


def cells(columns: dict[str, Any]) -> list[str]:
    """Write a row of figure 4.5, under `HEADS`."""
    counts = [f"{columns[name]:,}" for name in ("functions", "improved", "regressed", "saved", "lost")]
    interval = f"{columns['low']:.2%} to {columns['high']:.2%}"
    return [*counts, f"{columns['overall']:.2%}", interval]


def label_page(card: dict[str, Any]) -> str:
    """Write a card for people, as Markdown."""
    made = f"{card['functions']:,} functions, LLVM {card['llvm']}, {card['evaluations']:,} evaluations"
    lists = f"{card['different_lists']:,} different lists are better than -Oz"
    found_by = ", ".join(f"{name} {count:,}" for name, count in card["found_by"].items())
    lines = [
        "# The best pass lists of a corpus",
        "",
        f"{made}, of which {card['refused']:,} ended LLVM's process.",
        f"Made by `{card['command']}`.",
        "",
        *table(("", "-Oz backup", *HEADS), _rows(card)),
        "",
        f"{lists}: {card['length']} passes on average, {card['longest']} at most. Found by: {found_by}.",
        "",
        *table(("pass", "in lists"), [(name, f"{count:,}") for name, count in card["passes"]]),
        "",
        *table(("list", "best for"), [(name, f"{count:,}") for name, count in card["lists"]]),
    ]
    return "\n".join(lines) + "\n"


def _rows(card: dict[str, Any]) -> list[Sequence[str]]:
    return [
        (row["split"], kind, *cells(row[key]))
        for row in card["rows"]
        for kind, key in (("no", "without_backup"), ("yes", "with_backup"))
    ]
