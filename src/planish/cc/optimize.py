"""Objects that are smaller than clang's: the search for one, its comparison with clang's, and its report.

The search is the engine's loop, in a budget of processor time, without a store. What it measured is kept in
the cache by the module's content and the toolchain. A later search on the same module proposes the same, and
resumes where that one ended.
"""

from __future__ import annotations

import json
import os
import re
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from planish.cc.arguments import code_options
from planish.cc.clang import CODE_ONLY, Compiler, Unit, run
from planish.cc.job import CompileJob
from planish.cc.object_cache import CachedObject, ObjectCache, atomic_write, digest
from planish.cc.reporting import sizes
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
from planish.levels.llvm.bindings.elf import code_bytes, function_bytes, loaded_bytes
from planish.levels.llvm.function_steps import plan_of
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.modules.evaluator import FunctionEvaluatorSpec, only_group
from planish.levels.llvm.modules.space import FunctionSpace
from planish.levels.llvm.modules.transform import survived, whole_bindings
from planish.levels.llvm.passes.pipeline import parse_pipeline
from planish.levels.llvm.source import reading_directive
from planish.measure.executors import ForkedExecutor
from planish.sandbox.fork_pool import Done, ForkLimits, ForkPool, Watchdog
from planish.sandbox.scratch import Scratch
from planish.search.parts import Parts
from planish.tuning.budget import SearchLimits
from planish.tuning.recorder import Recorder
from planish.tuning.search_loop import InFlight, Pending, SearchLoop

_OBJECTIVE = Objective("text_bytes", "bytes", exact=True)
_PATIENCE = 4.0
"""Seconds by the clock that one of the processor may take."""
_LEAST_READINGS = 35.0
"""How often the time for reading a module there must be for it to be measured at all."""
_LATE_S = 0.5
"""Seconds by the clock beyond the budget that what is under way may take."""
_RESERVED = 0.4
"""Share of a whole module's time that its end takes: it is begun already, and most of its code is known."""
_EVERY_S, _SHARE = 0.4, 0.1
"""What was measured so far is kept after so many seconds again, and such a share of the time."""
_LIMITS = ForkLimits(memory_bytes=8 << 30, deaths=1)
_KIND, _VERSIONS = "searches", "versions"


@dataclass(frozen=True)
class SmallerModule:
    """Result of a search that was not compared with -Oz.

    Args:
        bitcode: the module; empty where it cannot be made otherwise than by -Oz.
        passes: function to the list that it has of its own.
        evaluations: lists that were run on functions.
        seconds: that were spent on it by now; fewer than were asked for where load cut the search short.
        reading_directive: of assembly, by which the object may depend on more files; empty: there is none.
        cache_error: what is wrong with the cache; empty: nothing.
    """

    bitcode: bytes = b""
    passes: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    evaluations: int = 0
    seconds: float = 0.0
    reading_directive: str = ""
    cache_error: str = ""


def make_smaller(
    bitcode: bytes,
    seconds: float,
    evaluations: int | None,
    cache: ObjectCache,
    patience: float = _PATIENCE,
) -> SmallerModule:
    """Make the code of a module smaller, and leave it to the caller whether it is smaller than -Oz makes it.

    Args:
        bitcode: unoptimized, of functions that are `minsize optsize`: what
            `clang -Oz -Xclang -disable-llvm-passes -emit-llvm` writes.
        seconds: of the processor, to search; making the module is done even where that takes longer.
        evaluations: lists that may be run on functions, counted for each function; None: no limit.
        cache: keeps what is measured.
        patience: seconds by the clock that one of the processor may take.

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
    space = FunctionSpace(text, _OBJECTIVE.name)
    if seconds <= _LEAST_READINGS * reading:
        return _made(bitcode, space.start(), 0, seconds)
    trials = _Trials(cache, digest(LlvmLevel.version.encode(), whole_bindings().version.encode(), bitcode))
    if trials.best and trials.is_enough(seconds, evaluations):
        return _made(bitcode, trials.best[1], 0, trials.seconds)
    searcher = Parts(space, (_OBJECTIVE,), 0, SearchContext(seconds=seconds))
    with ForkedExecutor(FunctionEvaluatorSpec(bitcode, _OBJECTIVE.name)) as executor:
        budget = trials.budget = _ProcessorBudget(
            seconds, evaluations, executor, searcher, trials, used, patience
        )
        loop = SearchLoop(searcher, InFlight(executor), Pending(trials), trials, budget)
        loop.search()
        had = budget.had
        if trials.best is None:
            return SmallerModule(seconds=seconds)
        loop.conclude()
    if had < seconds:  # load may last: builds add up what they have
        had = min(trials.seconds + had, seconds)
    trials.keep(had, evaluations)
    return _made(bitcode, trials.best[1], trials.evaluations, had)


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
            over = list(pool.over(left))
    if not over:
        raise SearchError(f"the search did not end within {patience_s:.0f} s")
    if (found := over[0].answer) is None:
        raise SearchError(f"the search died: {over[0].given_up and over[0].given_up.cause}")
    if found.reading_directive:
        raise ReadsFilesError(found.reading_directive)
    cache.error = cache.error or found.cache_error
    return found


def _made(bitcode: bytes, candidate: Candidate, evaluations: int, seconds: float) -> SmallerModule:
    plan = plan_of(candidate)

    def make() -> bytes:
        with closing(FunctionEvaluatorSpec(bitcode, _OBJECTIVE.name)().made(plan)) as module:
            return module.bitcode()

    passes = {name: parse_pipeline(pipeline) for pipeline, names in plan.lists for name in names}
    return SmallerModule(survived(make, bytes), passes, evaluations, seconds)


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
        patience: seconds by the clock that one of the processor may take.
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

    Attributes:
        seconds: that earlier searches had; 0: none came to its end.
        best: the least cost of a whole module, and how it is made; None: there is none. What is measured on
            some functions only says what is worth combining.
        evaluations: lists that this search ran on functions.
        took: seconds of the processor that its last trial took.
        budget: of this search.
    """

    budget: _ProcessorBudget

    def __init__(self, cache: ObjectCache, key: str) -> None:
        self._cache, self._key = cache, key
        self.seconds, self.evaluations, self.took = 0.0, 0, 0.0
        self.best: tuple[float, Candidate] | None = None
        # Outcome and seconds of the processor by the candidate's hash.
        self._known: dict[str, tuple[dict[str, Any], float]] = {}
        self._lost: dict[str, Trial] = {}
        self._given: int | None = 0
        if data := cache.read(_KIND, key):
            self.seconds, self._given, total, steps, self._known = json.loads(zlib.decompress(data))
            self.best = total, candidate_from_json(steps, LlvmLevel().steps)
        self._resumed = frozenset(self._known)
        self._used, self._next_s = 0.0, _EVERY_S

    def is_enough(self, seconds: float, evaluations: int | None) -> bool:
        """Return whether earlier searches had as much as another one has."""
        had = inf if self._given is None else self._given
        return self.seconds >= seconds and had >= (inf if evaluations is None else evaluations)

    def keep(self, seconds: float, evaluations: int | None) -> None:
        """Keep the trials of searches that had so many seconds and evaluations together."""
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
        if group := only_group(plan):
            self.evaluations += len(group[1])
        elif len(plan.lists) == 1 and self.best is not None:
            self.evaluations += 1

    def was_resumed(self, candidate: Candidate) -> bool:
        """Return whether a candidate's outcome is that of an earlier search."""
        return candidate.hash in self._resumed

    def trial(self, candidate: Candidate) -> Trial | None:
        """Return what became of a candidate; None where nothing did."""
        if candidate.hash not in self._known:
            return self._lost.get(candidate.hash)
        outcome, seconds = self._known[candidate.hash]
        return Trial(candidate, outcome_from_json(outcome), seconds={"worker": seconds})

    def record(self, evaluation: Evaluation) -> Trial:
        """Keep an evaluation with the seconds of the processor that it took."""
        candidate, outcome, used = evaluation.candidate, evaluation.outcome, self.budget.used
        self.took, self._used = used - self._used, used
        trial = Trial(candidate, outcome, seconds={"worker": self.took})
        if isinstance(outcome, Lost):
            self._lost[candidate.hash] = trial
            return trial
        self._known[candidate.hash] = outcome_to_json(outcome), self.took
        if isinstance(outcome, Measured) and only_group(plan_of(candidate)) is None:
            total = outcome.values[_OBJECTIVE.name]
            if self.best is None or total < self.best[0]:
                self.best = total, candidate
        if self.best is not None and used > self._next_s:
            self._next_s = used + max(_EVERY_S, self.budget.seconds * _SHARE)
            # As what no time was spent on: no search takes it for enough.
            self.keep(0.0, 0)
        return trial


_CLANG_TIMES, _PATIENCE_S = 20.0, 30.0
"""The search is killed after so many times what clang takes, and so many seconds, beyond its own time."""
_SLOWEST = 6.0
"""How many seconds by the clock one of the search may take, in all."""


def check_version(compiler: Compiler, cache: ObjectCache) -> None:
    """Check that clang is of the LLVM that searches.

    Args:
        compiler: whose installation is known.
        cache: keeps its version, since to ask takes a start of clang.

    Raises:
        SearchError: it is not.
    """
    key = digest(compiler.identity.encode())
    if (reported := cache.read(_VERSIONS, key)) is None:
        reported = run([*compiler.command, "--version"]).written
        cache.put(_VERSIONS, key, reported)
    found = re.search(rb"clang version (\d+)\.", reported)
    theirs, ours = found[1].decode() if found else "an unknown version", whole_bindings().version
    if theirs != ours.partition(".")[0]:
        raise SearchError(f"{compiler.path} is of LLVM {theirs}, and the search uses LLVM {ours}")


def improve(job: CompileJob, make: MakeSmaller = make_smaller) -> CachedObject | None:
    """Search for a smaller object, and leave it where clang's is.

    Args:
        job: clang has made its object, and the bitcode.
        make: the search, as `make_smaller`.

    Returns:
        What is to be kept; None where the search failed, and clang's object stays.

    Raises:
        ReadsFilesError: the object may depend on files that are not known.
        UsageError: the search failed, and must not (--planish-strict).
    """
    began, evaluations = monotonic(), job.settings.evaluations
    try:
        check_version(job.unit.compiler, job.cache)
        own = Path(job.unit.output).read_bytes()
        patience_s = job.settings.seconds * _SLOWEST + job.clang_s * _CLANG_TIMES + _PATIENCE_S
        found = search(job.bitcode, job.settings.seconds, evaluations or None, job.cache, patience_s, make)
        best, passes = _best(job.unit, own, found)
        if best != own:
            atomic_write(job.unit.output, best)
    except (SearchError, PlanishError, OSError) as error:
        job.settings.fall_back(f"{job.unit.source}: {error}", job.unit.output)
        return None
    times = {"clang_s": round(job.clang_s, 3), "search_s": round(monotonic() - began, 3)}
    about = json.dumps({**sizes(own, best, passes), "evaluations": found.evaluations, **times}).encode()
    return CachedObject(found.seconds, evaluations, about, best, has_diagnostics=job.has_diagnostics)


def _best(unit: Unit, own: bytes, found: SmallerModule) -> tuple[bytes, Mapping[str, tuple[str, ...]]]:
    """Return the smallest object, and the lists that its functions have of their own."""
    best, passes = own, dict[str, tuple[str, ...]]()
    with Scratch() as scratch:
        if found.bitcode:
            made = code_of(unit.compiler, code_options(unit.options), found.bitcode, scratch)
            if _is_smaller(made, own):
                best, passes = made, {**found.passes}
        other = _of_less_effort(unit, scratch)
        if other and _is_smaller(other, best):
            best, passes = other, dict.fromkeys(function_bytes(other), ("-Os",))
    return best, passes


def _is_smaller(made: bytes, other: bytes) -> bool:
    """Return whether an object has less code or data than another, and more of neither."""
    after, before = ((code_bytes(each), loaded_bytes(each)) for each in (made, other))
    # Smaller code with more data is no gain.
    return after[0] <= before[0] and after[1] <= before[1] and after != before


def _of_less_effort(unit: Unit, scratch: Scratch) -> bytes:
    """Make the object by -Os: -Oz leaves loops as they are written, which may take more code; empty: none."""
    if [word for word in unit.options if word.startswith("-O")][-1:] != ["-Oz"]:
        return b""
    path = scratch.path / "other.o"
    elsewhere = ["-MF", os.devnull] if unit.dependency_file else []
    words = [*unit.options, "-Os", *elsewhere, "-w", "-Qunused-arguments", "-c", "-o", str(path)]
    return b"" if run([*unit.compiler.command, *words]).code else path.read_bytes()


def code_of(compiler: Compiler, options: list[str], bitcode: bytes, scratch: Scratch) -> bytes:
    """Have clang make code of a module, as it would of its own.

    Raises:
        SearchError: it makes none.
    """
    path = scratch.path / "improved.o"
    ended = run([*compiler.command, *options, *CODE_ONLY, "-o", str(path)], bitcode)
    if ended.code:
        said = ended.messages.decode(errors="replace").strip() or f"exit code {ended.code}"
        raise SearchError(f"clang cannot compile the module that was found: {said.splitlines()[0]}")
    return path.read_bytes()
