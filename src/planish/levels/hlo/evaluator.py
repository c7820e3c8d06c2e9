"""Evaluators of patched modules, which run in worker processes, and their specifications.

A module is transformed, compiled, scored and timed. The phases are the search, the comparison, and the errors
on data that the search has not seen. In the end both compilers run the finalists on the same examples: a
result on which they disagree does not count.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import (
    Candidate,
    CrossCheck,
    EvaluatorSpec,
    ExecutorFactory,
    Failed,
    Lost,
    Measured,
    Outcome,
    PlanishError,
    ProgramError,
    ScheduleError,
    SecondaryBaseline,
    StageClock,
    Task,
    evaluate_in_order,
    within,
)
from planish.levels.hlo.backend import (
    BackendError,
    CompiledFiles,
    Executable,
    HloBackend,
    compute,
    open_backend,
)
from planish.levels.hlo.edits import EditableModule, finished, identity_of
from planish.levels.hlo.ir.normal import entry_text
from planish.levels.hlo.machine import BACKENDS, versions
from planish.levels.hlo.patch import original, replay
from planish.levels.hlo.program import Program, read_program
from planish.levels.hlo.scored import ScoredProgram
from planish.levels.hlo.scoring.metrics import MetricError, NotFiniteError, check_suits, metric_of
from planish.levels.hlo.scoring.scorers import Scorer, Scores, Trainer, score_images, score_outputs
from planish.levels.hlo.workload import Workload
from planish.levels.hlo.workload.arguments import fit
from planish.levels.hlo.workload.data import unchanged_path
from planish.levels.hlo.workload.examples import LabeledExamples, NamedInputs, Part, first_call
from planish.levels.hlo.workload.spec import measured_as
from planish.measure import PairedTimer, SharedBaselineTime, Timer, Timing, deadline, time_call
from planish.sandbox import Limits
from planish.sandbox.confinement import SandboxPolicy
from planish.sandbox.scratch import shared_folder

_NUMBER = re.compile(r"dense<([^<>\"\[\]]+)> : (tensor<(?:\d+x)*b?f\d+>)")
_DECIDING = ("stablehlo.while", "stablehlo.case", "stablehlo.if", "stablehlo.power", "custom_call")
"""Operations that do other work where a number is another one."""
_TINY = 1e-30
"""Below it processors may be slow."""


def work_of(text: str) -> str:
    """Return a module's text with names for the floating-point numbers that do not change how long it takes.

    Modules of equal texts have the same operations, and differ in such numbers alone, as where a learning
    rate is another one. Numbers that are equal have one name, since a compiler computes once what is equal.
    Powers of two, 0 and what is not finite keep their values: compilers make simpler operations of some.
    """
    if any(name in text for name in _DECIDING):
        return text
    names = dict[float, int]()

    def named(found: re.Match[str]) -> str:
        value = _value(found[1])
        if value is None:
            return found[0]
        sign = "-" if value < 0 else ""
        return f"dense<{sign}number {names.setdefault(abs(value), len(names))}> : {found[2]}"

    return _NUMBER.sub(named, text)


def _value(number: str) -> float | None:
    """Read a number; None where another one may take another time."""
    try:
        value = float(number)
    except ValueError:  # such as 0xFF800000: infinite, or not a number
        return None
    power_of_two = abs(math.frexp(value)[0]) == 0.5
    return None if power_of_two or abs(value) < _TINY or not math.isfinite(value) else value


TIMING = Timing(budget_s=0.1, block_s=4e-3, fewest=5, most=25, slow_factor=math.inf)
LAST_TIMING = Timing(budget_s=0.2, block_s=4e-3, fewest=5, most=50, slow_factor=math.inf)
"""For the comparison at the end. Nothing is ever cut short: a slow module may have the least error."""

# A worker's memory grows by some 0.4 MB for each module that it compiled.
LIMITS = Limits(build=60, verify=30, run=40, worker=180, lifetime=1000)
END_LIMITS = Limits(build=60, verify=900, run=20, worker=900)
"""At the end training is whole, and there are more examples."""

KEPT = 32
"""Compiled modules that are kept where each is timed again and again."""

_OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory")


@dataclass(frozen=True)
class HloEvaluatorSpec:
    """Makes an evaluator in a worker.

    Args:
        cores: that the module may use.
        parts: on which the error is measured; the search's is `error` or `loss`, another
            that with the part's name: `error_final`.
        at_the_end: whether the search is over: the final part may be seen, and training is whole.
        timing: how long each candidate is timed; None: not at all.
        baseline_time: what the unchanged module takes, beside which each is timed; None: each is timed alone.
        remember: whether a module that was measured already is not measured again, whatever patch made it,
            and one that does the unchanged module's work with other numbers is not timed; else each is timed
            again, and what it was compiled to and its error are kept.
        compiled_files: where compiled modules are found and left, for other processes; None: nowhere.
    """

    program: ScoredProgram
    backend: str
    cores: int = 1
    parts: tuple[Part, ...] = ("search",)
    at_the_end: bool = False
    timing: Timing | None = TIMING
    baseline_time: SharedBaselineTime | None = None
    remember: bool = True
    compiled_files: CompiledFiles | None = None
    limits: Limits = LIMITS

    def __post_init__(self) -> None:
        if "final" in self.parts and not self.at_the_end:
            raise PlanishError("the final examples stay unseen until the search is over")

    @property
    def interleaved(self) -> bool:
        """True where candidates are timed interleaved with the unchanged module."""
        return self.timing is not None and self.baseline_time is not None

    @property
    def sandbox(self) -> SandboxPolicy:
        """The sandbox of a worker; all workers share a file with the baseline's time."""
        return SandboxPolicy.for_code([shared_folder()])

    def set_baseline(self, baseline: Outcome) -> None:
        """Set the known time of the unchanged module; see `planish.core.NeedsBaseline`."""
        if self.baseline_time is not None and isinstance(baseline, Measured):
            self.baseline_time.set(baseline.values["time_s"])

    def __call__(self) -> HloEvaluator:
        return HloEvaluator(self)


class HloEvaluator:
    """Evaluates patches of one module: compiles, scores and times them."""

    def __init__(self, spec: HloEvaluatorSpec, backend: HloBackend | None = None) -> None:
        self._spec, self._program = spec, spec.program.module
        self._backend = backend or open_backend(spec.backend, spec.cores, spec.compiled_files)
        self._text = _text(self._program)
        self._scorer = self._make_scorer()
        self._timer = self._make_timer()
        self._work = work_of(self._text) if spec.interleaved and spec.remember else ""
        self._known: dict[str, Outcome] = {}
        self._scored: OrderedDict[str, tuple[Executable, Scores]] = OrderedDict()
        self.notes = _notes(spec.program.workload)

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Apply the patch, compile the module, and measure its error and its time."""
        with clock("transform"):
            try:
                module = replay(self._program, candidate)
            except ScheduleError as error:
                return Failed("transform", "not legal", str(error))
            name, text = identity_of(module), entry_text(finished(module), module.function)
        # By what the module computes: many patches give the same one, and mutations often change nothing.
        if name not in self._known or not self._spec.remember:
            self._known[name] = self._tried(name, text, clock)
        return self._known[name]

    @cached_property
    def _unchanged(self) -> Executable:
        """The unchanged function that is evolved; raises PlanishError where the compiler refuses it."""
        return self._compiled(self._text, original(self._program).function)

    def _compiled(self, text: str, function: str) -> Executable:
        """Compile a function of the unchanged module; raises PlanishError where it is refused."""
        try:
            return self._backend.compile(text)
        except BackendError as error:
            what = f"the compiler '{self._spec.backend}' refuses function '{function}': {error.message}"
            raise PlanishError(what, "Choose another with backend=.") from error

    def _make_scorer(self) -> Scorer:
        """Make what scores; in a search modules that answer race against the unchanged one."""
        spec, backend, workload = self._spec, self._backend, self._spec.program.workload
        if workload.inputs is not None:
            inputs = NamedInputs(self._program, workload, at_the_end=spec.at_the_end)
            return score_outputs(backend, inputs, spec.parts, metric_of(workload), self._unchanged)
        fitted = fit(self._program, workload)
        examples = LabeledExamples(workload, fitted, at_the_end=spec.at_the_end)
        if workload.training is None:
            # Answers are compared with its own: at the end, and in a search that times it beside them, too.
            compares = spec.at_the_end or (spec.remember and spec.interleaved)
            unchanged, racing = self._unchanged if compares else None, not spec.at_the_end
            return score_images(backend, workload, fitted, examples, spec.parts, unchanged, racing=racing)
        function = fitted.predict.function
        predict = self._compiled(_text(self._program, function), function)
        return Trainer(backend, workload, fitted, examples, spec.parts, predict, whole=spec.at_the_end)

    def _make_timer(self) -> Timer | None:
        """Return a timer of candidates: none, alone, or interleaved with the baseline."""
        spec = self._spec
        if spec.timing is None:
            return None
        if spec.baseline_time is None:
            return partial(time_call, timing=spec.timing)
        paired = PairedTimer(spec.baseline_time, spec.timing, one_core=spec.cores == 1)
        baseline = self._unchanged
        # Begun anew each time: the baseline is timed on the first steps of a training, as candidates are.
        return lambda run: paired.time(run, self._scorer.runs(baseline))

    def _tried(self, name: str, text: str, clock: StageClock) -> Outcome:
        executable, scores = self._scored.get(name, (None, None))
        try:
            with clock("build"):
                # In the comparison at the end each candidate comes in every round: compiled once, it is only
                # timed again.
                if executable is None:
                    is_known = text == self._text and "_unchanged" in self.__dict__
                    executable = self._unchanged if is_known else self._backend.compile(text)
        except BackendError as error:
            return Failed("build", "refused by the compiler", error.message)
        try:
            return self._measured(name, text, executable, scores, clock)
        except NotFiniteError as error:
            return Failed("verify", "not finite", str(error))
        except MetricError as error:
            return Failed("verify", "the metric fails", str(error))
        except BackendError as error:
            if any(words in error.message for words in _OUT_OF_MEMORY):
                return Failed("run", "out of memory", error.message)
            return Failed("run", "failed", error.message)

    def _measured(
        self, name: str, text: str, executable: Executable, scores: Scores | None, clock: StageClock
    ) -> Outcome:
        spec, known_s = self._spec, None
        if spec.baseline_time and self._work and work_of(text) == self._work:
            # It does the unchanged module's work, whose time is known unless this is the first one.
            known_s = spec.baseline_time.known
        timer, timed = self._timer if known_s is None else None, None
        if scores is None:
            scores, timed = self._scorer.score(executable, clock, timer)
            if not spec.remember:
                self._scored[name] = executable, scores
                if len(self._scored) > KEPT:
                    self._scored.popitem(last=False)
        elif timer:
            timed = self._scorer.time(executable, clock, timer)
        objective = measured_as(spec.program.workload)
        values = {error_name(objective, part): score.error for part, score in scores.items()}
        values |= {
            within(error_name(objective, p)): s.within for p, s in scores.items() if s.within is not None
        }
        if known_s is not None:
            return Measured({"time_s": known_s, **values})
        if timed is None:
            return Measured(values)
        # What is timed alone is not in the baseline's seconds; the clock says enough of it.
        samples = timed.named({"time_s": float}, one_core=spec.cores == 1 and timed.paired)
        return Measured({"time_s": timed.median, **values}, samples)


_NOTES = {
    "digits": "measured on scikit-learn's digits; name real data by the option data, or by PLANISH_DATA",
    "made": "measured on generated data; name real data by the option data, or by PLANISH_DATA",
}


def error_name(objective: str, part: Part) -> str:
    """Name the error or loss on a part among the values of an outcome."""
    return objective if part == "search" else f"{objective}_{part}"


def _notes(workload: Workload) -> tuple[str, ...]:
    if workload.inputs is not None and not workload.data.digest:
        return ("measured on random inputs; name real ones by the option data, a file FILE.npz",)
    return (_NOTES[workload.data.stand_in],) if workload.data.stand_in else ()


def _text(program: Program, function: str = "") -> str:
    """Return the text of a function of the unchanged module, else of the one that is evolved."""
    module = original(program)
    return entry_text(module.root, function or module.function)


END_PARTS: tuple[Part, ...] = ("search", "validation", "final")


def evaluator_spec_of(task: Task[ScoredProgram], *, final: bool = False) -> HloEvaluatorSpec:
    """Make the spec for a task's evaluator; see `planish.core.Level.evaluator`.

    Raises:
        PlanishError: an objective is not what the workload's metric gives.
    """
    measured = ("time_s", measured_as(task.program.workload))
    for objective in task.objectives:
        if objective.name not in measured:
            what = f"the workload's metric gives no '{objective.name}'"
            raise PlanishError(what, f'It gives objective="{measured[1]}".')
    return HloEvaluatorSpec(
        task.program,
        task.target.toolchain["backend"],
        task.target.cores,
        timing=LAST_TIMING if final else TIMING,
        baseline_time=SharedBaselineTime(),
        remember=not final,
        compiled_files=_compiled_files() if final else None,
    )


def end_evaluator_spec(task: Task[ScoredProgram], parts: tuple[Part, ...] = END_PARTS) -> HloEvaluatorSpec:
    """Make the spec for what is measured once the search is over: errors, after whole trainings."""
    return HloEvaluatorSpec(
        task.program,
        task.target.toolchain["backend"],
        task.target.cores,
        parts,
        at_the_end=True,
        timing=None,
        compiled_files=_compiled_files(),
        limits=END_LIMITS,
    )


@cache
def _compiled_files() -> CompiledFiles:
    """Return the folder for what is compiled at the end of a run, one for all fresh processes."""
    return CompiledFiles()


def scores_at_the_end(
    task: Task[ScoredProgram],
    candidates: Sequence[Candidate],
    start: ExecutorFactory,
    parts: tuple[Part, ...] = END_PARTS,
) -> list[Outcome]:
    """Measure the errors of candidates on each part, the final one too.

    The final part comes after the others of all candidates: those decide, and there may be no time for all.
    Trainings, which take most of the time, are scored on all parts at once.

    Returns:
        For each candidate its errors, as `error`, `error_validation` and `error_final`, or a failure; it is
        lost where the deadline came before, and without the last error where it came before that.

    Raises:
        PlanishError: the data is missing, or does not fit.
    """
    others: tuple[Part, ...] = tuple(part for part in parts if part != "final")
    last: tuple[Part, ...] = tuple(part for part in parts if part == "final")
    at_once = task.program.workload.training is not None or not others or not last
    first, *more = (parts,) if at_once else (others, last)
    found = _outcomes(end_evaluator_spec(task, first), candidates, start)
    for group in more:
        found = [*map(_joined, found, _outcomes(end_evaluator_spec(task, group), candidates, start))]
    return found


def _outcomes(spec: EvaluatorSpec, candidates: Sequence[Candidate], start: ExecutorFactory) -> list[Outcome]:
    """Evaluate candidates; what the deadline came before is lost."""
    with start(spec) as executor:
        found = evaluate_in_order(executor, candidates, deadline())
    return [each.outcome if each else Lost("worker", "not measured") for each in found]


def _joined(before: Outcome, outcome: Outcome) -> Outcome:
    """Join the values of two outcomes; one that was lost the second time keeps the first."""
    if not isinstance(before, Measured) or isinstance(outcome, Lost):
        return before
    if not isinstance(outcome, Measured):
        return outcome
    return replace(before, values={**before.values, **outcome.values})


def original_of(task: Task[ScoredProgram]) -> SecondaryBaseline:
    """Return another form of the module, which the workload names, to be measured as the module is.

    Raises:
        ProgramError: it is not there, is another one than when the task was made, or does not fit.
    """
    workload = task.program.workload
    assert workload.original is not None
    # Another form than the one that the task names would be reported as a result of this task.
    what = "the operations of the original module"
    try:
        path = unchanged_path(workload.original.path, workload.original.digest, what)
    except OSError as error:
        what = f"cannot read '{workload.original.path}': {error.strerror}"
        raise ProgramError(what, "Check the path.") from error
    module = read_program(path)
    check_suits(module, workload)
    alone = replace(evaluator_spec_of(task, final=True), baseline_time=None)
    spec = replace(alone, program=ScoredProgram(module, workload), limits=END_LIMITS)
    return SecondaryBaseline(path.name, Candidate(), spec)


TOLERANCE = 1e-3
"""Tolerated difference of results, as a share of the largest number of each; see `tolerated`."""

_STEPS = {"bf16": 2.0**-7, "f16": 2.0**-10, "i8": 2.0**-7}
"""Narrow numbers, and how far the next one is, as a share of the largest of its kind or of 1."""

DISAGREE = "the back ends disagree"

_LIMITS = Limits(build=120, verify=60, worker=180)


def cross_check(
    task: Task[ScoredProgram],
    candidates: Sequence[Candidate],
    start: ExecutorFactory,
    tolerance: float = TOLERANCE,
) -> list[Outcome]:
    """Run patched modules once by every back end, on the same examples of the search.

    Returns:
        For each candidate its `difference` as a share; or a failure "the back ends disagree", or why one of
        them does not run it; it is lost where the deadline came before.

    Raises:
        TargetError: a back end is not installed.
        PlanishError: the data is missing, or does not fit.
    """
    for name in BACKENDS:
        # Both must be there before a worker starts: a missing one is an error of the machine, not of a
        # candidate.
        versions(name)
    return _outcomes(Comparing(task.program, tolerance), candidates, start)


def cross_checks(
    task: Task[ScoredProgram], candidates: Sequence[Candidate], start: ExecutorFactory
) -> list[CrossCheck]:
    """Return for each patched module whether the back ends agree on it, by `cross_check`."""
    return [*map(agreement, cross_check(task, candidates, start))]


def agreement(outcome: Outcome) -> CrossCheck:
    """Read an outcome of `cross_check`."""
    if isinstance(outcome, Measured):
        return CrossCheck(agrees=True, difference=outcome.values["difference"])
    why = f"{outcome.reason}: {outcome.detail}" if outcome.detail else outcome.reason
    # Only a difference is an objection: a module that one compiler does not run may still be right.
    return CrossCheck(agrees=False if outcome.reason == DISAGREE else None, why=why)


@dataclass(frozen=True)
class Comparing:
    """Makes what compares the back ends, in a worker."""

    program: ScoredProgram
    tolerance: float = TOLERANCE
    limits: Limits = _LIMITS

    @property
    def sandbox(self) -> SandboxPolicy:
        """The sandbox of the worker."""
        return SandboxPolicy.for_code()

    def __call__(self) -> Comparison:
        return Comparison(self)


class Comparison:
    """Compares what back ends compute of patched modules; by default all that there are."""

    def __init__(self, spec: Comparing, backends: Sequence[HloBackend] = ()) -> None:
        self._spec, self._program = spec, spec.program
        self._types, self._arrays = first_call(self._program.module, self._program.workload)
        self._backends = backends or [open_backend(name) for name in BACKENDS]

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Run a patched module by each back end, and compare the results."""
        with clock("transform"):
            try:
                module = replay(self._program.module, candidate)
            except ScheduleError as error:
                return Failed("transform", "not legal", str(error))
            text = entry_text(finished(module), module.function)
        results: list[list[NDArray[Any]]] = []
        for backend in self._backends:
            try:
                with clock("build"):
                    executable = backend.compile(text)
                with clock("verify"):
                    results.append(compute(backend, executable, self._types, self._arrays))
            except BackendError as error:
                return Failed("verify", f"does not run by {backend.name}", error.message)
        found = [difference(a, b) for a, b in zip(*results, strict=True)]
        if max(found) > tolerated(module, self._spec.tolerance):
            position = int(np.argmax(found))
            what = f"result {position} differs by {found[position]:.3g} of its largest number"
            return Failed("verify", DISAGREE, what)
        return Measured({"difference": max(found)})


def tolerated(module: EditableModule, tolerance: float = TOLERANCE) -> float:
    """Return how far apart results may be: by a step of the narrowest numbers that a module reads, if more.

    Two compilers add in different orders; a sum that lies between two narrow numbers is rounded up by one of
    them, and down by the other.
    """
    read = {type_.element for info in module.infos.values() for type_ in info.operands if type_}
    return max([tolerance, *(_STEPS.get(element, 0.0) for element in read)])


def difference(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Return the largest difference as a share of the largest number; infinite where one alone is NaN."""
    a, b = (array.astype(np.float64) for array in (one, other))
    finite = np.isfinite(a) & np.isfinite(b)
    # Infinities of the same sign are equal, too.
    same = np.where(np.isnan(a), np.isnan(b), a == b)
    if not (finite | same).all():
        return np.inf
    if not finite.any():
        return 0.0
    # The smallest normal number, so that zeros are not divided by zero.
    largest = max(np.abs(a[finite]).max(), np.abs(b[finite]).max(), np.finfo(np.float32).tiny)
    return float(np.abs(a[finite] - b[finite]).max() / largest)
