"""How a corpus is labelled, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property

from planish.core import Evaluator, Executor, Objective, unknown, usable_cores
from planish.corpus.labelling.evaluator import FunctionEvaluator, Values
from planish.corpus.labelling.function_costs import FunctionCosts
from planish.corpus.labelling.function_search import FunctionBudget
from planish.corpus.labelling.ranking import Passes, Ranking
from planish.corpus.row import SPLITS, Row
from planish.executors import InlineExecutor
from planish.llvm.backend import Backend, IRError, open_backend
from planish.llvm.passes import PassSpace, available, oz_of, pass_space
from planish.sandbox import Watchdog

OBJECTIVES = ("instructions", "text_bytes")
SEARCHERS = ("portfolio", "random-minimise")
_SEED_DIGITS = 12


@dataclass(frozen=True)
class LabelPlan:
    """How functions are labelled.

    Args:
        objective: one of `OBJECTIVES`.
        evaluations: pass lists that are run on each function by its own search.
        give_up: after so many the search ends if none is better than -Oz; 0: never. Only a search that
            begins with the coreset does so: of 406 functions that its first 20 lists left at -Oz, 100 more
            lists improved one, and took as long as the search on all others.
        lists: how many of all the best lists are then run on every function; 0: none.
        candidates: of how many of the best lists these are chosen; no more than `lists`: all of them are
            run, as in the thesis.
        sample: on how many training functions they are chosen.
        searcher: one of `SEARCHERS`.
        coreset: whether searches begin with the shipped coreset. One that is made to replace it must not
            rest on it: it may have seen functions that this corpus holds back.
        splits: what of the corpus is labelled.
        functions: about so many are, drawn by their identity; 0: all.
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
    def budget(self) -> FunctionBudget:
        """Of the search on each function."""
        informed = self.coreset and self.searcher == "portfolio"
        return FunctionBudget(self.evaluations, give_up=self.give_up if informed else 0)

    @property
    def processes(self) -> int:
        """Processes side by side."""
        return self.jobs or usable_cores()


@dataclass(frozen=True)
class LabelBench:
    """What all functions are labelled with; made once, before children are forked.

    Args:
        plan: how.
        backend: of LLVM.
        start: gives what evaluates in a child, beside LLVM.
    """

    plan: LabelPlan
    backend: Backend
    start: Callable[[Evaluator], Executor] = InlineExecutor

    @cached_property
    def objective(self) -> Objective:
        """What is made less."""
        return Objective(self.plan.objective, exact=True)

    @cached_property
    def space(self) -> PassSpace:
        """Where lists are searched: the thesis's even draws for its own searcher."""
        name = "passes" if self.plan.searcher == "portfolio" else "uniform"
        coreset = None if self.plan.coreset else ()
        return pass_space(name, available(self.backend), self.plan.objective, coreset=coreset)

    @cached_property
    def baseline(self) -> tuple[str, ...]:
        """-Oz, by the name that this LLVM has for it."""
        oz = oz_of({element.text for element in self.space.elements})
        assert oz is not None
        return (oz,)

    @contextmanager
    def costing(self, row: Row, watchdog: Watchdog) -> Generator[FunctionCosts | None]:
        """Give what finds the costs of lists on a function, for the block; None where LLVM cannot read it."""
        ranking, objective = Ranking(self.baseline), self.plan.objective

        def matters(passes: Passes, values: Values) -> bool:
            return ranking.matters(passes, int(values[objective]))

        try:
            evaluator = FunctionEvaluator(self.backend, row.ir, [objective], matters, watchdog)
        except IRError:
            yield None
            return
        with closing(evaluator), closing(self.start(evaluator)) as executor:
            yield FunctionCosts(executor, ranking, objective)

    def seed_of(self, row: Row) -> int:
        """Give a function's own seed: searches with different ones try more lists together."""
        return int(row.identity[:_SEED_DIGITS], 16) + self.plan.seed

    def at_once(self, evaluations: int) -> int:
        """How many functions a child does before it is replaced, since some back ends leak."""
        lifetime = self.backend.lifetime
        return 32 if lifetime is None else max(1, lifetime // max(1, evaluations))


def bench(plan: LabelPlan) -> LabelBench:
    """Open the back end, and find what it runs before children are forked."""
    made = LabelBench(plan, open_backend())
    _ = made.space, made.baseline
    return made


@dataclass(frozen=True)
class LabelProgress:
    """How far labelling is.

    Args:
        stage: "searching", "choosing" lists, or "broadcasting" them; "costing" functions.
        done: functions of this stage.
        total: of them.
        known: how many were done before.
        saved: over -Oz so far.
        baseline: what the functions done cost after -Oz.
        refused: evaluations that ended LLVM's process.
    """

    stage: str
    done: int
    total: int
    known: int
    saved: int
    baseline: int
    refused: int


Listener = Callable[[LabelProgress], None]
