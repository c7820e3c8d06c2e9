"""Plan of a labeling, its labels, and its progress."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from planish.core import Objective, PlanishError, TargetError, unknown, usable_cores
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import Bindings, IRError
from planish.levels.llvm.passes.pipeline import available
from planish.levels.llvm.passes.space import PassSpace, oz_of, pass_space
from planish.sandbox.fork_pool import Watchdog
from planish.train.corpus.shards import SPLITS, Row, arrow, read_table, write_table
from planish.train.labeling.function_search import FunctionCosts, FunctionExecutor, Passes, Ranking, Values
from planish.tuning.progress import Status
from planish.tuning.settings import Budget


@dataclass(frozen=True, slots=True)
class Label:
    """A function's best pass list.

    Args:
        identity: the function's, as in its corpus.
        package: where it is from.
        split: what it is for.
        unoptimized: what the function costs as it is, prepared for size; by the objective.
        baseline: what it costs after -Oz.
        best: what it costs after `passes`.
        other: what it costs after the best list that is not -Oz itself; it may be more than the baseline.
        passes: the shortest best list that was found; -Oz itself where nothing is better.
        found_by: "search" on this function, a list of others by "broadcast", or the "baseline".
        evaluations: how many lists were run.
        refused: the pipelines that ended LLVM's process on this function: a crash, an exit or a hang.
    """

    identity: str
    package: str
    split: str
    unoptimized: int
    baseline: int
    best: int
    other: int
    passes: tuple[str, ...]
    found_by: str
    evaluations: int
    refused: tuple[str, ...]

    @property
    def saved(self) -> int:
        """Return the savings of the list over -Oz; never negative, since -Oz is the fallback."""
        return self.baseline - self.best


LABELS = "labels"


def label_schema() -> Any:
    """Return the columns of a shard: the fields of `Label`."""
    pa = arrow()
    kinds: dict[str, Any] = {"int": pa.int32(), "str": pa.string(), "tuple[str, ...]": pa.list_(pa.string())}
    return pa.schema([(field.name, kinds[str(field.type)]) for field in fields(Label)])


def write_labels(labels: Sequence[Label], path: Path) -> None:
    """Write a shard such that it is there as a whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    columns = {field.name: [getattr(label, field.name) for label in labels] for field in fields(Label)}
    write_table(arrow().table(columns, schema=label_schema()), path)


def read_shard(path: Path) -> list[Label]:
    """Read one shard."""
    return [_label(row) for row in read_table(path).to_pylist()]


def read_labels(folder: Path | str) -> Iterator[Label]:
    """Read the labels of a corpus that `planish corpus label` made, in the corpus's order.

    Raises:
        PlanishError: there are none.
    """
    shards = sorted((Path(folder) / LABELS).glob("*.parquet"))
    if not shards:
        raise PlanishError(f"{folder} holds no labels", "Make them: planish corpus label CORPUS DIR.")
    for shard in shards:
        yield from read_shard(shard)


def _label(row: dict[str, Any]) -> Label:
    held: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in row.items()}
    return Label(**held)


OBJECTIVES = ("instructions", "text_bytes")
SEARCHERS = ("portfolio", "random-minimize")
_SEED_DIGITS = 12


@dataclass(frozen=True)
class LabelPlan:
    """Plan of labeling: objective, searcher, limits and seed.

    Args:
        objective: one of `OBJECTIVES`.
        evaluations: pass lists that are run on each function by its own search.
        give_up: lists after which the search ends if none is better than -Oz; 0: never. Only a search that
            begins with the coreset does so: of 406 functions that its first 20 lists left at -Oz, 100 more
            lists improved one, and took as long as the search on all others.
        lists: how many of all the best lists are then run on every function; 0: none.
        candidates: of how many of the best lists these are chosen; no more than `lists`: all of them are
            run, as in the thesis.
        sample: on how many training functions they are chosen.
        searcher: one of `SEARCHERS`.
        coreset: whether searches begin with the shipped coreset. One that is made to replace it must not
            rest on it: it may have seen functions that this corpus holds back.
        splits: what of the corpus is labeled.
        functions: about how many are, drawn by their identity; 0: all.
        seed: of all randomness.
        jobs: processes; 0: as many as there are cores.

    Raises:
        PlanishError: a name is unknown.
    """

    objective: str = "instructions"
    evaluations: int = 150
    give_up: int = 24
    lists: int = 40
    candidates: int = 200
    sample: int = 1000
    searcher: str = "portfolio"
    coreset: bool = True
    splits: tuple[str, ...] = SPLITS
    functions: int = 0
    seed: int = 0
    jobs: int = 0

    def __post_init__(self) -> None:
        for name, known in ((self.objective, OBJECTIVES), (self.searcher, SEARCHERS)):
            if name not in known:
                raise unknown("labels cannot be made by", name, known)
        for name in self.splits:
            if name not in SPLITS:
                raise unknown("unknown split", name, SPLITS)

    @property
    def budget(self) -> Budget:
        """Return the budget of the search on each function."""
        return Budget(trials=self.evaluations)

    @property
    def gives_up(self) -> int:
        """Return after how many lists a search ends if none is better than -Oz; 0: never."""
        return self.give_up if self.coreset and self.searcher == "portfolio" else 0

    @property
    def processes(self) -> int:
        """Processes side by side."""
        return self.jobs or usable_cores()


@dataclass(frozen=True)
class LabelBench:
    """Back end, space and baseline of labeling, made once before children are forked.

    Args:
        plan: how.
        bindings: of LLVM.
    """

    plan: LabelPlan
    bindings: Bindings

    def __reduce__(self) -> tuple[Callable[[LabelPlan, str], LabelBench], tuple[LabelPlan, str]]:
        """Pickle what it is made of: another machine opens its own LLVM."""
        return _bench_elsewhere, (self.plan, self.bindings.version)

    @cached_property
    def objective(self) -> Objective:
        """Return the objective that is minimized."""
        return Objective(self.plan.objective, exact=True)

    @cached_property
    def space(self) -> PassSpace:
        """Space of lists: with the thesis's even draws for its own searcher."""
        name = "passes" if self.plan.searcher == "portfolio" else "uniform"
        coreset = None if self.plan.coreset else ()
        return pass_space(name, available(self.bindings), self.plan.objective, coreset=coreset)

    @cached_property
    def baseline(self) -> tuple[str, ...]:
        """-Oz, by the name that this LLVM has for it."""
        oz = oz_of({element.text for element in self.space.elements})
        assert oz is not None
        return (oz,)

    @contextmanager
    def costing(self, row: Row, watchdog: Watchdog) -> Generator[FunctionCosts | None]:
        """Open what finds the costs of lists on a function, for the block; None where LLVM cannot read it."""
        ranking, objective = Ranking(self.baseline), self.plan.objective

        def matters(passes: Passes, values: Values) -> bool:
            return ranking.matters(passes, int(values[objective]))

        try:
            executor = FunctionExecutor(self.bindings, row.ir, [objective], matters, watchdog)
        except IRError:
            yield None
            return
        with closing(executor):
            yield FunctionCosts(executor, ranking, objective)

    def seed_of(self, row: Row) -> int:
        """Return a function's own seed: searches with different ones try more lists together."""
        return int(row.identity[:_SEED_DIGITS], 16) + self.plan.seed

    def at_once(self, evaluations: int) -> int:
        """Return how many functions a child does before it is replaced, since some back ends leak."""
        lifetime = self.bindings.lifetime
        return 32 if lifetime is None else max(1, lifetime // max(1, evaluations))


def bench(plan: LabelPlan) -> LabelBench:
    """Open the back end, and find what it runs before children are forked."""
    made = LabelBench(plan, open_bindings())
    _ = made.space, made.baseline
    return made


def _bench_elsewhere(plan: LabelPlan, version: str) -> LabelBench:
    """Open the back end on another machine; raises TargetError where its LLVM is another one."""
    made = bench(plan)
    if made.bindings.version != version:
        raise TargetError(f"it has LLVM {made.bindings.version}, and this machine {version}")
    return made


class LabelStatus(Status):
    """State of a stage of labeling.

    Args:
        stage: "searching", "choosing" lists, or "broadcasting" them; "costing" functions.
        total: functions of this stage.
        known: how many were done before.

    Attributes:
        saved: over -Oz so far.
        baseline: what the functions done cost after -Oz.
        refused: evaluations that ended LLVM's process.
    """

    def __init__(self, stage: str, total: int, known: int = 0) -> None:
        super().__init__("functions", total, known)
        self.stage = stage
        self.saved = self.baseline = self.refused = 0

    @property
    def detail(self) -> str:
        """Savings so far, and the number of times that LLVM's process ended."""
        crashes = f", {self.refused:,} crashes" if self.refused else ""
        return f"{self.saved / self.baseline if self.baseline else 0.0:.2%} under -Oz{crashes}"

    def know(self, items: int, labels: Iterable[Label]) -> None:
        """Count what was done before."""
        before = self.done
        for label in labels:
            self.add_label(label)
        self.done = before + items
        self.known += items

    def add_label(self, label: Label | None) -> None:
        """Count a function that is over; None where it has no label."""
        if label is None:
            self.done += 1
        else:
            self.add(label.saved, label.baseline, len(label.refused))

    def add(self, saved: int, baseline: int, refused: int) -> None:
        """Count a function that is over."""
        self.done += 1
        self.saved += saved
        self.baseline += baseline
        self.refused += refused
