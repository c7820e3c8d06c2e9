"""Search for the best pass list of one function."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple

from planish.core import (
    Candidate,
    Evaluation,
    Executor,
    Failed,
    Measured,
    Objective,
    Outcome,
    PlanishError,
    Searcher,
    SequentialExecutor,
    Trial,
    evaluate,
)
from planish.levels.llvm.bindings.protocol import Bindings, IRError, Module, PassError
from planish.levels.llvm.evaluator import fingerprint, reproduces
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.passes.catalogue import PassElement, vary
from planish.levels.llvm.passes.pipeline import candidate_of, passes_of, print_pipeline
from planish.levels.llvm.passes.space import PassSpace, pass_space
from planish.sandbox.fork_pool import Watchdog
from planish.search import Rounds, RoundSearcher
from planish.search.minimization import Portfolio, RandomMinimize, minimize
from planish.search.rounds import Archive
from planish.tuning.budget import SearchLimits
from planish.tuning.recorder import Recorder
from planish.tuning.search_loop import InFlight, PendingCandidates, SearchLoop
from planish.tuning.settings import Budget

Passes = tuple[str, ...]


def observed_space(
    bindings: Bindings, elements: Sequence[PassElement], baseline: Sequence[str], ir: str
) -> PassSpace:
    """Make the space of lists for one function, with its text after a baseline, which policies observe.

    Args:
        bindings: of LLVM.
        elements: passes of the lists.
        baseline: passes that make the text, which is made when a policy asks for it.
        ir: of the function.
    """

    def small() -> str:
        with closing(bindings.parse(for_size(ir))) as module:
            module.run(print_pipeline(baseline))
            return module.text()

    return pass_space("passes", elements, ir=ir, small=small)


class _Rank(NamedTuple):
    """A list among others: the least of these is the best."""

    cost: int
    other: bool
    length: int
    passes: Passes


class Ranking:
    """Ranks pass lists by what they cost.

    Args:
        baseline: -Oz as clang means it, on functions that are `minsize optsize`, as all of them are here.

    Attributes:
        costs: of the lists, in the order in which they were run; None where one fails or breaks the function.
    """

    def __init__(self, baseline: Passes) -> None:
        self.baseline = baseline
        self.costs: dict[Passes, int | None] = {}
        self._best: _Rank | None = None
        self._other: int | None = None

    @property
    def evaluations(self) -> int:
        """Return how many lists were run."""
        return len(self.costs)

    @property
    def improved(self) -> bool:
        """Return whether a list is better than -Oz."""
        return self._best is not None and self._best.other

    def best(self) -> tuple[int, Passes] | None:
        """Return the least cost and the shortest of its lists: -Oz where it is as good; None if all
        failed."""
        return self._best and (self._best.cost, self._best.passes)

    def other(self) -> int | None:
        """Return the least cost of the lists that are not -Oz itself; None if all failed."""
        return self._other

    def matters(self, passes: Passes, cost: int) -> bool:
        """Return whether a list would be the best one, or the best beside -Oz; of equals the first is."""
        return self._leads(passes, cost) or self._leads_others(passes, cost)

    def add(self, passes: Passes, cost: int | None) -> None:
        """Note what a list costs; none at all is the function as it is, which has no rank."""
        self.costs[passes] = cost
        if cost is None or not passes:
            return
        if self._leads(passes, cost):
            self._best = _Rank(cost, passes != self.baseline, len(passes), passes)
        if self._leads_others(passes, cost):
            self._other = cost

    def _leads(self, passes: Passes, cost: int) -> bool:
        # -Oz wins a tie, for it needs no list of its own; then the shorter list.
        return self._best is None or (cost, passes != self.baseline, len(passes)) < self._best[:3]

    def _leads_others(self, passes: Passes, cost: int) -> bool:
        return passes != self.baseline and (self._other is None or cost < self._other)


Values = Mapping[str, float]


class FunctionExecutor(SequentialExecutor):
    """Evaluates pass lists on one function, prepared for size, in the process where it is made.

    A list whose code may vary from run to run is run again where it matters, and has failed where other code
    came of it.

    Args:
        bindings: runs them.
        ir: the function, as a module of its own.
        objectives: what is counted: "instructions", "text_bytes" or both.
        matters: whether it matters what a list costs, such as where it would be the best one.
        watchdog: keeps from what ended LLVM before.

    Attributes:
        module: the function, prepared for size; it stays as it is.

    Raises:
        IRError: the IR cannot be read.
    """

    def __init__(
        self,
        bindings: Bindings,
        ir: str,
        objectives: Sequence[str],
        matters: Callable[[Passes, Values], bool],
        watchdog: Watchdog,
    ) -> None:
        super().__init__()
        self._objectives, self._matters, self._watchdog = objectives, matters, watchdog
        self.module = bindings.parse(for_size(ir))
        self._sizes: dict[bytes, int] = {}

    def close(self) -> None:
        """Free the function; harmless when called twice."""
        super().close()
        self.module.close()

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        """Run the passes on a clone, verify it, and count.

        Raises:
            PlanishError: it could not be run, which says nothing of the list: what a shard lacks is never
                looked for again.
        """
        try:
            return Evaluation(candidate, self._outcome(candidate))
        except Exception as error:
            raise PlanishError(f"a pass list could not be run: {error}") from error

    def _outcome(self, candidate: Candidate) -> Outcome:
        passes = passes_of(candidate)
        pipeline = print_pipeline(passes)
        if not self._watchdog.enter(pipeline):
            return Failed("transform", "refused", "it has ended LLVM's process")
        module = self.module.clone()
        try:
            return self._transformed(module, passes, pipeline)
        except PassError as error:
            return Failed("transform", "refused by LLVM", error.message)
        except IRError as error:
            return Failed("build", "no code is made of it", error.message)
        finally:
            module.close()

    def _transformed(self, module: Module, passes: Passes, pipeline: str) -> Outcome:
        module.run(pipeline)
        if wrong := module.verify():
            return Failed("verify", "invalid IR", wrong)
        values = {name: float(self._count(module, name)) for name in self._objectives}
        doubtful = vary(passes) and self._matters(passes, values)
        if doubtful and not reproduces(self.module, module, pipeline):
            return Failed("verify", "not reproducible", f"{pipeline} makes other code from run to run")
        return Measured(values)

    def _count(self, module: Module, objective: str) -> int:
        if objective == "instructions":
            return module.instructions()
        # Compile what no list has made yet: four of five end in a text that is known.
        text = fingerprint(module)
        if text not in self._sizes:
            self._sizes[text] = module.text_bytes()
        return self._sizes[text]


class FunctionCosts(Recorder):
    """Costs of pass lists on one function; each list is run once.

    Args:
        executor: runs them, in their order.
        ranking: ranks each list as soon as its cost is known.
        objective: the name of what is counted.

    Attributes:
        executor: the same.
        ranking: the same.
        unoptimized: what the function costs as it is.
    """

    def __init__(self, executor: Executor, ranking: Ranking, objective: str) -> None:
        self.executor, self.ranking, self._objective = executor, ranking, objective
        self.unoptimized = self.cost(())

    def cost(self, passes: Sequence[str]) -> int | None:
        """Return the cost of the function after these passes; None where they fail or break it."""
        self.run([candidate_of(passes)])
        return self.ranking.costs[tuple(passes)]

    def run(self, candidates: Iterable[Candidate]) -> None:
        """Run those of some lists that have not been run."""
        new = list({each.hash: each for each in candidates if not self.has(each)}.values())
        for evaluation in evaluate(self.executor, new):
            self.record(evaluation)

    def record(self, evaluation: Evaluation) -> Trial:
        """Rank a list by what was measured."""
        outcome = evaluation.outcome
        cost = int(outcome.values[self._objective]) if isinstance(outcome, Measured) else None
        self.ranking.add(passes_of(evaluation.candidate), cost)
        return self._trial(evaluation.candidate, cost)

    def has(self, candidate: Candidate) -> bool:
        """Return whether a list was run."""
        return passes_of(candidate) in self.ranking.costs

    def trial(self, candidate: Candidate) -> Trial | None:
        """Return the outcome of a list; None where it was not run."""
        if not self.has(candidate):
            return None
        return self._trial(candidate, self.ranking.costs[passes_of(candidate)])

    def _trial(self, candidate: Candidate, cost: int | None) -> Trial:
        if cost is None:
            return Trial(candidate, Failed("transform", "refused"))
        return Trial(candidate, Measured({self._objective: float(cost)}))


def candidates_of(lists: Sequence[Passes]) -> tuple[Candidate, ...]:
    """Return lists as an executor takes them."""
    return tuple(map(candidate_of, lists))


@dataclass
class FunctionLimits(SearchLimits):
    """Limits of the search on a function.

    Args:
        ranking: of the lists that were run.
        budget: counts lists, and seconds of the processor, with which results depend on the machine.
        give_up: lists after which the search ends if none is better than -Oz; 0: never.
        started: when, by the clock of this process's processor time.
    """

    ranking: Ranking
    budget: Budget
    give_up: int = 0
    started: float = field(default_factory=time.process_time)

    def trials_left(self) -> int | None:
        """Return how many more lists may be run; None: any number."""
        left, done = self.budget.trials_left(self.ranking.evaluations), self.ranking.evaluations
        if not self.give_up or self.ranking.improved:
            return left
        fewer = max(0, self.give_up - done)
        return fewer if left is None else min(left, fewer)

    def is_spent(self) -> bool:
        """Return whether the seconds are over."""
        return self.budget.seconds_left(self.started, time.process_time) <= 0


_SAMPLES = 1000
"""Samples before each minimization of a search without a limit of lists, as of the searcher by itself."""
_SHORTENING = 1000
"""Lists that the minimization at the end runs at most."""


def search(
    costs: FunctionCosts,
    space: PassSpace,
    objective: Objective,
    budget: Budget,
    seed: int,
    searcher: str = "portfolio",
    give_up: int = 0,
) -> None:
    """Search for lists that make one function small; their ranking keeps what was found.

    Args:
        costs: of lists on the function.
        space: where to search.
        objective: what is made less.
        budget: lists that are run, the minimization at the end apart, and seconds of the processor.
        seed: of all randomness.
        searcher: "portfolio" (ours) or "random-minimize" (thesis 4.3.2).
        give_up: lists after which the search ends if none is better than -Oz; 0: never.
    """
    objectives = (objective,)
    if searcher == "portfolio":
        made: Searcher = Portfolio(space, objectives, seed, policy="none")
    else:
        made = RandomMinimize(space, objectives, seed, samples=budget.trials or _SAMPLES)
    _search(made, costs, FunctionLimits(costs.ranking, budget, give_up))
    shorten(costs, space, objective)


def shorten(costs: FunctionCosts, space: PassSpace, objective: Objective) -> None:
    """Leave out of the best list what does not contribute."""
    best = costs.ranking.best()
    if best is not None:
        rounds = _shortened(space, candidate_of(best[1]))
        budget = Budget(trials=costs.ranking.evaluations + _SHORTENING)
        _search(RoundSearcher((objective,), rounds), costs, FunctionLimits(costs.ranking, budget))


def _shortened(space: PassSpace, best: Candidate) -> Rounds:
    archive = Archive(space)
    yield from archive.measure_new([best])
    yield from minimize(space, archive, best)


def _search(searcher: Searcher, costs: FunctionCosts, limits: FunctionLimits) -> None:
    SearchLoop(searcher, InFlight(costs.executor), PendingCandidates(costs), costs, limits).search()
