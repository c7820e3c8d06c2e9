"""The costs of all lists on one function, within a forked child."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planish.core import Executor, Outcome, evaluate
from planish.corpus.labelling.evaluator import FunctionEvaluator, Values
from planish.corpus.labelling.function_costs import candidates_of, charge
from planish.corpus.labelling.label_plan import OBJECTIVES, LabelBench
from planish.corpus.labelling.ranking import Passes
from planish.corpus.row import Row
from planish.learn.cost_table import Columns, CostRow
from planish.learn.language.lexer import lexemes
from planish.llvm.backend import IRError, Module
from planish.llvm.ir.autophase import FEATURES, VERSION, autophase
from planish.llvm.passes import load_coreset, print_pipeline
from planish.sandbox import Watchdog


@dataclass(frozen=True)
class CostRows:
    """Runs lists on functions, within forked children, for what each of them costs.

    Args:
        bench: what with.
        lists: the lists.
        objectives: what is counted.
    """

    bench: LabelBench
    lists: Sequence[Passes]
    objectives: Sequence[str] = OBJECTIVES

    @cached_property
    def columns(self) -> Columns:
        """What columns mean in the rows that this gives."""
        llvm, machine = self.bench.backend.version, platform.machine()
        return Columns(llvm, machine, tuple(self.objectives), tuple(self.lists), FEATURES, VERSION)

    def __call__(self, row: Row, watchdog: Watchdog) -> CostRow | None:
        """Give a function's row; None where LLVM cannot read it, or it has no code even after -Oz."""
        baseline: dict[str, float] = {}

        def matters(_: Passes, values: Values) -> bool:
            return any(values[name] < cost for name, cost in baseline.items())

        try:
            evaluator = FunctionEvaluator(self.bench.backend, row.ir, self.objectives, matters, watchdog)
        except IRError:
            return None
        with closing(evaluator), closing(self.bench.start(evaluator)) as executor:
            first = _outcomes(executor, [(), self.bench.baseline])
            unoptimised, oz = map(self._counts, first)
            if unoptimised is None or oz is None:
                return None
            baseline |= dict(zip(self.objectives, oz, strict=True))
            costs = list(map(self._counts, _outcomes(executor, self.lists)))
            small = small_text(evaluator.module, self.bench.baseline)
        features = np.stack([autophase(row.ir), autophase(small)])
        names = row.identity, row.package, row.split
        return CostRow(*names, unoptimised, oz, costs, features, count_lexemes(row.ir, small))

    def _counts(self, outcome: Outcome) -> list[int] | None:
        measured = charge(outcome)
        return [int(measured.values[name]) for name in self.objectives] if measured else None


def small_text(module: Module, baseline: Passes) -> str:
    """Give a module's text after -Oz; the module stays as it is."""
    with closing(module.clone()) as small:
        small.run(print_pipeline(baseline))
        return small.text()


def count_lexemes(before: str, after: str) -> tuple[int, int]:
    """Count what a function is written with, before and after -Oz: a text's tokens are at least as many."""
    return len(lexemes(before)), len(lexemes(after))


def _outcomes(executor: Executor, lists: Sequence[Passes]) -> list[Outcome]:
    answers = sorted(evaluate(executor, candidates_of(lists)), key=lambda answer: answer.position)
    return [answer.outcome for answer in answers]


def coreset_lists(objectives: Sequence[str] = OBJECTIVES) -> list[Passes]:
    """Give the lists of the coresets of some objectives, each once."""
    return list(dict.fromkeys(passes for name in objectives for passes in load_coreset(name)))
