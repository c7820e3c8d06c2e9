"""Probe of graph passes: an evaluator that applies them to a model in a sandboxed process.

A question is a candidate of one step, and its answer is made of numbers, as every outcome: an identity of 128
bits is sent as four numbers of 32.
"""

from __future__ import annotations

import os
import re
import struct
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from planish.core import Candidate, Failed, Measured, Outcome, PlanishError, StageClock, Step, evaluate
from planish.core.disk_cache import DiskCache
from planish.core.files import copy_regular
from planish.levels.graph.evaluator import limits_of, sandbox_of
from planish.levels.graph.model_cache import Rewriter, model_cache_of
from planish.levels.graph.model_protos import identity, node_counts
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.sessions import SessionSettings, first_line, open_session, weights_of
from planish.measure.executors import LocalExecutor
from planish.sandbox import Limits
from planish.sandbox.confinement import SandboxPolicy
from planish.sandbox.scratch import shared_folder
from planish.sandbox.shared_cache import shared_cache

ANSWER_S = 40.0
"""Seconds for one answer, and one more for each 20 MB of the model."""
_PACE = 20e6
_MODIFIED = re.compile(rb"GraphTransformer (\S+) modified: ([01])")
_KEY = struct.Struct(">4I")
_SECONDS = "processor seconds"
_OF_WORKER = frozenset({"crash", "timeout", "killed", "stopped", "starved", "exited"})
"""Reasons of outcomes that an executor makes where a process ends."""


@dataclass(frozen=True)
class Question(Step):
    """A question about a model after some passes.

    Args:
        what: "model_key", "counts", "load", "effective", "optimized" or "write".
        rewrites: rewriting passes, in their order.
        disabled: the runtime's passes that are left out.
        optimization: the session's level; by default that of the settings.
        file: where to write the model; empty where it is not written.
        offline: whether the runtime optimizes the model that is written.
    """

    what: str
    rewrites: tuple[str, ...]
    disabled: tuple[str, ...] = ()
    optimization: str = ""
    file: str = ""
    offline: bool = False


@dataclass(frozen=True)
class Optimized:
    """A model that the runtime made: its identity, and its nodes by type."""

    key: str
    counts: Mapping[str, int]


class PassProbeError(PlanishError):
    """A pass failed, crashed or hung."""

    exit_code = 3


class PassProbe:
    """Applies passes to a model in a worker process, which is started again where one ends it.

    Its answers raise PassProbeError where a rewriting pass fails or the runtime does not take its model.

    Args:
        answer_s: seconds for one answer; by default by the model's size.

    Attributes:
        spent: seconds of a processor that answers took, so far; by the clock where the process ended.
    """

    def __init__(self, program: GraphProgram, settings: SessionSettings, answer_s: float = 0.0) -> None:
        self._program, self._settings = program, settings
        self._answer_s = answer_s or ANSWER_S + program.size / _PACE
        self._executor: LocalExecutor | None = None
        self._keys: dict[tuple[str, ...], str] = {}
        self.spent = 0.0

    def state_key(self, rewrites: Sequence[str]) -> str:
        """Return the identity of the model after some rewriting passes, or of the list where one fails."""
        try:
            return self.model_key(rewrites)
        except PassProbeError:
            return self._keys.setdefault(tuple(rewrites), " ".join(("fails:", *rewrites)))

    def model_key(self, rewrites: Sequence[str]) -> str:
        """Return the identity of the model after some rewriting passes."""
        wanted = tuple(rewrites)
        if wanted not in self._keys:
            self._keys[wanted] = _key_in(self._ask(Question("model_key", wanted)))
        return self._keys[wanted]

    def counts(self, rewrites: Sequence[str]) -> Mapping[str, int]:
        """Count the nodes by type after some rewriting passes."""
        return _counts_in(self._ask(Question("counts", tuple(rewrites))))

    def load(self, rewrites: Sequence[str]) -> None:
        """Load the model after some rewriting passes by the runtime."""
        self._ask(Question("load", tuple(rewrites)))

    def effective(self, rewrites: Sequence[str]) -> Mapping[str, bool]:
        """Return the runtime's transformers, and whether each changes the model after some passes."""
        found = self._ask(Question("effective", tuple(rewrites)))
        return {name: value != 0 for name, value in found.values.items()}

    def optimized(
        self, rewrites: Sequence[str], disabled: Sequence[str] = (), optimization: str = ""
    ) -> Optimized:
        """Return the model that the runtime optimizes after some rewriting passes."""
        found = self._ask(Question("optimized", tuple(rewrites), tuple(sorted(disabled)), optimization))
        return Optimized(_key_in(found), _counts_in(found))

    def write(
        self, rewrites: Sequence[str], file: Path, disabled: Sequence[str] = (), *, offline: bool
    ) -> None:
        """Write the model after some rewriting passes.

        Args:
            file: where to write it; its weights go beside it (`weights_of`) where it is optimized offline.
            offline: whether the runtime optimizes it, too.

        Raises:
            OSError: a file cannot be written.
        """
        # A folder of its own: the process may write there, and only what it wrote is copied.
        scratch = shared_cache()
        made = scratch.folder / file.name
        self._ask(Question("write", tuple(rewrites), tuple(sorted(disabled)), "", str(made), offline))
        copy_regular(made, file)
        if os.path.lexists(weights_of(made)):
            copy_regular(weights_of(made), weights_of(file))

    def close(self) -> None:
        """End the process; harmless when called twice."""
        if self._executor is not None:
            self._executor.close()
            self._executor = None

    def _ask(self, question: Question) -> Measured:
        if self._executor is None:
            limits = replace(limits_of(self._program), transform=self._answer_s)
            cache = model_cache_of(self._program)
            self._executor = LocalExecutor(PassProbeSpec(self._program, self._settings, limits, cache))
            # Also where it is not closed.
            weakref.finalize(self, self._executor.close)
        try:
            (found,) = evaluate(self._executor, [Candidate((question,))])
        except PlanishError as error:  # the evaluator cannot be made
            raise PassProbeError(error.message) from error
        if isinstance(found.outcome, Measured):
            values = dict(found.outcome.values)
            self.spent += values.pop(_SECONDS, 0.0)
            return Measured(values, found.outcome.samples)
        if found.outcome.reason in _OF_WORKER:
            # By the clock: how much of the processor a dead process used is not known.
            self.spent += sum(found.seconds.values())
        first, *_ = found.outcome.detail.splitlines() or [found.outcome.reason]
        raise PassProbeError(f"no answer, {first}" if found.outcome.reason == "timeout" else first)


def _key_in(found: Measured) -> str:
    try:
        return _KEY.pack(*map(int, found.samples["identity"])).hex()
    except (KeyError, struct.error) as error:
        raise PassProbeError(f"the process sent what is not an answer: {error}") from error


def _counts_in(found: Measured) -> Mapping[str, int]:
    return {name: int(value) for name, value in found.values.items()}


@dataclass(frozen=True)
class PassProbeSpec:
    """Makes the evaluator of a probe in a worker."""

    program: GraphProgram
    settings: SessionSettings
    limits: Limits
    model_cache: DiskCache

    @property
    def sandbox(self) -> SandboxPolicy:
        """Return how a worker is confined; it shares rewritten models with others."""
        return sandbox_of(self.program, self.settings, [shared_folder()])

    def __call__(self) -> _Evaluator:
        return _Evaluator(self)


class _Evaluator:
    def __init__(self, spec: PassProbeSpec) -> None:
        self._settings, self._program = spec.settings, spec.program
        # The folder of temporary files is the worker's own, and ends with it.
        self._scratch = Path(tempfile.mkdtemp())
        self._rewriter = Rewriter(spec.program, spec.model_cache, self._scratch)
        self._reported = 0.0

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Answer a question; see `PassProbe`."""
        (question,) = candidate.steps
        assert isinstance(question, Question)
        with clock("transform"):
            try:
                found = self._answer(question)
            except PlanishError as error:
                return Failed("transform", "a pass fails", error.message)
            # Libraries raise anything on a model that they did not foresee.
            except Exception as error:  # noqa: BLE001
                return Failed("transform", "a pass fails", f"{type(error).__name__}: {first_line(error)}")
        # Of questions that failed since the last answer, too.
        before, self._reported = self._reported, time.process_time()
        return Measured({**found.values, _SECONDS: self._reported - before}, found.samples)

    def _answer(self, question: Question) -> Measured:
        match question.what:
            case "model_key":
                return _measured(self._rewriter.model_key(question.rewrites))
            case "counts":
                return _measured(counts=node_counts(self._rewriter.model(question.rewrites)))
            case "load":
                file = self._rewriter.rewritten(question.rewrites).file
                open_session(file, self._settings, as_it_is=True)
                return _measured()
            case "effective":
                file, found = self._rewriter.rewritten(question.rewrites).file, Counter[str]()
                log = _stderr_of(lambda: open_session(file, self._settings, verbose=True))
                # A transformer runs more than once, in several steps: any of them counts.
                for name, modified in _MODIFIED.findall(log):
                    found[name.decode()] += int(modified)
                return _measured(counts=found)
            case "optimized":
                return self._optimized(question)
            case _:
                self._write(question)
                return _measured()

    def _optimized(self, question: Question) -> Measured:
        import onnx

        file, kept = self._rewriter.rewritten(question.rewrites).file, self._scratch / "optimized.onnx"
        settings = replace(self._settings, optimization=question.optimization or self._settings.optimization)
        open_session(file, settings, question.disabled, keep=kept)
        made = onnx.load(kept, load_external_data=False)
        # The runtime names the files of weights that it did not change as they stand beside the model.
        onnx.load_external_data_for_model(made, str(file.parent))
        return _measured(identity(made), node_counts(made))

    def _write(self, question: Question) -> None:
        import onnx

        # Made here, and not read from the cache, which other processes write to.
        model, file = self._rewriter.model(question.rewrites), Path(question.file)
        if not question.offline:
            onnx.save(model, file)
            return
        made = self._scratch / "written.onnx" if question.rewrites else self._program.file
        if question.rewrites:
            onnx.save(model, made)
        open_session(made, self._settings, question.disabled, keep=file, apart=True)


def _measured(key: str = "", counts: Mapping[str, int] | None = None) -> Measured:
    values = {name: float(count) for name, count in (counts or {}).items()}
    return Measured(values, {"identity": tuple(map(float, _KEY.unpack(bytes.fromhex(key))))} if key else {})


def _stderr_of(work: Callable[[], object]) -> bytes:
    """Do work, and return what native code wrote to standard error meanwhile."""
    with tempfile.TemporaryFile() as file:
        # By descriptor: native code writes past Python's sys.stderr.
        old = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            work()
        finally:
            os.dup2(old, 2)
            os.close(old)
        file.seek(0)
        return file.read()
