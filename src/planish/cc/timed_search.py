"""Search for faster objects of a program that was linked of several, which is run as the user says.

Each object is a program of level llvm that knows how it is linked, and its search is a run of the engine, on
the store in the cache's folder.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic

from planish.cc.clang import CODE_ONLY
from planish.cc.interrupts import interrupt
from planish.cc.object_cache import digest
from planish.cc.optimize import check_version
from planish.cc.settings import SearchError
from planish.cc.timed_program import LinkPart, TimedProgram, exchanged, without_output
from planish.core import (
    Candidate,
    Executor,
    Measured,
    StoppedError,
    StoreError,
    evaluate,
    stopped_by,
)
from planish.core.process import processor_s
from planish.core.task import usable_cores
from planish.levels.llvm.bindings.elf import function_bytes
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.hot.functions import HOT
from planish.levels.llvm.hot.programs import ProgramBuilder, compiled, function_lists
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.modules.transform import survived
from planish.levels.llvm.program import OBJECTS, PROGRAM, IRProgram, LinkCommand, LinkedObject
from planish.levels.llvm.task_setup import prepared
from planish.measure.executors import LocalExecutor
from planish.sandbox.scratch import Scratch, remove_shared_folder
from planish.tuning.api import task_of, tune_program
from planish.tuning.engine import count_workers
from planish.tuning.recorder import Progress, Silent
from planish.tuning.result import Result
from planish.tuning.settings import Budget, Settings

_STORE = "store.db"
_SETTINGS = Settings(objectives=("time_s",), space="functions", finalists=1)


def search_program(program: TimedProgram, seconds: float) -> tuple[bytes, dict[LinkPart, bytes]]:
    """Search for faster objects of a program, and keep them.

    Args:
        program: was linked.
        seconds: of the search; the comparisons at the end of each object's search come on top.

    Returns:
        The report, as JSON, and the objects.

    Raises:
        PlanishError: the program cannot be run, its answers differ, or LLVM does not survive it.
        SearchError: it is not known what its objects were made of, or where the time goes.
    """
    if not program.units:
        raise SearchError(
            "the sources of its objects are unknown: compile them with planish cc, each only once"
        )
    check_version(program.compiler, program.cache)
    began, used = monotonic(), processor_s()
    with Scratch() as scratch:
        store = Path(program.cache.folder) / _STORE
        found = TimedSearch(program, scratch, store, LlvmLevel()).run(seconds)
    had = seconds_had(seconds, monotonic() - began, processor_s() - used)
    if had < seconds:  # load may last: builds add up what they have
        had = min(seconds, had + program.seconds())
    about = {
        "faster": [each.to_json() for each in found],
        "run": program.run,
        "seconds": had,
        "search_s": round(monotonic() - began, 3),
    }
    objects = {each.part: each.code for each in found}
    program.keep(about, objects)
    return json.dumps(about).encode(), objects


def seconds_had(seconds: float, passed: float, used: float, load: float | None = None) -> float:
    """Return the seconds that a search had: those of the processor where a loaded machine cut it short.

    Args:
        seconds: that it was given, by the clock.
        passed: that it took.
        used: of the processor.
        load: programs that run or wait for each core; by default those of this machine now.
    """
    # On a machine that is not loaded, it is the program that waits for something.
    load = os.getloadavg()[0] / usable_cores() if load is None else load
    return used if passed >= seconds > 2 * used and load > 1 else seconds


@dataclass(frozen=True)
class FasterObject:
    """An object that makes a program faster.

    Args:
        part: which it replaces.
        source: what it is made of.
        functions: of another list than -O3's, with the share of the time and the pipeline.
        ratio: the program's time over that with clang's object: with the ends of its interval.
        baseline_s: what a run took.
        code: the object.
    """

    part: LinkPart
    source: str
    functions: tuple[tuple[str, float, str], ...]
    ratio: tuple[float, float, float]
    baseline_s: float
    code: bytes = field(repr=False)

    def to_json(self) -> dict[str, object]:
        """Return all but the code, as JSON has it."""
        return {name: getattr(self, name) for name in ("source", "functions", "ratio", "baseline_s")}


class _EndsAtOnce(Silent):
    """Ends a run without a comparison where the user ended its search: a build is to stop then."""

    def ending(self, progress: Progress, what: str) -> None:
        """Raise KeyboardInterrupt where the search was ended."""
        del what
        if progress.stopped:
            raise KeyboardInterrupt


@dataclass
class TimedSearch:
    """Finds objects that make a program faster, one after the other, the hottest first.

    Each is measured in the program that has those that were found before it, interleaved with clang's object.

    Args:
        program: was linked by clang.
        scratch: objects that are found are written there.
        store: the file that keeps the searches, in the cache; one of the scratch folder where that cannot be
            used.
        level: measures programs.
    """

    program: TimedProgram
    scratch: Scratch
    store: Path
    level: LlvmLevel
    _kept: dict[LinkPart, tuple[str, bytes]] = field(default_factory=dict[LinkPart, tuple[str, bytes]])

    def run(self, seconds: float) -> list[FasterObject]:
        """Search; the comparisons at the end of each object's search come on top.

        Raises:
            PlanishError: the program cannot be run, its answers differ, or LLVM does not survive it.
            SearchError: it is not known where the time goes.
        """
        try:
            return self._run(monotonic() + seconds)
        except KeyboardInterrupt:
            remove_shared_folder()  # the process dies of the signal, and runs nothing at its exit
            raise

    def _run(self, over: float) -> list[FasterObject]:
        spec = self.level.evaluator(
            task_of(self.level, self._program_of(next(iter(self.program.units))), _SETTINGS)
        )
        with LocalExecutor(spec, workers=count_workers(_SETTINGS)) as executor:
            parts = _seconds_by_function(executor)
            hot = self._hot(parts)
            found: list[FasterObject] = []
            left = sum(map(sum, (own.values() for own in hot.values())))
            for part, own in hot.items():
                now, share = monotonic(), sum(own.values())
                # By how hot they are; what one leaves of its time is shared by those after it.
                given, left = max(over - now, 0.0) * share / left, left - share
                if given:
                    found += self._faster(part, parts, executor, given)
        return found

    def _hot(self, parts: Mapping[str, float]) -> dict[LinkPart, dict[str, float]]:
        """Return the seconds of hot functions by object, the hottest object first."""
        least = HOT * sum(parts.values())
        own = {
            part: {name: parts[name] for name in self._alone(part) if parts.get(name, 0.0) >= least}
            for part in self.program.units
        }
        return dict(sorted(((p, each) for p, each in own.items() if each), key=lambda r: -sum(r[1].values())))

    def _alone(self, part: LinkPart) -> frozenset[str]:
        """Return the functions of one object; a name that two have may be of either."""
        names = {each: function_bytes(each.code).keys() for each in self.program.units}
        owners = Counter(name for each in names.values() for name in each)
        return frozenset(name for name in names[part] if owners[name] == 1)

    def _program_of(self, part: LinkPart) -> IRProgram:
        """Return an object as a program of level llvm, linked with those that were found before it."""
        whole, unit = self.program, self.program.units[part]
        compiler = whole.compiler
        kept = {each: path for each, (path, _) in self._kept.items()}
        words = without_output(exchanged(whole.words, {**kept, part: OBJECTS}))
        link = LinkCommand(tuple(compiler.command), (*words, "-o", PROGRAM, "-Qunused-arguments"), ("/",))
        compile_words = (*compiler.command, *unit.options, *CODE_ONLY, "-o", OBJECTS)
        # By what is linked, wherever it is: found objects are in a scratch folder.
        found = {each: digest(code) for each, (_, code) in self._kept.items()}
        key = digest(
            compiler.identity.encode(),
            os.fsencode("\0".join(without_output(exchanged(whole.words, {**found, part: OBJECTS})))),
            *(f"{each.name} {own.key}".encode() for each, own in whole.units.items()),
            part.name.encode(),
        )
        made = survived(partial(_text, unit.bitcode), tuple[str, int], unit.source)
        linked = LinkedObject(link, compile_words, part.code, self._alone(part), key)
        return IRProgram(*made, whole.running, linked=linked)

    def _faster(
        self, part: LinkPart, parts: Mapping[str, float], executor: Executor, seconds: float
    ) -> Iterator[FasterObject]:
        """Search for one object; yield it where it makes the program clearly faster."""
        program = self._program_of(part)
        assert program.linked
        try:
            result = self._tuned(program, executor, seconds)
        except StoppedError:
            interrupt(stopped_by())
        if result.stopped:
            interrupt(stopped_by())
        if not (result.comparison and result.finalists and result.finalists[0].improves):
            return
        best = result.finalists[0]
        ir, backend = prepared(result.task), result.task.target.toolchain["backend"]
        code = survived(partial(_code, ir, backend, best.candidate, program.linked), bytes)
        path = self.scratch.path / f"kept-{len(self._kept)}.o"
        path.write_bytes(code)
        self._kept[part] = str(path), code
        total = sum(parts.values())
        lists = {name: step.pipeline for step in function_lists(best.candidate) for name in step.functions}
        functions = tuple((name, parts.get(name, 0.0) / total, lists[name]) for name in lists)
        three = best.lead.ratio.value, best.lead.ratio.low, best.lead.ratio.high
        baseline_s = result.comparison.baseline.lead.median
        yield FasterObject(part, self.program.units[part].source, functions, three, baseline_s, code)

    def _tuned(self, program: IRProgram, executor: Executor, seconds: float) -> Result:
        """Search in the store; in another one where it cannot be used, with an error in the cache."""
        tune = partial(
            tune_program,
            self.level,
            program,
            budget=Budget(seconds=seconds),
            settings=_SETTINGS,
            listener=_EndsAtOnce(),
            executor=executor,
            start=LocalExecutor,
        )
        cache = self.program.cache
        try:
            cache.make_folder(cache.folder)
            return tune(store=self.store)
        except (OSError, StoreError) as error:
            cache.note(f"cannot be written: {error}")
            self.store = self.scratch.path / _STORE
            return tune(store=self.store)


def _seconds_by_function(executor: Executor) -> Mapping[str, float]:
    """Sample the program with clang's objects.

    Raises:
        SearchError: it cannot be sampled.
        PlanishError: it cannot be run, or its answers differ.
    """
    outcomes = [each.outcome for each in evaluate(executor, [Candidate()])]
    parts = [outcome.parts for outcome in outcomes if isinstance(outcome, Measured) and outcome.parts]
    if not parts:
        raise SearchError("; ".join([*executor.notes, *map(str, outcomes)][:1]))
    return parts[0]


def _text(bitcode: bytes) -> tuple[str, int]:
    with closing(open_bindings().parse(bitcode)) as module:
        return module.text(), module.instructions()


def _code(ir: str, backend: str, candidate: Candidate, linked: LinkedObject) -> bytes:
    return compiled(ProgramBuilder(ir, open_bindings(backend)).build(candidate).bitcode, linked)
