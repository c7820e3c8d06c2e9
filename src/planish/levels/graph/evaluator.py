"""Evaluator of selections for one model: rewrites, loads, verifies and measures, in a worker process."""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planish.core import Candidate, Failed, Measured, Outcome, ProgramError, StageClock
from planish.core.disk_cache import DiskCache
from planish.levels.graph.feeds import (
    BELOW_0,
    FURTHER,
    Feed,
    accuracy,
    check_labels,
    derived,
    labeled,
    make_feeds,
)
from planish.levels.graph.machine import Meter, peak_memory
from planish.levels.graph.model_cache import Rewriter
from planish.levels.graph.model_protos import all_nodes
from planish.levels.graph.passes import Selection, selection_of
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.rewriting import RewriteError
from planish.levels.graph.sessions import (
    ModelSession,
    RefusedError,
    SessionSettings,
    open_session,
    weights_of,
)
from planish.levels.graph.verification import (
    DEFAULT,
    Batch,
    Verifier,
    difference,
    moved_answers,
    not_finite,
    similarity,
    tolerance,
)
from planish.measure import PairedTimer, Runs, Samples, SharedBaselineTime, Timing, repeated, time_call
from planish.sandbox import Limits
from planish.sandbox.confinement import FILE_BYTES, SandboxPolicy
from planish.sandbox.scratch import shared_folder

LEAST_S = 1e-3
"""Shorter calls are timed alone: many fit between two interruptions, and the median passes those by."""
PATIENCE = 4
"""Budgets that may be spent on a candidate until its ratio is precise."""


TIMING = Timing(budget_s=0.15, block_s=1e-3, fewest=5, most=50, slow_factor=3.0)
LAST_TIMING = Timing(budget_s=0.15, block_s=1e-3, fewest=5, most=50, slow_factor=math.inf)
"""For the comparison at the end: nothing is cut short."""

CREATIONS = 5
"""Sessions that are made where the time to make one is wanted."""

_DRAWING = frozenset(
    {
        *("Bernoulli", "Dropout", "Multinomial"),
        *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
    }
)
"""Types of operators that may draw numbers at random."""
_SIGMAS = 3.0
_PACE = 20e6
"""Bytes of a model for which each stage is given another second, beyond its usual limit."""
_COPIES_IN_MEMORY = 16
"""So many times a model's size is a worker's memory: of it as it came, rewritten, and in sessions."""
_COPIES = 4
"""So many times a model's size a file of a worker may have, beyond the usual."""
_ACCURACY = "accuracy"


@dataclass(frozen=True)
class GraphEvaluatorSpec:
    """Makes an evaluator in a worker.

    Args:
        objectives: names of what is wanted; what costs nothing more is measured besides.
        baseline_time: of the baseline, with which each is interleaved; None: each is timed alone.
        remember: whether a model that was measured is not measured again, whatever passes made it. False at
            the end of a search, when answers are compared on further inputs too.
        model_cache: of rewritten models, which all processes of a search share.
    """

    program: GraphProgram
    settings: SessionSettings
    objectives: frozenset[str]
    limits: Limits
    model_cache: DiskCache
    timing: Timing = TIMING
    baseline_time: SharedBaselineTime | None = None
    remember: bool = True

    @property
    def sandbox(self) -> SandboxPolicy:
        """Return how a worker is confined; all share what the baseline takes, and models."""
        return sandbox_of(self.program, self.settings, [shared_folder()])

    def set_baseline(self, baseline: Outcome) -> None:
        """Set the seconds of the baseline; see `planish.core.NeedsBaseline`."""
        if self.baseline_time is not None and isinstance(baseline, Measured):
            self.baseline_time.set(baseline.values["latency"])

    def __call__(self) -> GraphEvaluator:
        return GraphEvaluator(self)


class _Timer:
    """Times the sessions of one model, interleaved with the baseline's where its calls are long enough."""

    def __init__(self, spec: GraphEvaluatorSpec, baseline: ModelSession | None, feed: Feed) -> None:
        self._timing, self._shared, self._feed = spec.timing, spec.baseline_time, feed
        self._one_core = spec.settings.cores == 1 and spec.settings.provider != "cuda"
        self._baseline = None if baseline is None or self._shared is None else self._runs(baseline)
        self._paired: PairedTimer | None = None
        self._begun = False
        self._best = math.inf

    def time(self, session: ModelSession) -> Samples:
        """Measure how long a call takes; enter the stage "run" first."""
        if self._shared is not None and self._baseline is not None and not self._begun:
            self._begun = True
            alone = time_call(self._baseline, self._timing)
            # The first worker to time the baseline decides for all whether it is too short.
            if self._shared.seconds(alone.median) >= LEAST_S:
                self._paired = PairedTimer(
                    self._shared, self._timing, one_core=self._one_core, patience=PATIENCE
                )
        if self._paired is not None and self._baseline is not None:
            return self._paired.time(self._runs(session), self._baseline)
        timed = time_call(self._runs(session), self._timing, self._best)
        self._best = min(self._best, timed.median)
        return timed

    def named(self, timed: Samples, batch: int) -> Mapping[str, tuple[float, ...]]:
        """Return samples as an outcome keeps them, of calls for a batch of this number of items."""

        def rate(seconds: float) -> float:
            return batch / seconds

        return timed.named({"latency": float, "throughput": rate}, one_core=self._one_core)

    def _runs(self, session: ModelSession) -> Runs:
        return repeated(session.bound(self._feed))


class GraphEvaluator:
    """Evaluates selections of passes for one model.

    Args:
        spec: what is measured, and how.
        rewriter: applies rewriting passes; by default one with temporary files of the worker's own.
        opens: opens sessions, as `open_session` does.
        peak: measures the memory of a model, as `peak_memory` does.

    Attributes:
        feeds: the inputs on which answers are compared; the first is timed.
        notes: what the user should know of the inputs and of the baseline.

    Raises:
        ProgramError: the runtime does not take the model as it came, its answers are not finite, or the
            labels are of others.
    """

    def __init__(
        self,
        spec: GraphEvaluatorSpec,
        rewriter: Rewriter | None = None,
        *,
        opens: Callable[..., ModelSession] = open_session,
        peak: Callable[..., float] = peak_memory,
    ) -> None:
        self._spec, self._program, self._opens, self._peak = spec, spec.program, opens, peak
        # The folder of temporary files is the worker's own, and ends with it.
        self._rewriter = rewriter or Rewriter(spec.program, spec.model_cache, Path(tempfile.mkdtemp()))
        self.feeds = list(make_feeds(spec.program, self._rewriter.original, further=not spec.remember))
        self._labels = labeled(spec.program)
        answers = self._answers(self.feeds)
        # As of a logarithm of what stays positive where numbers are of both signs.
        if spec.program.data is None and not_finite(answers[BELOW_0]):
            del self.feeds[BELOW_0], answers[BELOW_0]
        self._require_finite(answers)
        self._require_steady()
        if self._labels is not None:
            check_labels(self._labels, answers)
        notes: list[str] = []
        further = self._further(notes) if spec.program.data is not None else []
        try:
            baseline = self._session(spec.program.baseline, spec.program.file)
        except RefusedError:  # that is the baseline's failure, in its turn
            baseline = None
        batches = [*map(Batch, self.feeds, answers), *further]
        self._verifier = Verifier(batches, baseline, self._moved)
        if wrong := len(batches) - len(self._verifier.batches):
            what = "of the inputs made of the given ones are skipped: the baseline fails on them"
            notes.append(f"{wrong} {what}")
        if spec.program.without:
            passes = ", ".join(spec.program.without)
            notes.append(
                f"ONNX Runtime's defaults answer wrongly on this model: {passes} changes what it computes,"
                " and is left out of the baseline and of every candidate; without planish, name it in"
                " disabled_optimizers of InferenceSession"
            )
        self.notes = tuple(notes)
        self._known: dict[tuple[str, Selection], Outcome] = {}
        self._verified: set[Candidate] = set()
        self._timer = _Timer(spec, baseline, self.feeds[0])

    def _answers(self, feeds: Sequence[Feed]) -> list[Sequence[Any]]:
        """Run the model as it came, with every optimization off."""
        path = self._program.file
        try:
            # The runtime's own passes are among the candidates, so what they make cannot be the reference.
            session = self._opens(path, self._spec.settings.of_onnxruntime, as_it_is=True)
            return [session.run(feed) for feed in feeds]
        except RefusedError as error:
            raise ProgramError(f"ONNX Runtime does not run '{path}': {error.message}") from error

    def _require_finite(self, answers: Sequence[Sequence[Any]]) -> None:
        if any(map(not_finite, answers)):
            what = f"'{self._program.file}' returns numbers that are not finite, before anything is changed"
            raise ProgramError(what, 'Give it inputs that suit it: inputs="FILE.npz".')

    def _require_steady(self) -> None:
        """Raise ProgramError where the model draws at random, and answers otherwise in another call."""
        drawing = sorted({node.op_type for node in all_nodes(self._rewriter.original)} & _DRAWING)
        if not drawing:
            return
        once, again = self._answers([self.feeds[0]] * 2)
        if difference(again, once, DEFAULT):
            what = f"'{self._program.file}' answers at random: it has {', '.join(drawing)}"
            hint = "Export it for inference, as by model.eval(), without what draws numbers."
            raise ProgramError(what, hint)

    def _further(self, notes: list[str]) -> list[Batch]:
        """Make inputs of the given ones for the end, where the model as it came takes them."""
        made = derived(self.feeds, FURTHER)
        why = "nothing in them may be moved"
        answers: list[Sequence[Any]] = []
        try:
            answers = self._answers(made)
            self._require_finite(answers)
        except ProgramError as error:
            made, why = (), f"the model takes no others made of them ({error.message})"
        if not made:
            notes.append(f"candidates are compared on the given inputs alone: {why}")
            return []
        derivations = [] if self._spec.remember else zip(made, answers, strict=True)
        return [Batch(feed, expected, derived=True) for feed, expected in derivations]

    def _moved(self, feeds: Sequence[Feed]) -> Sequence[Sequence[Any]]:
        """Return the answers with other roundings."""
        settings = self._spec.settings.of_onnxruntime
        return moved_answers(self._rewriter.original, feeds, settings, self._rewriter.new_file())

    def _session(self, chosen: Selection, file: Path) -> ModelSession:
        return self._opens(file, self._spec.settings.having(chosen.session), chosen.disabled)

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Rewrite the model, make a session, compare its answers with the original's, and measure."""
        with clock("transform"):
            chosen = selection_of(candidate)
            self._spec.settings.having(chosen.session)  # raises where they are not canonical on this target
            try:
                made = self._rewriter.rewritten(chosen.rewrites)
            except RewriteError as error:
                return Failed("transform", "a pass fails", str(error))
        # By the model and not by its list, since other passes may make the same.
        name = (made.key, replace(chosen, rewrites=()))
        if name not in self._known or not self._spec.remember:
            self._known[name] = self._tried(candidate, chosen, made.file, clock)
        return self._known[name]

    def _tried(self, candidate: Candidate, chosen: Selection, made: Path, clock: StageClock) -> Outcome:
        """Load a rewritten model, verify and measure it."""
        kept = self._rewriter.new_file() if chosen.offline else None
        settings = self._spec.settings.having(chosen.session)
        seconds: dict[str, float] = {}
        try:
            with clock("build"):
                session = self._session(chosen, made)
                if kept is not None:
                    offline = self._opens(made, settings, chosen.disabled, keep=kept, apart=True)
                    seconds["offline_time"] = offline.seconds
                    session = self._opens(kept, settings, as_it_is=True)
            with clock("verify"):
                by_accuracy = _ACCURACY in self._spec.objectives
                allowed = tolerance(chosen.changes, self._program.tolerance, by_accuracy=by_accuracy)
                if candidate not in self._verified and (wrong := self._verifier.wrong(session, allowed)):
                    return Failed("verify", "wrong answer", wrong)
            self._verified.add(candidate)
            measured = self._measured(session, chosen, kept or made, clock)
            return replace(measured, values={**measured.values, **seconds})
        except RefusedError as error:
            return Failed("build", f"refused by {settings.runtime}", error.message)
        finally:
            if kept is not None:
                kept.unlink(missing_ok=True)
                weights_of(kept).unlink(missing_ok=True)

    def _measured(self, session: ModelSession, chosen: Selection, file: Path, clock: StageClock) -> Measured:
        spec, wanted = self._spec, self._spec.objectives
        settings = spec.settings.having(chosen.session)
        meter = Meter(wanted, spec.settings.provider)
        with clock("run"):
            meter.begin()
            timed = self._timer.time(session)
            read = meter.end(timed.calls * len(timed.seconds))
            creations = [session.seconds]
            if "compile_time" in wanted:
                creations = [
                    self._opens(file, settings, chosen.disabled, as_it_is=chosen.offline).seconds
                    for _ in range(CREATIONS)
                ]
        latency = statistics.median(within_three_sigma(timed.decisive))
        values = {
            "latency": latency,
            "throughput": self._program.batch / latency,
            "compile_time": statistics.median(creations),
            "model_size": self._size(file, offline=chosen.offline),
            **read,
        }
        samples = {**self._timer.named(timed, self._program.batch), "compile_time": tuple(creations)}
        if self._labels is not None:
            values[_ACCURACY] = accuracy(self._labels, [session.run(feed) for feed in self.feeds])
        elif _ACCURACY in wanted:
            # Of a model without labels: how like its own outputs a candidate's are.
            values[_ACCURACY] = statistics.fmean(
                similarity(session.run(each.feed), each.expected) for each in self._verifier.batches
            )
        if "peak_memory" in wanted:
            with clock("run"):
                values["peak_memory"] = self._peak(
                    file, settings, chosen.disabled, self.feeds[0], as_it_is=chosen.offline
                )
        return Measured(values, samples)

    def _size(self, file: Path, *, offline: bool) -> float:
        """Return the bytes of a model with its weights, wherever they are."""
        if file == self._program.file:
            return float(self._program.size)
        files = [file, *([weights_of(file)] if offline and weights_of(file).exists() else [])]
        return float(sum(each.stat().st_size for each in files))


def sandbox_of(
    program: GraphProgram, settings: SessionSettings, writes: Sequence[Path] = ()
) -> SandboxPolicy:
    """Return the sandbox of a process that rewrites a model and runs it."""
    largest = FILE_BYTES + _COPIES * program.size
    return SandboxPolicy.for_code(writes, gpu=settings.provider == "cuda", file_bytes=largest)


def limits_of(program: GraphProgram) -> Limits:
    """Return the limits of a worker that rewrites a model and runs it."""
    more = program.size / _PACE
    return Limits(
        transform=45 + more,
        build=20 + more,
        verify=20 + more,
        run=30 + more,
        worker=60 + more,
        memory_bytes=max(4 << 30, _COPIES_IN_MEMORY * program.size),
    )


def within_three_sigma(samples: Sequence[float]) -> Sequence[float]:
    """Leave out what is further than three standard deviations from the mean (section 5 of the paper)."""
    middle, spread = statistics.fmean(samples), statistics.pstdev(samples)
    return [each for each in samples if abs(each - middle) <= _SIGMAS * spread] or samples
