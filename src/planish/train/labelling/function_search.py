"""Search for the best pass list of one function."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from planish.core import (
    Candidate,
    Executor,
    Failed,
    Measured,
    Objective,
    Outcome,
    PlanishError,
    Searcher,
    StageClock,
    Trial,
    evaluate,
)
from planish.levels.llvm.backend import Backend, IRError, Module, PassError
from planish.levels.llvm.evaluator import fingerprint, reproduces
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.passes import PassSpace, candidate_of, passes_of, print_pipeline, vary
from planish.sandbox import Watchdog
from planish.search import Portfolio, RandomMinimise, Rounds, RoundSearcher
from planish.search.minimisation import minimise
from planish.search.proposals import Archive

Passes = tuple[str, ...]


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
        """Give the least cost, and the shortest of its lists: -Oz where it is as good; None if all failed."""
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


REFUSED, BY_LLVM, NO_CODE = "refused", "refused by LLVM", "no code is made of it"
INVALID, VARIES = "invalid IR", "not reproducible"
OWN = frozenset({REFUSED, BY_LLVM, NO_CODE, INVALID, VARIES})
"""What a pass list can be to blame for; any other failure is the machine's, or ours."""
Values = Mapping[str, float]


class FunctionEvaluator:
    """Evaluates pass lists on one function, prepared for size, in the process where it is made.

    A list whose code may vary from run to run is run again where it matters, and has failed where other code
    came of it.

    Args:
        backend: runs them.
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
        backend: Backend,
        ir: str,
        objectives: Sequence[str],
        matters: Callable[[Passes, Values], bool],
        watchdog: Watchdog,
    ) -> None:
        self._objectives, self._matters, self._watchdog = objectives, matters, watchdog
        self.module = backend.parse(for_size(ir))
        self._sizes: dict[bytes, int] = {}

    def close(self) -> None:
        """Free the function."""
        self.module.close()

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Run the passes on a clone, verify it, and count."""
        del clock  # nobody asks how long a stage took: nearly all of it is LLVM's
        passes = passes_of(candidate)
        pipeline = print_pipeline(passes)
        if not self._watchdog.enter(pipeline):
            return Failed("transform", REFUSED, "it has ended LLVM's process")
        module = self.module.clone()
        try:
            return self._transformed(module, passes, pipeline)
        except PassError as error:
            return Failed("transform", BY_LLVM, error.message)
        except IRError as error:
            return Failed("build", NO_CODE, error.message)
        finally:
            module.close()

    def _transformed(self, module: Module, passes: Passes, pipeline: str) -> Outcome:
        module.run(pipeline)
        if wrong := module.verify():
            return Failed("verify", INVALID, wrong)
        values = {name: float(self._count(module, name)) for name in self._objectives}
        doubtful = vary(passes) and self._matters(passes, values)
        if doubtful and not reproduces(self.module, module, pipeline):
            return Failed("verify", VARIES, f"{pipeline} gives other code from run to run")
        return Measured(values)

    def _count(self, module: Module, objective: str) -> int:
        if objective == "instructions":
            return module.instructions()
        # Compile what no list has made yet: four of five end in a text that is known.
        text = fingerprint(module)
        if text not in self._sizes:
            self._sizes[text] = module.text_bytes()
        return self._sizes[text]


class FunctionCosts:
    """Costs of pass lists on one function; each list is run once.

    Args:
        executor: runs them, in the order in which they are given.
        ranking: is told of each at once.
        objective: the name of what is counted.

    Attributes:
        unoptimised: what the function costs as it is.
    """

    def __init__(self, executor: Executor, ranking: Ranking, objective: str) -> None:
        self._executor, self.ranking, self._objective = executor, ranking, objective
        self.unoptimised = self.cost(())

    def cost(self, passes: Sequence[str]) -> int | None:
        """Return what the function costs after these passes; None where they fail or break it."""
        self.run([candidate_of(passes)])
        return self.ranking.costs[tuple(passes)]

    def run(self, candidates: Sequence[Candidate]) -> list[Trial]:
        """Run lists; gives a trial for each, in the same order."""
        names = [passes_of(candidate) for candidate in candidates]
        costs = self.ranking.costs
        new = {name: each for name, each in zip(names, candidates, strict=True) if name not in costs}
        for result in evaluate(self._executor, list(new.values())):
            self.ranking.add(passes_of(result.candidate), self._cost(result.outcome))
        return [self._trial(each, costs[name]) for name, each in zip(names, candidates, strict=True)]

    def _cost(self, outcome: Outcome) -> int | None:
        measured = charge(outcome)
        return int(measured.values[self._objective]) if measured else None

    def _trial(self, candidate: Candidate, cost: int | None) -> Trial:
        if cost is None:
            return Trial(candidate, Failed("transform", REFUSED))
        return Trial(candidate, Measured({self._objective: float(cost)}))


def charge(outcome: Outcome) -> Measured | None:
    """Return what was measured of a pass list; None where it is to blame for a failure.

    Raises:
        PlanishError: it could not be run.
    """
    if isinstance(outcome, Measured):
        return outcome
    if isinstance(outcome, Failed) and outcome.reason in OWN:
        return None
    # A full disk says nothing of the list, and what a shard lacks is never looked for again.
    raise PlanishError(f"a pass list could not be run: {outcome.reason}: {outcome.detail}")


def candidates_of(lists: Sequence[Passes]) -> tuple[Candidate, ...]:
    """Return lists as an executor takes them."""
    return tuple(map(candidate_of, lists))


_ASKED = 16


@dataclass(frozen=True)
class FunctionBudget:
    """When the search on a function ends.

    Args:
        evaluations: lists that are run, the minimisation at the end apart.
        seconds: of the processor, from the start of the search; with it, results depend on the machine.
        give_up: after so many evaluations the search ends if no list is better than -Oz; 0: never.
    """

    evaluations: int
    seconds: float = float("inf")
    give_up: int = 0

    def left(self, ranking: Ranking) -> int:
        """Count the lists that may still be run."""
        hopeless = self.give_up and not ranking.improved
        return min(self.evaluations, self.give_up if hopeless else self.evaluations) - ranking.evaluations


def search(
    costs: FunctionCosts,
    space: PassSpace,
    objective: Objective,
    budget: FunctionBudget,
    seed: int,
    searcher: str = "portfolio",
) -> None:
    """Search for lists that make one function small; their ranking keeps what was found.

    Args:
        costs: of lists on the function.
        space: where to search.
        objective: what is made less.
        budget: when to end.
        seed: of all randomness.
        searcher: "portfolio" (ours) or "random-minimise" (thesis 4.3.2).
    """
    objectives = (objective,)
    if searcher == "portfolio":
        made: Searcher = Portfolio(space, objectives, seed)
    else:
        made = RandomMinimise(space, objectives, seed, samples=budget.evaluations)
    drive(made, costs, budget)
    shorten(costs, space, objective)


def shorten(costs: FunctionCosts, space: PassSpace, objective: Objective) -> None:
    """Leave out of the best list what does not contribute."""
    best = costs.ranking.best()
    if best is not None:
        rounds = _shortened(space, candidate_of(best[1]))
        drive(RoundSearcher((objective,), rounds), costs, FunctionBudget(costs.ranking.evaluations + 1000))


def _shortened(space: PassSpace, best: Candidate) -> Rounds:
    ledger = Archive(space)
    yield from ledger.measure_new([best])
    yield from minimise(space, ledger, best)


def drive(searcher: Searcher, costs: FunctionCosts, budget: FunctionBudget) -> None:
    """Ask and tell until the budget or the search is at its end."""
    end = time.process_time() + budget.seconds
    while (left := budget.left(costs.ranking)) > 0 and time.process_time() < end:
        asked = searcher.ask(min(_ASKED, left))
        if not asked:
            return
        searcher.tell(costs.run(asked))
