"""Search for smaller code of a module: its budget, and what it keeps of earlier searches.

The search is the engine's loop, without a store. Its budget is processor time, or a number of evaluations:
then the result is the same however loaded the machine is. What it measured is kept in the cache by the
module's content and the toolchain. A later search on the same module proposes the same, and resumes where
that one ended; one on another module makes no code of functions that it has in common with earlier ones.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from planish.cc.object_cache import ObjectCache, digest
from planish.cc.settings import ReadsFilesError, SearchError
from planish.core import (
    Candidate,
    Evaluation,
    Lost,
    Measured,
    Objective,
    Outcome,
    SearchContext,
    Trial,
    candidate_from_json,
)
from planish.core.disk_cache import DiskCache
from planish.core.process import processor_s
from planish.core.trial import outcome_from_json, outcome_to_json
from planish.levels.llvm.function_steps import FunctionPlan, plan_of
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.modules.evaluator import FunctionEvaluatorSpec, make_planned, only_group
from planish.levels.llvm.modules.space import FunctionSpace
from planish.levels.llvm.modules.transform import LAST, initial_pipeline, survived, whole_bindings
from planish.levels.llvm.source import reading_directive
from planish.measure.executors import ForkedExecutor
from planish.sandbox.fork_pool import Done, ForkLimits, ForkPool, Watchdog
from planish.search.parts import Parts
from planish.tuning.budget import SearchLimits
from planish.tuning.recorder import Recorder
from planish.tuning.search_loop import InFlight, PendingCandidates, SearchLoop

SIZE, FLASH = "text_bytes", "loaded_bytes"
"""Costs that a search minimizes: code, or code and unwind tables."""
_PATIENCE = 4.0
"""Wall-clock seconds allowed for a second of the processor."""
_LEAST_READINGS = 35.0
"""Multiple of the time to parse a module that the budget must have for the module to be searched."""
_LATE_S = 0.5
"""Wall-clock seconds that a measurement which has begun may take beyond the budget."""
_RESERVED = 0.4
"""Share of a whole build's time that is reserved for the last one, most of whose code is stored."""
_EVERY_S, _SHARE = 0.4, 0.1
"""Seconds, and share of the time, after which what was measured is stored again."""
_LIMITS = ForkLimits(memory_bytes=8 << 30, deaths=1)
_KIND, _FUNCTIONS = "searches", "functions"
_LOOK_S = 600.0
"""Longest single wait for a search: no operating system waits forever."""


@dataclass(frozen=True)
class SmallerModule:
    """Result of a search that was not compared with -Oz.

    Args:
        bitcode: the module; empty where it cannot be made otherwise than by -Oz.
        plan: the lists of its functions, and what is inlined; None where it cannot be made otherwise.
        evaluations: lists that were run on functions, counted for each function.
        seconds: that were spent on it by now; fewer than were asked for where load cut the search short.
        reading_directive: of assembly, by which the object may depend on more files; empty: there is none.
        cache_error: what is wrong with the cache; empty: nothing.
        options: of LLVM with which functions were measured.
    """

    bitcode: bytes = b""
    plan: FunctionPlan | None = None
    evaluations: int = 0
    seconds: float = 0.0
    reading_directive: str = ""
    cache_error: str = ""
    options: tuple[str, ...] = ()


def make_smaller(
    bitcode: bytes,
    seconds: float,
    evaluations: int | None,
    cache: ObjectCache,
    patience: float = _PATIENCE,
    cost: str = SIZE,
    options: tuple[str, ...] = (),
) -> SmallerModule:
    """Make the code of a module smaller, and leave it to the caller whether it is smaller than -Oz makes it.

    Args:
        bitcode: unoptimized, of functions that are `minsize optsize`: what
            `clang -Oz -Xclang -disable-llvm-passes -emit-llvm` writes.
        seconds: of the processor, to search; making the module is done even where that takes longer.
            Infinite: evaluations alone are the budget, and the result does not depend on the load.
        evaluations: lists that may be run on functions, counted for each function; None: no limit.
        cache: keeps what is measured.
        patience: wall-clock seconds allowed for a second of the processor.
        cost: SIZE or FLASH.
        options: of LLVM, with which functions are measured.

    Raises:
        IRError: the module is malformed.
        PassError: LLVM refuses what it did before.
        TargetError: no LLVM here can treat single functions.
    """
    used = processor_s()
    with closing(whole_bindings().parse(bitcode)) as module:
        reading, text = processor_s() - used, module.text()
    if directive := reading_directive(text):
        return SmallerModule(reading_directive=directive)
    made = partial(_made, bitcode, options)
    space, objective = FunctionSpace(text, cost), Objective(cost, "bytes", exact=True)
    if seconds <= _LEAST_READINGS * reading:
        return made(space.start(), 0, seconds)
    counted = None if seconds < inf else evaluations
    made_by = [part.encode() for part in (LlvmLevel.version, whole_bindings().version, cost, *options)]
    key = digest(*made_by, str(counted or 0).encode(), bitcode)
    trials = _Trials(cache, key, cost, is_counted=counted is not None)
    if trials.best and trials.is_enough(seconds, evaluations):
        return made(trials.best[1], 0, trials.seconds)
    context = SearchContext(seconds=seconds if counted is None else float(counted))
    searcher = Parts(space, (objective,), 0, context)
    folder = cache.folder_of(_FUNCTIONS, digest(*made_by))
    spec = FunctionEvaluatorSpec(bitcode, cost, DiskCache(Path(folder)) if folder else None, options)
    with ForkedExecutor(spec) as executor:
        budget = trials.budget = _ProcessorBudget(
            seconds, evaluations, executor, searcher, trials, used, patience
        )
        loop = SearchLoop(searcher, InFlight(executor), PendingCandidates(trials), trials, budget)
        loop.search()
        had = budget.had
        if trials.best is None:
            return SmallerModule(seconds=seconds)
        loop.conclude()
    if had < seconds:  # load may last: builds add up what they have
        had = min(trials.seconds + had, seconds)
    trials.keep(had, evaluations)
    return made(trials.best[1], trials.evaluations, had)


MakeSmaller = Callable[[bytes, float, int | None, ObjectCache], SmallerModule]


def search(
    bitcode: bytes,
    seconds: float,
    evaluations: int | None,
    cache: ObjectCache,
    patience_s: float,
    make: MakeSmaller = make_smaller,
) -> SmallerModule:
    """Search in a child: what crashes or hangs there costs the improvement alone.

    Args:
        bitcode, seconds, evaluations, cache: as `make_smaller` takes them.
        patience_s: seconds by the clock after which the child is killed.
        make: what the child does.

    Raises:
        SearchError: it crashes, or does not end.
        PlanishError: as `make_smaller`.
        ReadsFilesError: the object may depend on files that are not known.
    """

    def work(code: bytes, _: Watchdog) -> SmallerModule:
        return replace(make(code, seconds, evaluations, cache), cache_error=cache.error)

    over, deadline = list[Done[bytes, SmallerModule]](), time.monotonic() + patience_s
    with closing(ForkPool(work, SmallerModule, 1, limits=_LIMITS)) as pool:
        pool.add([bitcode])
        while not over and (left := deadline - time.monotonic()) > 0:
            over = list(pool.over(min(left, _LOOK_S)))
    if not over:
        raise SearchError(f"the search did not end within {patience_s:.0f} s")
    if (found := over[0].answer) is None:
        raise SearchError(f"the search died: {over[0].given_up and over[0].given_up.cause}")
    if found.reading_directive:
        raise ReadsFilesError(found.reading_directive)
    cache.error = cache.error or found.cache_error
    return found


def _made(
    bitcode: bytes, options: tuple[str, ...], candidate: Candidate, evaluations: int, seconds: float
) -> SmallerModule:
    plan = plan_of(candidate)
    make = partial(make_planned, bitcode, plan, initial_pipeline(whole_bindings()), LAST)
    return SmallerModule(survived(make, bytes), plan, evaluations, seconds, options=options)


@dataclass
class _ProcessorBudget(SearchLimits):
    """Seconds of the processor, so that other programs take none of them, and evaluations.

    A wait of several times as many seconds ends the search all the same.

    Args:
        seconds: that the search may take.
        evaluations: that it may make; None: any number.
        executor: what its workers use counts.
        searcher: reserves seconds for its conclusion.
        trials: so far.
        used_before: seconds of the processor that this process had used before.
        patience: wall-clock seconds allowed for a second of the processor.
    """

    seconds: float
    evaluations: int | None
    executor: ForkedExecutor
    searcher: Parts
    trials: _Trials
    used_before: float
    patience: float
    concluding: bool = False
    _excluded: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    @property
    def used(self) -> float:
        """Return the seconds of the processor by now."""
        return processor_s() - self.used_before + self.executor.processor_s() - self._excluded

    @property
    def _waited(self) -> float:
        return (time.monotonic() - self._began - self._excluded) / self.patience

    @property
    def _left(self) -> float:
        return self.seconds - max(self.used, self._waited)

    @property
    def had(self) -> float:
        """Return the seconds that it had, once it is over; load leaves fewer than `seconds`."""
        is_cut_short = self.is_spent() and self.used < self._waited and self.trials_left() != 0
        return min(self.used, self.seconds) if is_cut_short else self.seconds

    def trials_left(self) -> int | None:
        """Return 1 as long as evaluations are left: each is counted before another is proposed."""
        return None if self.evaluations is None else int(self.trials.evaluations < self.evaluations)

    def is_spent(self) -> bool:
        """Return whether nothing more is to be proposed; the first is measured however long it takes."""
        # What is under way then ends by itself, and takes about as long as what ended last.
        is_over = self._left <= _RESERVED * self.searcher.conclusion_s + self.trials.took
        return is_over and self.trials.best is not None and not self.concluding

    def deadline(self) -> float:
        """Return until when what is under way is waited for; what is first or last has all the time."""
        if self.concluding or self.trials.best is None:
            return inf
        return time.monotonic() + max(self._left, 0.0) + _LATE_S

    def exclude(self, seconds: float) -> None:
        """Exclude time that was spent on what was known before."""
        self._excluded += seconds


class _Trials(Recorder):
    """The trials of a search, and of earlier ones on the same module.

    Args:
        cache: where they are kept; errors are noted there.
        key: names the module, and the toolchain.
        cost: what is made less.
        is_counted: whether evaluations take the part of time, for a result that load cannot change.

    Attributes:
        seconds: that earlier searches had; 0: none came to its end.
        best: the least cost of a whole module, and how it is made; None: there is none. What is measured on
            some functions only says what is worth combining.
        evaluations: lists on functions that this search proposed; those of an interrupted one count again.
        took: seconds of the processor that its last trial took.
        budget: of this search.
    """

    budget: _ProcessorBudget

    def __init__(self, cache: ObjectCache, key: str, cost: str, *, is_counted: bool) -> None:
        self._cache, self._key, self._cost, self._is_counted = cache, key, cost, is_counted
        self.seconds, self.evaluations, self.took = 0.0, 0, 0.0
        self.best: tuple[float, Candidate] | None = None
        # Outcome and seconds of the processor by the candidate's hash.
        self._known: dict[str, tuple[dict[str, Any], float]] = {}
        self._lost: dict[str, Trial] = {}
        self._given: int | None = 0
        if data := cache.read(_KIND, key):
            self.seconds, self._given, total, steps, self._known = json.loads(zlib.decompress(data))
            self.best = total, candidate_from_json(steps, LlvmLevel().steps)
        self._resumed, self._replayed = frozenset(self._known), set[str]()
        self._used, self._next_s, self._functions = 0.0, _EVERY_S, 0

    def is_enough(self, seconds: float, evaluations: int | None) -> bool:
        """Return whether earlier searches had as much as another one has."""
        had = inf if self._given is None else self._given
        return self.seconds >= seconds and had >= (inf if evaluations is None else evaluations)

    def keep(self, seconds: float, evaluations: int | None) -> None:
        """Store the trials of searches that had this budget of seconds and evaluations together."""
        assert self.best
        steps = [step.to_json() for step in self.best[1].steps]
        data = json.dumps([seconds, evaluations, self.best[0], steps, self._known])
        self._cache.put(_KIND, self._key, zlib.compress(data.encode(), 1))

    @property
    def n_resumed(self) -> int:
        """Return how many outcomes are known from earlier searches."""
        return len(self._resumed)

    def assign_index(self, candidate: Candidate) -> None:
        """Count the lists of a candidate that is to be measured; what is combined has none that are new."""
        plan = plan_of(candidate)
        if only_group(plan) or (len(plan.lists) == 1 and self.best is not None):
            self.evaluations += self._lists_in(plan)

    def known(self, candidates: Sequence[Candidate]) -> Iterator[Trial]:
        """Return the trials of those that have an outcome; where evaluations are the budget, they count."""
        for candidate in candidates:
            if candidate.hash in self._resumed - self._replayed:
                self._replayed.add(candidate.hash)
                if self._is_counted:
                    self.assign_index(candidate)
                self._compare(candidate, outcome_from_json(self._known[candidate.hash][0]))
        return super().known(candidates)

    def _lists_in(self, plan: FunctionPlan) -> int:
        """Return how many lists a plan runs on functions: each of a whole module's has one."""
        group = only_group(plan)
        return len(group[1]) if group else self._functions

    def was_resumed(self, candidate: Candidate) -> bool:
        """Return whether a candidate's outcome is that of an earlier search."""
        return candidate.hash in self._resumed

    def trial(self, candidate: Candidate) -> Trial | None:
        """Return the outcome of a candidate; None where there is none."""
        if candidate.hash not in self._known:
            return self._lost.get(candidate.hash)
        outcome, took = self._known[candidate.hash]
        return Trial(candidate, outcome_from_json(outcome), seconds=self._seconds(candidate, took))

    def record(self, evaluation: Evaluation) -> Trial:
        """Keep an evaluation with the seconds of the processor that it took."""
        candidate, outcome, used = evaluation.candidate, evaluation.outcome, self.budget.used
        self.took, self._used = used - self._used, used
        if isinstance(outcome, Lost):
            trial = Trial(candidate, outcome, seconds=self._seconds(candidate, self.took))
            self._lost[candidate.hash] = trial
            return trial
        self._known[candidate.hash] = outcome_to_json(outcome), self.took
        self._compare(candidate, outcome)
        if self.best is not None and used > self._next_s:
            self._next_s = used + max(_EVERY_S, min(used, self.budget.seconds) * _SHARE)
            # As what no time was spent on: no search takes it for enough.
            self.keep(0.0, 0)
        return Trial(candidate, outcome, seconds=self._seconds(candidate, self.took))

    def _compare(self, candidate: Candidate, outcome: Outcome) -> None:
        """Keep a whole module that is the smallest so far."""
        if not isinstance(outcome, Measured) or only_group(plan_of(candidate)):
            return
        self._functions = self._functions or len(outcome.parts)
        total = outcome.values[self._cost]
        if self.best is None or total < self.best[0]:
            self.best = total, candidate

    def _seconds(self, candidate: Candidate, took: float) -> dict[str, float]:
        """Return the cost of a trial as its searcher sees it: seconds, or evaluations where these count."""
        return {"worker": float(self._lists_in(plan_of(candidate))) if self._is_counted else took}
