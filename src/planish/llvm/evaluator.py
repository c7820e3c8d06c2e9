"""Transforms, verifies and measures one module; lives in a worker process."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from planish.core import Candidate, Failed, Lost, Measured, Outcome, StageClock, TargetError
from planish.isolation import Limits, ending_of, is_from_outside
from planish.isolation.cage import Cage
from planish.llvm.backend import Backend, IRError, Module, PassError, open_backend
from planish.llvm.backend.elf import code_bytes
from planish.llvm.execution import (
    CLOCKS,
    EndedError,
    NotRunnableError,
    RunAnswer,
    Runner,
    linker_folders,
    reference_answer,
)
from planish.llvm.passes import passes_of, print_pipeline, vary
from planish.llvm.program import Running
from planish.llvm.repeating import fingerprint, reproduces
from planish.measure import Timing, time_call

NOT_RUN = "not run"
"""How a note begins that says why no candidate of a program with a `main` is run."""
TIMING = Timing(budget_s=0.2, block_s=2e-3, fewest=3, most=30, slow_factor=2.0)
LAST_TIMING = Timing(budget_s=0.2, block_s=2e-3, fewest=3, most=30, slow_factor=math.inf)
"""For the comparison at the end: nothing is cut short."""

COUNTS = frozenset({"instructions", "text_bytes"})
"""Objectives that are counted, and so have no noise."""

_SLOWER = 20.0
_LEAST_S = 2.0
"""A candidate may run so many times longer than the unoptimised program did, and so many seconds at least."""


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
    """

    ir: str
    running: Running | None
    objectives: frozenset[str]
    backend: str
    limits: Limits
    timing: Timing = TIMING
    remember: bool = True

    @property
    def cage(self) -> Cage:
        """How a worker is confined: more closely where it runs the program."""
        if self.running is None:
            return Cage.for_code()
        return Cage((*linker_folders(), *filter(os.path.isabs, self.running.args)))

    def __call__(self) -> _Evaluator:
        return _Evaluator(self)


class _Evaluator:
    """Evaluates pass lists on clones of one module.

    Attributes:
        notes: why the module is not run, though it has a `main`.

    Raises:
        NotRunnableError, IRError, TargetError: the time is asked for, and the program cannot be run.
    """

    def __init__(self, spec: LlvmEvaluatorSpec) -> None:
        backend = open_backend(spec.backend)
        self._module = backend.parse(spec.ir)
        self._timing = spec.timing
        self._remember = spec.remember
        self._timed = "time_s" in spec.objectives
        self._sized = "text_bytes" in spec.objectives
        self._best = self._least = math.inf
        exact = spec.objectives & COUNTS
        self._counted = "".join(exact) if len(spec.objectives) == len(exact) == 1 else ""
        self._texts: dict[bytes, Outcome] = {}
        self._known: dict[bytes, Outcome] = {}
        self._runner: Runner | None = None
        self._expected = RunAnswer(0, b"", 0.0)
        self.notes: tuple[str, ...] = ()
        if spec.running is not None:
            self._try_to_run(spec.running, backend)

    def _try_to_run(self, running: Running, backend: Backend) -> None:
        try:
            runner = Runner(running, backend)
            self._expected = reference_answer(self._module, runner)
        except (NotRunnableError, IRError, TargetError) as error:
            if self._timed:
                raise
            self.notes = (f"{NOT_RUN}, and checked by LLVM's verifier alone: {error}",)
        else:
            self._runner = runner

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Run the passes on a clone; verify it and measure."""
        with clock("transform"):
            module = self._module.clone()
        try:
            return self._transformed(module, passes_of(candidate), clock)
        finally:
            module.close()

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
            # Few passes go by addresses in memory: only lists with such a pass are run again.
            if vary(passes) and self._matters(found):
                with clock("verify"):
                    same = reproduces(self._module, module, pipeline)
                if not same:
                    detail = f"{pipeline} gives other code from run to run"
                    return Failed("verify", "not reproducible", detail)
        except PassError as error:
            return Failed("transform", "refused by LLVM", error.message)
        if self._counted and isinstance(found, Measured):
            self._least = min(self._least, found.values[self._counted])
        return found

    def _matters(self, found: Outcome) -> bool:
        """Whether something has to stand: while a search counts one thing, what may be its best.

        Other lists take a third of the time so; at the end all that is told of is run again.
        """
        if not self._counted or not self._remember or not isinstance(found, Measured):
            return True
        return found.values[self._counted] < self._least

    def _measured(self, module: Module, clock: StageClock) -> Outcome:
        values = {"instructions": float(module.instructions())}
        if not self._sized and self._runner is None:
            return Measured(values)
        # Most lists of a search end in one of a few texts, and making code of one takes longer than the
        # passes.
        text = fingerprint(module)
        if text in self._texts and self._remember:
            return self._texts[text]
        found = self._built(module, values, clock)
        # What somebody else ended tells nothing of the code.
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
        return self._run(code, clock, values)

    def _run(self, code: bytes, clock: StageClock, values: dict[str, float]) -> Outcome:
        """Compare the answer with the unoptimised program's, and take the time, where it can run."""
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
        with ExitStack() as stack:
            try:
                with clock("build"):
                    program = stack.enter_context(runner.executable(code))
            except NotRunnableError as error:
                return Failed("build", "does not link", error.message)
            with clock("verify"):
                wrong = self._wrong(runner, program)
            if wrong:
                return wrong
            if not self._timed:
                return Measured({})
            try:
                with clock("run"):
                    run = partial(runner.repeat, program, self._expected.code)
                    timed = time_call(run, self._timing, self._best, CLOCKS)
            except EndedError as ended:
                return self._ended(ended.code)
        self._best = min(self._best, timed.median)
        return Measured({"time_s": timed.median}, timed.named({"time_s": float}, one_core=True))

    def _wrong(self, runner: Runner, program: Path) -> Failed | Lost | None:
        """Say how an executable's answer is not the expected one; None where it is."""
        try:
            answer = runner.answer(program, max(_LEAST_S, _SLOWER * self._expected.seconds))
        except NotRunnableError as error:
            return Failed("verify", "wrong answer", error.message)
        if answer.code != self._expected.code and is_from_outside(answer.code):
            return Lost("verify", "killed", f"its program was {ending_of(answer.code)}")
        wrong = answer.differs(self._expected)
        return Failed("verify", "wrong answer", wrong) if wrong else None

    def _ended(self, code: int) -> Failed | Lost:
        """Say what became of an executable that ended otherwise while its time was taken."""
        if is_from_outside(code):
            return Lost("run", "killed", f"its program was {ending_of(code)}")
        return Failed("run", "wrong answer", f"one of many runs {ending_of(code)}")
