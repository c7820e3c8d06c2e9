"""Evaluator of pass lists: transforms, verifies and measures one module in a worker process.

A few passes go by addresses in memory, and may make other code in each run: such a list is not reproducible.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import Candidate, Failed, Lost, Measured, Outcome, ProgramError, StageClock, TargetError
from planish.levels.llvm.bindings.elf import code_bytes, function_bytes
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import Bindings, IRError, Module, PassError
from planish.levels.llvm.c_source import SourceBuild, SourceBuilder, is_source
from planish.levels.llvm.execution import (
    CLOCKS,
    EndedError,
    NotRunnableError,
    RunAnswer,
    Runner,
    linker_folders,
    reference_answers,
)
from planish.levels.llvm.function_steps import is_of_functions, plan_of
from planish.levels.llvm.hot.functions import sampled_seconds
from planish.levels.llvm.hot.programs import ProgramBuilder, compiled
from planish.levels.llvm.passes.catalogue import vary
from planish.levels.llvm.passes.pipeline import passes_of, print_pipeline
from planish.levels.llvm.program import LinkedObject, Running
from planish.measure import PairedTimer, Samples, SharedBaselineTime, Timing, time_call
from planish.sandbox import Limits, describe_exit, is_external_signal
from planish.sandbox.confinement import SandboxPolicy

if TYPE_CHECKING:
    from planish.levels.llvm.modules.evaluator import FunctionEvaluator

RUNS = 3
"""Runs that caught a pass that depends on addresses in memory wherever twelve did."""


def reproduces(original: Module, made: Module, pipeline: str) -> bool:
    """Run a pipeline again, and compare what is printed.

    What was made before stays open meanwhile: a clone at the address of a closed one has
    its addresses too, and differences are missed.

    Args:
        original: what the pipeline starts from; it stays as it is.
        made: what it made, in the first of `RUNS` runs.
        pipeline: as `opt -passes=` takes it.

    Raises:
        PassError: LLVM refuses it.
    """
    expected = fingerprint(made)
    with ExitStack() as stack:
        for _ in range(RUNS - 1):
            again = stack.enter_context(closing(original.clone()))
            again.run(pipeline)
            if fingerprint(again) != expected:
                return False
    return True


def fingerprint(module: Module) -> bytes:
    """Return the hash of what is printed of a module."""
    return hashlib.sha256(module.text().encode(errors="surrogateescape")).digest()


NOT_SAMPLED = "it is not known where the time goes"
_NOT_COMPARED = "C is measured only where the program is run: for its time, or with run=yes"
NOT_RUN = "not run"
"""The first words of the warning that gives the reason why no candidate of a program with a `main` is run."""
TIMING = Timing(budget_s=0.2, block_s=2e-3, fewest=3, most=30, slow_factor=2.0)
LAST_TIMING = Timing(budget_s=0.2, block_s=2e-3, fewest=3, most=30, slow_factor=math.inf)
"""For the comparison at the end: nothing is cut short."""

PAIRED_TIMINGS = (
    Timing(budget_s=0.4, block_s=2e-3, fewest=5, most=60, slow_factor=1.005),
    Timing(budget_s=0.8, block_s=2e-3, fewest=5, most=60, slow_factor=1.005),
)
"""For lists of single functions, whose gains are small: what is promising is measured a second time."""
PROMISING = 0.99
"""Ratio to the best time so far up to which code is measured a second time, against outliers."""

COUNTS = frozenset({"instructions", "text_bytes"})
"""Objectives that are counted, and so have no noise."""

_SLOWER = 20.0
_LEAST_S = 2.0
"""Limit of a candidate's time as a multiple of the unoptimized program's, and its least value in seconds."""


@dataclass(frozen=True)
class LlvmEvaluatorSpec:
    """Makes an evaluator in a worker.

    Args:
        ir: the module, prepared for the objective.
        running: how it is run; None where there is no `main`.
        objectives: the names of what is measured; the count of instructions always is.
        backend: the back end's name.
        limits: of one evaluation.
        timing: how long each candidate is timed.
        remember: whether what was compiled or run already is not again, whatever list made it. Most lists of
            a search end in one of a few texts, and to compile takes longer than the passes.
        parts: whether the sizes of single functions are measured of pass lists, too.
        linked: the program that the module is a part of; None: it is the whole program.
        builder: makes what builds programs whose functions have lists of their own.
        reproduced: decides whether a list makes the same code again, as `reproduces`.
        passes: that are run on a source in C where its candidate names none.
    """

    ir: str
    running: Running | None
    objectives: frozenset[str]
    backend: str
    limits: Limits
    timing: Timing = TIMING
    remember: bool = True
    parts: bool = False
    linked: LinkedObject | None = None
    builder: Callable[[str, Bindings], ProgramBuilder] = ProgramBuilder
    reproduced: Callable[[Module, Module, str], bool] = reproduces
    passes: tuple[str, ...] = ()

    @property
    def sandbox(self) -> SandboxPolicy:
        """Return how a worker is confined: more closely where it runs the program."""
        if self.running is None:
            return SandboxPolicy.for_code()
        reads = self.linked.link.reads if self.linked else linker_folders()
        return SandboxPolicy((*reads, *filter(os.path.isabs, self.running.args)))

    def __call__(self) -> _Evaluator:
        return _Evaluator(self)


@dataclass(frozen=True)
class TimedEvaluatorSpec(LlvmEvaluatorSpec):
    """Makes an evaluator for a search by time, whose baseline is measured before all others.

    Args:
        baseline: candidates that treat functions apart are interleaved with it.
        sampled: hashes of the candidates whose parts are measured: the seconds spent in each function.
        baseline_time: what the baseline takes.
        paired: how long lists of single functions are timed, interleaved with it.
    """

    baseline: Candidate = field(default_factory=Candidate)
    sampled: frozenset[str] = frozenset()
    baseline_time: SharedBaselineTime = field(default_factory=SharedBaselineTime)
    paired: tuple[Timing, ...] = PAIRED_TIMINGS

    @property
    def sandbox(self) -> SandboxPolicy:
        """Return how a worker is confined; all workers share a file with the baseline's time."""
        own = super().sandbox
        return replace(own, reads=(*own.reads, str(self.baseline_time.folder)))

    def set_baseline(self, baseline: Outcome) -> None:
        """Set the known time of the baseline; see `planish.core.NeedsBaseline`."""
        if isinstance(baseline, Measured):
            self.baseline_time.set(baseline.values["time_s"])

    def __call__(self) -> _TimedEvaluator:
        return _TimedEvaluator(self)


class _Evaluator:
    """Evaluates pass lists on clones of one module, and lists of single functions where the time leads.

    Attributes:
        notes: why the module is not run, though it has a `main`.

    Raises:
        NotRunnableError, IRError, TargetError: the time is asked for, and the program cannot be run.
    """

    def __init__(self, spec: LlvmEvaluatorSpec) -> None:
        self._bindings = bindings = open_bindings(spec.backend)
        self._ir, self._linked = spec.ir, spec.linked
        self._module = bindings.parse(spec.ir)
        self._reports_parts = spec.parts
        self._timing = spec.timing
        self._remember = spec.remember
        self._timed = "time_s" in spec.objectives
        self._sized = "text_bytes" in spec.objectives
        self._best = self._least = math.inf
        exact = spec.objectives & COUNTS
        self._counted = "".join(exact) if len(spec.objectives) == len(exact) == 1 else ""
        self._texts: dict[bytes, Outcome] = {}
        self._known: dict[bytes, Outcome] = {}
        self._make_builder, self._reproduced = spec.builder, spec.reproduced
        self._builder: ProgramBuilder | None = None
        self._codes: dict[str, bytes] = {}
        self._runner: Runner | None = None
        self._expected = RunAnswer(0, b"", 0.0)
        self._answers: list[RunAnswer] = []
        self._passes = spec.passes
        self._sources: dict[str, SourceBuild] = {}
        self.notes: tuple[str, ...] = ()
        if spec.running is None:
            return
        try:
            linked = spec.linked
            runner = Runner(spec.running, bindings, linked.link if linked else None)
            code = linked.code if linked else self._module.object_code()
            self._answers = reference_answers(code, runner)
            self._expected = self._answers[0]
        except (NotRunnableError, IRError, TargetError) as error:
            if self._timed:
                raise
            self.notes = (f"{NOT_RUN}, and checked by LLVM's verifier alone: {error}",)
        else:
            self._runner = runner

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Run the passes on a clone; verify it and measure."""
        if is_source(candidate):
            return self._of_source(candidate, clock)
        if self._timed and (self._linked or is_of_functions(candidate)):
            return self._by_function(candidate, clock)
        if is_of_functions(candidate):
            return self._of_functions(candidate, clock)
        with clock("transform"):
            module = self._module.clone()
        with closing(module):
            return self._transformed(module, passes_of(candidate), clock)

    def _by_function(self, candidate: Candidate, clock: StageClock) -> Outcome:
        try:
            with clock("transform"):
                code = self._codes.get(candidate.hash) or self._code_of(candidate)
        except (PassError, IRError, ProgramError) as error:
            return Failed("transform", "refused by LLVM", error.message)
        if not self._remember:  # it comes in each round of a comparison
            self._codes[candidate.hash] = code
        return self._run_by_function(code, clock)

    def _code_of(self, candidate: Candidate) -> bytes:
        """Make the object of a candidate; raises PassError, IRError or ProgramError where that fails."""
        if self._linked and not candidate.steps:
            return self._linked.code
        if self._linked or is_of_functions(candidate):
            self._builder = self._builder or self._make_builder(self._ir, self._bindings)
            build = self._builder.build(candidate)
            return compiled(build.bitcode, self._linked) if self._linked else build.code
        with closing(self._module.clone()) as module:
            module.run(print_pipeline(passes_of(candidate)))
            return module.object_code()

    def _run_by_function(self, code: bytes, clock: StageClock) -> Outcome:
        return self._run(code, clock, {})

    def _of_source(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Evaluate functions that a client wrote in C: the answer of each timed run is compared, too."""
        if self._runner is None or self._linked is not None:
            return Failed("verify", "not run", _NOT_COMPARED)
        try:
            with clock("build"):
                build = self._sources.get(candidate.hash) or self._source_builder.build(candidate)
        except (PassError, IRError, ProgramError, TargetError) as error:
            return Failed("build", "refused", str(error))
        if not self._remember:  # it comes in each round of a comparison
            self._sources[candidate.hash] = build
        values = {"instructions": float(build.instructions)}
        if self._sized:
            values["text_bytes"] = float(sum(map(code_bytes, build.codes)))
        measure = self._time_alone if self._timed else None
        found = self._run_programs(self._runner, [build.codes], clock, measure, compared=True)
        return Measured({**values, **found.values}, found.samples) if isinstance(found, Measured) else found

    @cached_property
    def _source_builder(self) -> SourceBuilder:
        return SourceBuilder(self._ir, self._bindings, timed=self._timed, passes=self._passes)

    def _of_functions(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Evaluate steps on functions; the whole module is made where it is run, and at the end of a run."""
        if self._counted and self._remember and self._runner is None:
            return self._functions.evaluate(candidate, clock)
        try:
            with clock("transform"):
                module = self._functions.made(plan_of(candidate))
        except PassError as error:
            return Failed("transform", "refused by LLVM", error.message)
        with closing(module):
            return self._measured(module, clock)

    @cached_property
    def _functions(self) -> FunctionEvaluator:
        from planish.levels.llvm.modules.evaluator import FunctionEvaluator
        from planish.levels.llvm.modules.transform import single

        return FunctionEvaluator(single(self._module), self._bindings, self._counted or "text_bytes")

    def _transformed(self, module: Module, passes: Sequence[str], clock: StageClock) -> Outcome:
        try:
            with clock("transform"):
                pipeline = print_pipeline(passes)
                module.run(pipeline)
            with clock("verify"):
                wrong = module.verify()
            if wrong:
                return Failed("verify", "invalid IR", wrong)
            found = self._measured(module, clock)
            # Few passes go by addresses in memory: only lists with such a pass are run again. While a search
            # counts one thing, only what may be its best: other lists take a third of the time so.
            value = found.values.get(self._counted) if isinstance(found, Measured) else None
            matters = value is None or not self._remember or value < self._least
            if matters and vary(passes):
                with clock("verify"):
                    same = self._reproduced(self._module, module, pipeline)
                if not same:
                    detail = f"{pipeline} makes other code from run to run"
                    return Failed("verify", "not reproducible", detail)
        except PassError as error:
            return Failed("transform", "refused by LLVM", error.message)
        if value is not None:
            self._least = min(self._least, value)
        return found

    def _measured(self, module: Module, clock: StageClock) -> Outcome:
        values = {"instructions": float(module.instructions())}
        if not self._sized and self._runner is None:
            return Measured(values, parts=self._instructions(module) if self._reports_parts else {})
        # Most lists of a search end in one of a few texts, and to compile one takes longer than the passes.
        text = fingerprint(module)
        if text in self._texts and self._remember:
            return self._texts[text]
        found = self._built(module, values, clock)
        # A process that was killed from outside says nothing about the code.
        if not isinstance(found, Lost):
            self._texts[text] = found
        return found

    def _built(self, module: Module, values: dict[str, float], clock: StageClock) -> Outcome:
        try:
            with clock("build"):
                code = module.object_code()
        except IRError as error:
            return Failed("build", "no code is made of it", error.message)
        if self._sized:
            values["text_bytes"] = float(code_bytes(code))
        found = self._run(code, clock, values)
        if self._reports_parts and isinstance(found, Measured):
            sizes = function_bytes(code)
            # Aliases are symbols too, of code that is counted already.
            parts = {name: float(sizes[name]) for name in self._instructions(module) if name in sizes}
            return replace(found, parts=parts)
        return found

    def _instructions(self, module: Module) -> dict[str, float]:
        from planish.levels.llvm.modules.transform import single

        return {name: float(count) for name, count in single(module).definitions().instructions().items()}

    def _run(self, code: bytes, clock: StageClock, values: dict[str, float]) -> Outcome:
        """Compare the answer with the unoptimized program's, and take the time, where it can run."""
        if self._runner is None:
            return Measured(values)
        # Different texts often become the same code: that is run once.
        name = hashlib.sha256(code).digest()
        found = self._known.get(name) if self._remember else None
        if found is None:
            found = self._tried(self._runner, code, clock)
        if not isinstance(found, Lost):
            self._known[name] = found
        if not isinstance(found, Measured):
            return found
        return Measured({**values, **found.values}, found.samples)

    def _tried(self, runner: Runner, code: bytes, clock: StageClock) -> Outcome:
        """Run code that is new: its answer, then its time where that is wanted."""
        return self._run_programs(runner, [(code,)], clock, self._time_alone if self._timed else None)

    def _time_alone(self, run: Callable[[int], None]) -> Samples:
        return time_call(run, self._timing, self._best, CLOCKS)

    def _run_programs(
        self,
        runner: Runner,
        codes: Sequence[Sequence[bytes]],
        clock: StageClock,
        measure: Callable[..., Samples] | None,
        *,
        compared: bool = False,
    ) -> Outcome:
        """Verify the first of some programs, and measure them together: functions that run each so often.

        Args:
            runner: links and runs them.
            codes: the objects of each program.
            clock: of the stages.
            measure: takes what runs each program so often; None where no time is wanted.
            compared: whether the answer of each timed run is compared.
        """
        with ExitStack() as stack:
            try:
                with clock("build"):
                    programs = [stack.enter_context(runner.executable(*each)) for each in codes]
            except NotRunnableError as error:
                return Failed("build", "does not link", error.message)
            with clock("verify"):
                wrong = self._wrong(runner, programs[0])
            if wrong or measure is None:
                return wrong or Measured({})
            expected, limit = self._expected, self._limit(self._expected)
            if compared:
                runs = [partial(runner.repeat_compared, each, expected, limit) for each in programs]
            else:
                runs = [partial(runner.repeat, each, expected.code) for each in programs]
            try:
                with clock("run"):
                    found = measure(*runs)
            except EndedError as ended:
                if is_external_signal(ended.code):
                    return Lost("run", "killed", f"its program was {describe_exit(ended.code)}")
                what = ended.detail if compared else describe_exit(ended.code)
                return Failed("run", "wrong answer", f"one of many runs{':' if compared else ''} {what}")
        self._best = min(self._best, found.median)
        return Measured({"time_s": found.median}, found.named({"time_s": float}, one_core=True))

    def _wrong(self, runner: Runner, program: Path) -> Failed | Lost | None:
        """Return how an executable's answer to some input is not the expected one; None where all are."""
        for given, expected in zip(runner.inputs, self._answers, strict=True):
            try:
                answer = runner.answer(program, self._limit(expected), given=given)
            except NotRunnableError as error:
                return Failed("verify", "wrong answer", error.message)
            if answer.code != expected.code and is_external_signal(answer.code):
                return Lost("verify", "killed", f"its program was {describe_exit(answer.code)}")
            if wrong := answer.differs(expected):
                return Failed("verify", "wrong answer", wrong)
        return None

    @staticmethod
    def _limit(expected: RunAnswer) -> float:
        """Return the seconds that a run may take."""
        return max(_LEAST_S, _SLOWER * expected.seconds)


class _TimedEvaluator(_Evaluator):
    """Evaluates for a search by time.

    Lists of single functions gain little each, so their programs are interleaved with the baseline.
    """

    def __init__(self, spec: TimedEvaluatorSpec) -> None:
        super().__init__(spec)
        self._baseline_time, self._sampled = spec.baseline_time, spec.sampled
        self._unchanged = spec.baseline
        self._timers = [
            PairedTimer(spec.baseline_time, each, patience=1, clocks=CLOCKS) for each in spec.paired
        ]
        self._paired: dict[bytes, Outcome] = {}
        self._baseline = b""

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        found = super().evaluate(candidate, clock)
        if candidate.hash not in self._sampled or not isinstance(found, Measured) or self._runner is None:
            return found
        with clock("build"):
            code = self._code_of(candidate)
        seconds = found.values["time_s"]
        try:
            with clock("run"):
                parts = sampled_seconds(self._runner, code, self._expected, seconds, self._bindings)
        except NotRunnableError as error:
            self.notes = (*self.notes, f"{NOT_SAMPLED}: {error}")
            return found
        return replace(found, parts=parts)

    def _run_by_function(self, code: bytes, clock: StageClock) -> Outcome:
        known = self._baseline_time.known
        if known is None or self._runner is None:  # there is no baseline yet
            return super()._run_by_function(code, clock)
        if not self._baseline:
            with clock("build"):
                self._baseline = self._code_of(self._unchanged)
            self._paired[hashlib.sha256(self._baseline).digest()] = Measured({"time_s": known})
            self._best = known
        # By its code: many lists make the same, and measuring is what takes the time.
        name = hashlib.sha256(code).digest()
        if name in self._paired:
            return self._paired[name]
        found = self._run_programs(self._runner, [(code,), (self._baseline,)], clock, self._time_interleaved)
        if not isinstance(found, Lost):
            self._paired[name] = found
        return found

    def _time_interleaved(self, run: Callable[[int], None], baseline: Callable[[int], None]) -> Samples:
        """Measure code interleaved with the baseline's; what is promising twice: the worse counts."""
        found: list[Samples] = []
        for timer in self._timers:
            found.append(timer.time(run, baseline))
            if found[-1].median > PROMISING * self._best:
                break
        return max(found, key=lambda samples: samples.median)
