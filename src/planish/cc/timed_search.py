"""Search for faster objects of a program that was linked of several, which is run as the user says.

Each object is a program of level llvm that knows how it is linked, and its search is a run of the engine, on
the store in the cache's folder.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic

from planish.cc.clang import CODE_ONLY, Compiler
from planish.cc.interrupts import interrupt
from planish.cc.object_cache import ObjectCache, digest
from planish.cc.settings import SearchError
from planish.cc.timed_objects import LinkPart, TimedUnit, exchanged, without_output
from planish.core import (
    Candidate,
    Executor,
    Measured,
    StoppedError,
    StoreError,
    evaluate,
    stopped_by,
)
from planish.levels.llvm.backend import open_backend
from planish.levels.llvm.backend.elf import function_bytes
from planish.levels.llvm.hot.programs import ProgramBuilder, compiled, function_lists
from planish.levels.llvm.hot.space import HOT
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.modules.transform import survived
from planish.levels.llvm.program import OBJECTS, PROGRAM, IRProgram, LinkCommand, LinkedObject, Running
from planish.levels.llvm.task_setup import prepared
from planish.measure.executors import LocalExecutor
from planish.sandbox.scratch import Scratch, remove_shared_folder
from planish.store import Store, open_store
from planish.tuning.api import task_of, tune_program
from planish.tuning.engine import count_workers
from planish.tuning.recorder import Progress, Silent
from planish.tuning.settings import Budget, Settings

_STORE = "store.db"
_SETTINGS = Settings(objectives=("time_s",), space="functions", finalists=1)


def open_results(cache: ObjectCache, scratch: Path) -> Store:
    """Open the store of a cache; one in a scratch folder where the cache cannot be written.

    Args:
        cache: whose folder has it; an error is noted there.
        scratch: a folder that ends with the compilation.
    """
    try:
        cache.make_folder(cache.folder)
        return open_store(Path(cache.folder) / _STORE)
    except (OSError, StoreError) as error:
        cache.note(f"cannot be written: {error}")
        return open_store(scratch / _STORE)


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

    Each is measured in the program that has those that were found before it, beside clang's object.

    Args:
        compiler: makes code, and links.
        words: that link the program.
        units: objects, and what they were made of.
        running: how the program is run.
        scratch: where objects are written that are found.
        store: keeps the searches.
    """

    compiler: Compiler
    words: list[str]
    units: Mapping[LinkPart, TimedUnit]
    running: Running
    scratch: Scratch
    store: Store
    _level: LlvmLevel = field(init=False)
    _kept: dict[LinkPart, tuple[str, bytes]] = field(default_factory=dict[LinkPart, tuple[str, bytes]])

    def __post_init__(self) -> None:
        self._level = LlvmLevel()

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
        spec = self._level.evaluator(task_of(self._level, self._program(next(iter(self.units))), _SETTINGS))
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
            for part in self.units
        }
        return dict(sorted(((p, each) for p, each in own.items() if each), key=lambda r: -sum(r[1].values())))

    def _alone(self, part: LinkPart) -> frozenset[str]:
        """Return the functions of one object; a name that two have may be of either."""
        names = {each: function_bytes(each.code).keys() for each in self.units}
        owners = Counter(name for each in names.values() for name in each)
        return frozenset(name for name in names[part] if owners[name] == 1)

    def _program(self, part: LinkPart) -> IRProgram:
        """Return an object as a program of level llvm, linked with those that were found before it."""
        unit, compiler = self.units[part], self.compiler
        kept = {each: path for each, (path, _) in self._kept.items()}
        words = without_output(exchanged(self.words, {**kept, part: OBJECTS}))
        link = LinkCommand(tuple(compiler.command), (*words, "-o", PROGRAM, "-Qunused-arguments"), ("/",))
        compile_words = (*compiler.command, *unit.options, *CODE_ONLY, "-o", OBJECTS)
        # By what is linked, wherever it is: found objects are in a scratch folder.
        found = {each: digest(code) for each, (_, code) in self._kept.items()}
        key = digest(
            compiler.identity.encode(),
            os.fsencode("\0".join(without_output(exchanged(self.words, {**found, part: OBJECTS})))),
            *(f"{each.name} {own.key}".encode() for each, own in self.units.items()),
            part.name.encode(),
        )
        made = survived(partial(_text, unit.bitcode), tuple[str, int], unit.source)
        linked = LinkedObject(link, compile_words, part.code, self._alone(part), key)
        return IRProgram(*made, self.running, linked=linked)

    def _faster(
        self, part: LinkPart, parts: Mapping[str, float], executor: Executor, seconds: float
    ) -> Iterator[FasterObject]:
        """Search for one object; yield it where it makes the program clearly faster."""
        program = self._program(part)
        assert program.linked
        try:
            result = tune_program(
                self._level,
                program,
                budget=Budget(seconds=seconds),
                settings=_SETTINGS,
                store=self.store,
                listener=_EndsAtOnce(),
                executor=executor,
                start=LocalExecutor,
            )
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
        yield FasterObject(part, self.units[part].source, functions, three, baseline_s, code)


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
    with closing(open_backend().parse(bitcode)) as module:
        return module.text(), module.instructions()


def _code(ir: str, backend: str, candidate: Candidate, linked: LinkedObject) -> bytes:
    return compiled(ProgramBuilder(ir, open_backend(backend)).build(candidate).bitcode, linked)
