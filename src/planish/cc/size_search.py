"""Search for smaller code of a module: the engine's loop, in a budget of processor time, without a store.

What a search measured is kept in the cache by the module's content and the toolchain, whatever file it was
compiled from. A later search on the same module proposes the same, and goes on where that one ended.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
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
    PlanishError,
    SearchContext,
    Trial,
    candidate_from_json,
)
from planish.core.process import processor_s
from planish.core.trial import outcome_from_json, outcome_to_json
from planish.executors import ForkedExecutor
from planish.levels.llvm.function_steps import FunctionPlan, plan_of
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.modules.evaluator import FunctionEvaluatorSpec, only_group
from planish.levels.llvm.modules.space import FunctionSpace
from planish.levels.llvm.modules.transform import CHILD_LIMITS, whole_backend
from planish.levels.llvm.passes import parse_pipeline
from planish.levels.llvm.source import reading_directive
from planish.sandbox import ExitStatus, in_child
from planish.sandbox.child import ForkedChild, Send, wait
from planish.sandbox.plain_data import DataError, dumps, loads
from planish.search import Parts
from planish.tuning.budget import SearchLimits
from planish.tuning.in_flight import InFlight, Pending
from planish.tuning.recorder import Recorder
from planish.tuning.search_loop import SearchLoop

_OBJECTIVE = Objective("text_bytes", "bytes", exact=True)
_PATIENCE = 4.0
"""Seconds by the clock that one of the processor may take."""
_LEAST_READINGS = 35.0
"""How often the time for reading a module there must be for it to be measured at all."""
_LATE_S = 0.5
"""Seconds by the clock beyond the budget that what is under way may take."""
_EVERY_S, _SHARE = 0.4, 0.1
"""What was measured so far is kept after so many seconds again, and such a share of the time."""
_MEMORY_BYTES = 8 << 30
_KIND = "searches"


@dataclass(frozen=True)
class SmallerModule:
    """Result of a search that was not compared with -Oz.

    Args:
        bitcode: the module; empty where it cannot be made otherwise than by -Oz.
        passes: function to the list that it has of its own.
        evaluations: lists that were run on functions.
        seconds: that were spent on it by now; fewer than were asked for where load cut the search short.
        cache_error: what is wrong with the cache; empty: nothing.
    """

    bitcode: bytes = b""
    passes: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    evaluations: int = 0
    seconds: float = 0.0
    cache_error: str = ""


@dataclass(frozen=True)
class _Problem:
    """Why there is no result: a directive of assembly that may read files, or an error."""

    directive: str = ""
    error: str = ""


_ANSWER = SmallerModule | _Problem


def search(
    bitcode: bytes,
    seconds: float,
    evaluations: int | None,
    cache: ObjectCache,
    scratch: Path,
    patience_s: float,
) -> SmallerModule:
    """Search in a child: what crashes or hangs there costs the improvement alone.

    Args:
        bitcode, seconds, evaluations, cache: as `make_smaller` takes them.
        scratch: where the child's temporary files go.
        patience_s: after which the child is killed.

    Raises:
        SearchError: it fails, crashes, or does not end.
        ReadsFilesError: the object may depend on files that are not known.
    """

    def work(send: Send) -> None:
        try:
            found: SmallerModule | _Problem = make_smaller(bitcode, seconds, evaluations, cache)
            found = replace(found, cache_error=cache.error)
        except ReadsFilesError as error:
            found = _Problem(error.directive)
        except PlanishError as error:
            found = _Problem(error=str(error))
        send(dumps(found, _ANSWER))

    child = ForkedChild(work, _MEMORY_BYTES, scratch)
    try:
        answer = _answer(child, patience_s)
    except (SearchError, KeyboardInterrupt):
        child.kill()
        raise
    end = child.end()
    match answer:
        case SmallerModule():
            return answer
        case _Problem(directive) if directive:
            raise ReadsFilesError(directive)
        case _Problem(_, error):
            raise SearchError(error)
        case None:
            raise SearchError(f"the search died: {end.cause}")


def _answer(child: ForkedChild, seconds: float) -> SmallerModule | _Problem | None:
    """Wait for a child's answer; None where it dies, or sends something else.

    Raises:
        SearchError: it does not come in time.
    """
    deadline = time.monotonic() + seconds
    with suppress(EOFError):
        while wait(child.ends, max(0.0, deadline - time.monotonic())):
            for message in child.receive():
                try:
                    return loads(message, _ANSWER)
                except DataError as error:
                    child.reject(error)
        raise SearchError(f"the search did not end within {seconds:.0f} s")
    return None


def make_smaller(
    bitcode: bytes, seconds: float, evaluations: int | None, cache: ObjectCache
) -> SmallerModule:
    """Make the code of a module smaller, and leave it to the caller whether it is smaller than -Oz makes it.

    Args:
        bitcode: unoptimised, of functions that are `minsize optsize`: what
            `clang -Oz -Xclang -disable-llvm-passes -emit-llvm` writes.
        seconds: of the processor, to search; making the module is done even where that takes longer.
        evaluations: lists that may be run on functions, counted for each function; None: no limit.
        cache: keeps what is measured.

    Raises:
        ReadsFilesError: the module's assembly may read files.
        IRError: the module is malformed.
        TargetError: no LLVM here can treat single functions.
    """
    began = processor_s()
    with closing(whole_backend().parse(bitcode)) as module:
        reading, text = processor_s() - began, module.text()
    if directive := reading_directive(text):
        raise ReadsFilesError(directive)
    space = FunctionSpace(text, _OBJECTIVE.name)
    if seconds <= _LEAST_READINGS * reading:
        return _made(bitcode, space.start(), 0, seconds)
    memory = _Memory(cache, digest(LlvmLevel.version.encode(), whole_backend().version.encode(), bitcode))
    if memory.best and memory.is_enough(seconds, evaluations):
        return _made(bitcode, memory.best[1], 0, memory.seconds)
    trials, had = _search(space, bitcode, seconds, evaluations, memory)
    if trials.best is None:
        return SmallerModule(seconds=seconds)
    if had < seconds:  # load may last: builds add up what they have
        had = min(memory.seconds + had, seconds)
    memory.keep(trials.best, had, evaluations)
    return _made(bitcode, trials.best[1], trials.evaluations, had)


def _search(
    space: FunctionSpace, bitcode: bytes, seconds: float, evaluations: int | None, memory: _Memory
) -> tuple[_Trials, float]:
    """Return what was measured, and the seconds that the search had."""
    spec = FunctionEvaluatorSpec(bitcode, _OBJECTIVE.name)
    searcher = Parts(space, (_OBJECTIVE,), 0, SearchContext(seconds=seconds))
    with ForkedExecutor(spec) as executor:
        budget = _ProcessorBudget(seconds, evaluations, executor.processor_s)
        trials = budget.trials = _Trials(memory, budget)
        budget.reserve = lambda: searcher.conclusion_s
        loop = SearchLoop(searcher, InFlight(executor), Pending(trials), trials, budget)
        loop.search()
        had = budget.had
        if trials.best is not None:
            loop.conclude()
    return trials, had


def _made(bitcode: bytes, candidate: Candidate, evaluations: int, seconds: float) -> SmallerModule:
    plan = plan_of(candidate)
    made = in_child(partial(_bitcode, bitcode, plan), bytes, CHILD_LIMITS)
    if isinstance(made, ExitStatus):
        return SmallerModule(seconds=seconds)
    passes = {name: parse_pipeline(pipeline) for pipeline, names in plan.lists for name in names}
    return SmallerModule(made, passes, evaluations, seconds)


def _bitcode(bitcode: bytes, plan: FunctionPlan) -> bytes:
    with closing(FunctionEvaluatorSpec(bitcode, _OBJECTIVE.name)().made(plan)) as module:
        return module.bitcode()


@dataclass
class _ProcessorBudget(SearchLimits):
    """Seconds of the processor, so that other programs that run beside take none of them, and evaluations.

    A wait of several times as many seconds ends the search all the same.

    Args:
        seconds: that the search may take.
        evaluations: that it may make; None: any number.
        under_way: returns what workers have used that still run.

    Attributes:
        trials: so far.
        reserve: returns the seconds that are reserved for the conclusion of the search.
    """

    seconds: float
    evaluations: int | None
    under_way: Callable[[], float]
    reserve: Callable[[], float] = float
    concluding: bool = False
    trials: _Trials = field(init=False)
    _excluded: float = 0.0
    _began: float = field(default_factory=time.monotonic)
    _processor: float = field(default_factory=processor_s)

    @property
    def used(self) -> float:
        """Return the seconds of the processor by now."""
        return processor_s() - self._processor + self.under_way() - self._excluded

    @property
    def _waited(self) -> float:
        return (time.monotonic() - self._began - self._excluded) / _PATIENCE

    @property
    def _left(self) -> float:
        return self.seconds - max(self.used, self._waited)

    @property
    def had(self) -> float:
        """Return the seconds that it had, once it is over; load leaves fewer than `seconds`."""
        used, is_cut_short = self.used, self._waited > max(self.used, self.seconds - self.reserve())
        return min(used, self.seconds) if is_cut_short and self.trials_left() != 0 else self.seconds

    def trials_left(self) -> int | None:
        """Return 1 as long as evaluations are left: each is counted before another is proposed."""
        return None if self.evaluations is None else int(self.trials.evaluations < self.evaluations)

    def is_spent(self) -> bool:
        """Return whether nothing more is to be proposed; the first is measured however long it takes."""
        is_over = self._left <= self.reserve()
        return is_over and self.trials.best is not None and not self.concluding

    def deadline(self) -> float:
        """Return until when what is under way is waited for; what is first or last has all the time."""
        if self.concluding or self.trials.best is None:
            return inf
        return time.monotonic() + max(self._left, 0.0) + _LATE_S

    def exclude(self, seconds: float) -> None:
        """Exclude time that was spent on what was known before."""
        self._excluded += seconds


class _Memory:
    """Searches on a module that were made before.

    Args:
        cache: where they are kept; errors are noted there.
        key: names the module, and the toolchain.

    Attributes:
        seconds: that they had; 0: none that came to its end.
        best: the cost of the best module that they made, and how it is made; None: there is none.
        known: hash of a candidate to its outcome, and the seconds that it took.
    """

    def __init__(self, cache: ObjectCache, key: str) -> None:
        self._cache, self._key = cache, key
        self.seconds, self._evaluations = 0.0, 0
        self.best: tuple[float, Candidate] | None = None
        self.known: dict[str, tuple[dict[str, Any], float]] = {}
        if data := cache.read(_KIND, key):
            self._read(data)

    def is_enough(self, seconds: float, evaluations: int | None) -> bool:
        """Return whether they had as much as another search has."""
        had = inf if self._evaluations is None else self._evaluations
        return self.seconds >= seconds and had >= (inf if evaluations is None else evaluations)

    def keep(self, best: tuple[float, Candidate], seconds: float, evaluations: int | None) -> None:
        """Keep what was measured, and by a search of how many seconds and evaluations."""
        total, candidate = best
        steps = [step.to_json() for step in candidate.steps]
        data = zlib.compress(json.dumps([seconds, evaluations, total, steps, self.known]).encode(), 1)
        self._cache.put_plain(_KIND, self._key, digest(data).encode() + b"\n" + data)

    def _read(self, data: bytes) -> None:
        check, _, packed = data.partition(b"\n")
        if digest(packed).encode() != check:
            return
        self.seconds, self._evaluations, total, steps, self.known = json.loads(zlib.decompress(packed))
        self.best = total, candidate_from_json(steps, LlvmLevel().steps)


class _Trials(Recorder):
    """The trials of a search, in memory.

    Args:
        memory: has those of earlier searches, and is given what is measured now and then.
        budget: of the search.

    Attributes:
        best: the least cost of a whole module, and how it is made. What is measured on some functions only
            says what is worth combining.
        evaluations: lists that were run on functions.
    """

    def __init__(self, memory: _Memory, budget: _ProcessorBudget) -> None:
        self._memory, self._budget = memory, budget
        self._resumed = frozenset(memory.known)
        self._lost: dict[str, Trial] = {}
        self._used, self._next_s = 0.0, _EVERY_S
        self.best = memory.best
        self.evaluations = 0

    @property
    def n_resumed(self) -> int:
        """Return how many outcomes are known from earlier searches."""
        return len(self._resumed)

    def assign_index(self, candidate: Candidate) -> None:
        """Count the lists of a candidate that is to be measured; what is combined has none that are new."""
        plan = plan_of(candidate)
        if group := only_group(plan):
            self.evaluations += len(group[1])
        elif len(plan.lists) == 1 and self.best is not None:
            self.evaluations += 1

    def has(self, candidate: Candidate) -> bool:
        """Return whether a candidate has an outcome."""
        return candidate.hash in self._memory.known or candidate.hash in self._lost

    def was_resumed(self, candidate: Candidate) -> bool:
        """Return whether a candidate's outcome is that of an earlier search."""
        return candidate.hash in self._resumed

    def known(self, candidates: Sequence[Candidate]) -> Iterator[Trial]:
        """Return the trials of those that have an outcome."""
        return (trial for each in candidates if (trial := self.trial(each)) is not None)

    def trial(self, candidate: Candidate) -> Trial | None:
        """Return what became of a candidate; None where nothing did."""
        if candidate.hash not in self._memory.known:
            return self._lost.get(candidate.hash)
        outcome, seconds = self._memory.known[candidate.hash]
        return Trial(candidate, outcome_from_json(outcome), seconds={"worker": seconds})

    def record(self, evaluation: Evaluation) -> Trial:
        """Keep an evaluation with the seconds of the processor that it took."""
        candidate, outcome, used = evaluation.candidate, evaluation.outcome, self._budget.used
        trial = Trial(candidate, outcome, seconds={"worker": used - self._used})
        self._used = used
        if isinstance(outcome, Lost):
            self._lost[candidate.hash] = trial
            return trial
        self._memory.known[candidate.hash] = outcome_to_json(outcome), trial.seconds["worker"]
        if isinstance(outcome, Measured) and only_group(plan_of(candidate)) is None:
            total = outcome.values[_OBJECTIVE.name]
            if self.best is None or total < self.best[0]:
                self.best = total, candidate
        if self.best is not None and used > self._next_s:
            self._next_s = used + max(_EVERY_S, self._budget.seconds * _SHARE)
            # As what no time was spent on: no search takes it for enough.
            self._memory.keep(self.best, 0.0, 0)
        return trial
