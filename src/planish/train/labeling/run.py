"""Labeling of a corpus, and its card."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from planish.core import PlanishError, canonical_json, content_hash
from planish.core.files import replace_text
from planish.sandbox.fork_pool import Forked, Watchdog, forked
from planish.train.corpus.reader import CARD, PAGE, card_in, read_card, read_corpus, table
from planish.train.corpus.shards import MANIFEST, SPLITS, Row, ours
from planish.train.labeling.choice import Broadcasting, Searching, choose, drawn, most_saving
from planish.train.labeling.function_search import Passes
from planish.train.labeling.label_plan import (
    LABELS,
    Label,
    LabelBench,
    LabelPlan,
    LabelStatus,
    bench,
    read_labels,
    read_shard,
    write_labels,
)
from planish.train.recipes import RECIPE, require_same
from planish.tuning.progress import ProgressDisplay


class Saving(NamedTuple):
    """Saving of one function.

    Args:
        package: where it is from.
        baseline: its cost after -Oz.
        cost: its cost after the list in question.
    """

    package: str
    baseline: int
    cost: int


@dataclass(frozen=True)
class Summary:
    """A row of figure 4.5.

    Args:
        functions: how many there are.
        improved: how many of them cost less than after -Oz.
        regressed: how many cost more.
        saved: summed over those improved.
        lost: summed over those regressed.
        baseline: what all cost after -Oz.
        low: the lower end of the 95 % confidence interval of `overall`.
        high: its upper end.
    """

    functions: int
    improved: int
    regressed: int
    saved: int
    lost: int
    baseline: int
    low: float
    high: float

    @property
    def overall(self) -> float:
        """Return the savings as a share of the total."""
        return (self.saved - self.lost) / self.baseline if self.baseline else 0.0


def summarize(effects: Iterable[Saving], *, backup: bool = False) -> Summary:
    """Add up what lists did.

    Args:
        effects: of all functions.
        backup: whether -Oz is taken where the list does worse ("-Oz backup", figure 4.6).
    """
    known = [Saving(e.package, e.baseline, min(e.baseline, e.cost) if backup else e.cost) for e in effects]
    gains = [e.baseline - e.cost for e in known]
    low, high = interval(known)
    return Summary(
        functions=len(known),
        improved=sum(gain > 0 for gain in gains),
        regressed=sum(gain < 0 for gain in gains),
        saved=sum(gain for gain in gains if gain > 0),
        lost=-sum(gain for gain in gains if gain < 0),
        baseline=sum(e.baseline for e in known),
        low=low,
        high=high,
    )


def interval(effects: Sequence[Saving], draws: int = 2000, seed: int = 0) -> tuple[float, float]:
    """Bootstrap the overall improvement over packages, whose functions are alike and so no free draws.

    Returns:
        The 95 % interval; (0, 0) without functions. With few packages it is wide, and not to be trusted.
    """
    import numpy as np

    names, row = np.unique([e.package for e in effects], return_inverse=True)
    sums = np.zeros((len(names), 2))
    np.add.at(sums, row, [(e.baseline - e.cost, e.baseline) for e in effects] or np.zeros((0, 2)))
    if not sums[:, 1].sum():
        return 0.0, 0.0
    picks = np.random.default_rng(seed).integers(len(names), size=(draws, len(names)))
    drawn = sums[picks].sum(axis=1)
    low, high = np.percentile(drawn[:, 0] / np.maximum(drawn[:, 1], 1), (2.5, 97.5)).tolist()
    return low, high


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
        "llvm": bench.bindings.version,
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
    """Make the two rows of figures 4.5 and 4.6: without -Oz after the lists, and with it."""
    alone = summarize(Saving(label.package, label.baseline, label.other) for label in labels)
    behind = summarize(Saving(label.package, label.baseline, label.best) for label in labels)
    return {
        "split": name,
        "unoptimized": sum(label.unoptimized for label in labels),
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
    rows = [
        (row["split"], kind, *cells(row[key]))
        for row in card["rows"]
        for kind, key in (("no", "without_backup"), ("yes", "with_backup"))
    ]
    lines = [
        "# The best pass lists of a corpus",
        "",
        f"{made}, of which {card['refused']:,} ended LLVM's process.",
        f"Made by `{card['command']}`.",
        "",
        *table(("", "-Oz backup", *HEADS), rows),
        "",
        f"{lists}: {card['length']} passes on average, {card['longest']} at most. Found by: {found_by}.",
        "",
        *table(("pass", "in lists"), [(name, f"{count:,}") for name, count in card["passes"]]),
        "",
        *table(("list", "best for"), [(name, f"{count:,}") for name, count in card["lists"]]),
    ]
    return "\n".join(lines) + "\n"


SEARCHED = "searched"
LISTS = "lists.json"
_SHARD = 256
_DIGITS = 12
_Item = TypeVar("_Item")


def label_corpus(
    corpus: Path,
    folder: Path,
    plan: LabelPlan,
    display: ProgressDisplay,
    command: str = "",
    broadcasting: type[Broadcasting] = Broadcasting,
    spread: Forked = forked,
) -> dict[str, Any]:
    """Find a good pass list for each function of a corpus, or resume the labeling.

    As in the thesis (4.3.2): a search on each function, its best list minimized; then the best of all
    lists are run on all functions ("broadcast"). There all unique lists are, here those of a greedy cover,
    chosen on training functions alone; all, where as many are asked for as there are candidates.

    Args:
        corpus: the folder of a corpus, or a file of JSON lines.
        folder: where labels go; made where it is missing.
        plan: how.
        display: shows the progress.
        command: the command that asks for it, for the card.
        broadcasting: runs the lists of others on functions.
        spread: does the work on functions, in children of this process or on the hosts of a cluster.

    Returns:
        The card, as card.json holds it.

    Raises:
        PlanishError: there is no corpus, or it has nothing of these splits; the folder is a corpus itself,
            cannot be written, is in use, or was made otherwise.
    """
    if (folder / MANIFEST).is_file():
        raise PlanishError(f"{folder} is a corpus, whose card labels would replace", "Name another folder.")
    made = bench(plan)
    total = _count(corpus, plan)
    if not total:
        raise PlanishError(f"{corpus} has no functions of {', '.join(plan.splits)}", "Name other splits.")
    draw = Draw(min(plan.functions or total, total), total)
    with ours(folder):
        require_same(folder / RECIPE, _recipe(corpus, made, total), f"the labels in {folder}")
        run = _Run(corpus, folder, made, draw, display, broadcasting, spread)
        run.search()
        run.broadcast(run.lists())
        return write_label_card(folder, made, command)


@dataclass(frozen=True)
class Draw:
    """Draws functions by a hash of their identity, so that they are the same in every run.

    Not by the identity itself: a corpus may hold those alone whose identities are small.

    Args:
        wanted: about how many.
        total: of how many.
    """

    wanted: int
    total: int

    def holds(self, row: Row) -> bool:
        """Return whether a function is drawn."""
        share = int(hashlib.sha256(row.identity.encode()).hexdigest()[:_DIGITS], 16)
        return share * self.total < self.wanted * 16**_DIGITS


@dataclass
class _Run:
    corpus: Path
    folder: Path
    bench: LabelBench
    draw: Draw
    display: ProgressDisplay
    broadcasting: type[Broadcasting]
    spread: Forked

    def search(self) -> None:
        """Search on each function by itself."""
        work = Searching(self.bench, self.bench.plan.budget, self.bench.plan.gives_up)
        self._stage("searching", SEARCHED, self._rows, work, lambda _: None, self.bench.plan.evaluations)

    def lists(self) -> list[Passes]:
        """Choose what is broadcast, once."""
        plan, file = self.bench.plan, self.folder / LISTS
        if file.is_file():
            return [tuple(passes) for passes in json.loads(file.read_text())]
        labels = [label for shard in self._shards(SEARCHED) for label in read_shard(shard)]
        status = LabelStatus("choosing", self.draw.wanted)
        status.know(0, labels)
        self.display.begin(status)
        self.display.update(at_once=True)
        candidates = most_saving(labels, plan.candidates)
        lists = candidates if plan.lists >= plan.candidates else self._cover(candidates)
        replace_text(file, json.dumps(lists, indent=1))
        return lists

    def _cover(self, candidates: Sequence[Passes]) -> list[Passes]:
        plan = self.bench.plan
        if not candidates or not plan.lists:
            return []
        rows = drawn((row for row in self._every_row() if row.split == "train"), plan.sample, plan.seed)
        return choose(self.bench, rows, candidates, plan.lists, self.spread)

    def broadcast(self, lists: Sequence[Passes]) -> None:
        """Run the chosen lists on every function; without any, its own search has the last word."""
        if not lists:
            for shard in self._shards(SEARCHED):
                write_labels(read_shard(shard), self.folder / LABELS / shard.name)
            return
        work = self.broadcasting(self.bench, lists)
        self._stage("broadcasting", LABELS, self._labeled, work, lambda item: item[1], len(lists))

    def _stage(
        self,
        name: str,
        where: str,
        read: Callable[[], Iterator[list[_Item]]],
        work: Callable[[_Item, Watchdog], Label | None],
        otherwise: Callable[[_Item], Label | None],
        evaluations: int,
    ) -> None:
        """Do what is not done yet of a stage, shard by shard; an item that is given up keeps what it has."""
        status = LabelStatus(name, self.draw.wanted)
        self.display.begin(status)
        for number, items in enumerate(read()):
            path = self.folder / where / f"{number:05}.parquet"
            if path.is_file():
                status.know(len(items), read_shard(path))
                continue
            fresh: dict[int, Label] = {}
            # What is over is this very object, also where its work was done elsewhere.
            order = {id(item): index for index, item in enumerate(items)}
            at_once = self.bench.at_once(evaluations)
            with closing(self.spread(items, work, Label, self.bench.plan.jobs, at_once=at_once)) as over:
                for one in over:
                    one.check()
                    label = one.answer or otherwise(one.item)
                    if label is not None:
                        label = replace(label, refused=(*label.refused, *one.refused))
                        fresh[order[id(one.item)]] = label
                    status.add_label(label)
                    self.display.update(at_once=status.done == status.total)
            # Children end in any order, but a shard is to be the same in each run.
            write_labels([fresh[index] for index in sorted(fresh)], path)

    def _every_row(self) -> Iterator[Row]:
        for split in self.bench.plan.splits:
            yield from (row for row in read_corpus(self.corpus, split) if self.draw.holds(row))

    def _rows(self) -> Iterator[list[Row]]:
        rows = self._every_row()
        while shard := list(islice(rows, _SHARD)):
            yield shard

    def _labeled(self) -> Iterator[list[tuple[Row, Label]]]:
        for rows, shard in zip(self._rows(), self._shards(SEARCHED), strict=True):
            labels = {label.identity: label for label in read_shard(shard)}
            yield [(row, labels[row.identity]) for row in rows if row.identity in labels]

    def _shards(self, where: str) -> list[Path]:
        return sorted((self.folder / where).glob("*.parquet"))


def _count(corpus: Path, plan: LabelPlan) -> int:
    """Count the functions, without reading those of a folder."""
    if corpus.is_file():
        return sum(1 for split in plan.splits for _ in read_corpus(corpus, split))
    splits = read_card(corpus)["splits"]
    return sum(splits[name]["functions"] for name in SPLITS if name in plan.splits)


def _recipe(corpus: Path, made: LabelBench, total: int) -> dict[str, Any]:
    """Return all that labels depend on, as JSON reads it back."""
    # How many processes work changes no label.
    plan = {key: value for key, value in asdict(made.plan).items() if key != "jobs"}
    lists = [element.text for element in made.space.elements], [seed.text for seed in made.space.seeds()]
    searched = {"catalogue_and_coreset": content_hash(canonical_json(lists))[:12], **plan}
    recipe = {"llvm": made.bindings.version, "corpus": corpus.name, "corpus_functions": total, **searched}
    return json.loads(json.dumps(recipe))
