"""Transforms, compiles, scores and times one module; lives in a worker process."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property, partial

from planish.core import Candidate, Failed, Measured, Outcome, PlanishError, ScheduleError, StageClock, within
from planish.hlo.backend import Backend, BackendError, CompiledFiles, Executable, open_backend
from planish.hlo.ir import entry_text
from planish.hlo.patch import original, replay
from planish.hlo.same_work import work_of
from planish.hlo.scored import ScoredProgram
from planish.hlo.scoring import (
    Calling,
    Inference,
    MetricError,
    NotFiniteError,
    Scores,
    Trainer,
    metric_of,
)
from planish.hlo.workload import Part, Parts, Workload, WorkloadCalls, fit
from planish.hlo.workload.metric import measured_as
from planish.isolation import Limits
from planish.isolation.cage import Cage
from planish.isolation.scratch import shared_folder
from planish.measure import Beside, Timer, Timing, Yardstick, time_call

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
        program: the original module and its workload.
        backend: the back end's name.
        cores: that the module may use.
        parts: on which the error is measured; the search's is `error` or `loss`, another
            that with the part's name: `error_final`.
        at_the_end: whether the search is over: the final part may be seen, and training is whole.
        timing: how long each candidate is timed; None: not at all.
        yardstick: what the unchanged module takes, beside which each is timed; None: each is timed alone.
        remember: whether a module that was measured already is not measured again, whatever patch made it,
            and one that does the unchanged module's work with other numbers is not timed; else each is timed
            again, and what it was compiled to and its error are kept.
        kept: where compiled modules are found and left, for other processes; None: nowhere.
        limits: of one evaluation.
    """

    program: ScoredProgram
    backend: str
    cores: int = 1
    parts: tuple[Part, ...] = ("search",)
    at_the_end: bool = False
    timing: Timing | None = TIMING
    yardstick: Yardstick | None = None
    remember: bool = True
    kept: CompiledFiles | None = None
    limits: Limits = LIMITS

    def __post_init__(self) -> None:
        if "final" in self.parts and not self.at_the_end:
            raise PlanishError("the final examples stay unseen until the search is over")

    @property
    def beside(self) -> bool:
        """Whether candidates are timed in turns with the unchanged module."""
        return self.timing is not None and self.yardstick is not None

    @property
    def cage(self) -> Cage:
        """How a worker is confined; all write down what the baseline takes."""
        return Cage.for_code([shared_folder()])

    def anchor(self, baseline: Outcome) -> None:
        """Let the unchanged module take the seconds that are known of it; see `planish.core.CanAnchor`."""
        if self.yardstick is not None and isinstance(baseline, Measured):
            self.yardstick.set(baseline.values["time_s"])

    def __call__(self) -> _Evaluator:
        return _Evaluator(self)


class _Evaluator:
    """Evaluates patches of one module.

    Attributes:
        notes: that the data is a stand-in.
    """

    def __init__(self, spec: HloEvaluatorSpec) -> None:
        self._spec = spec
        self._module = spec.program.module
        self._backend = open_backend(spec.backend, spec.cores, spec.kept)
        self._unchanged = _Unchanged(spec, self._backend)
        baseline = self._unchanged.executable if spec.beside else None
        self._scorer = _scorer(spec, self._backend, self._unchanged)
        self._timer = self._timed_by(spec, baseline)
        self._work = work_of(self._unchanged.text) if spec.beside and spec.remember else ""
        self._known: dict[str, Outcome] = {}
        self._scored: OrderedDict[str, tuple[Executable, Scores]] = OrderedDict()
        self.notes = _notes(spec.program.workload)

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Apply the patch, compile the module, and measure its error and its time."""
        with clock("transform"):
            try:
                draft = replay(self._module, candidate)
            except ScheduleError as error:
                return Failed("transform", "not legal", str(error))
            name, text = draft.identity(), entry_text(draft.finished(), draft.function)
        # By what the module computes: many patches give the same one, and mutations often change nothing.
        if name not in self._known or not self._spec.remember:
            self._known[name] = self._tried(name, text, clock)
        return self._known[name]

    def _tried(self, name: str, text: str, clock: StageClock) -> Outcome:
        executable, scores = self._scored.get(name, (None, None))
        try:
            with clock("build"):
                # In the comparison at the end each candidate comes in every round: compiled once, it is only
                # timed again.
                executable = executable or self._unchanged.known(text) or self._backend.compile(text)
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

    def _timed_by(self, spec: HloEvaluatorSpec, baseline: Executable | None) -> Timer | None:
        """Give how candidates are timed: not, alone, or beside the baseline, which is compiled once."""
        if spec.timing is None:
            return None
        if spec.yardstick is None or baseline is None:
            return partial(time_call, timing=spec.timing)
        beside = Beside(spec.yardstick, spec.timing, one_core=spec.cores == 1)
        # Begun anew each time: the baseline is timed on the first steps of a training, as candidates are.
        return lambda run: beside.time(run, self._scorer.runs(baseline))

    def _measured(
        self, name: str, text: str, executable: Executable, scores: Scores | None, clock: StageClock
    ) -> Outcome:
        known_s = self._known_s(text)
        timer = self._timer if known_s is None else None
        if scores is None:
            scores, timed = self._scorer.score(executable, clock, timer)
            self._keep(name, executable, scores)
        else:
            timed = self._scorer.time(executable, clock, timer) if timer else None
        name = measured_as(self._spec.program.workload)
        values = {error_name(name, part): score.error for part, score in scores.items()}
        values |= {within(error_name(name, p)): s.within for p, s in scores.items() if s.within is not None}
        if known_s is not None:
            return Measured({"time_s": known_s, **values})
        if timed is None:
            return Measured(values)
        # What is timed alone is not in the baseline's seconds; the clock tells enough of it.
        samples = timed.named({"time_s": float}, one_core=self._spec.cores == 1 and timed.paired)
        return Measured({"time_s": timed.median, **values}, samples)

    def _known_s(self, text: str) -> float | None:
        """Give the unchanged module's seconds for one that does the same work; None: it is to be timed."""
        yardstick = self._spec.yardstick
        return yardstick.known if yardstick and self._work and work_of(text) == self._work else None

    def _keep(self, name: str, executable: Executable, scores: Scores) -> None:
        if not self._spec.remember:
            self._scored[name] = executable, scores
            if len(self._scored) > KEPT:
                self._scored.popitem(last=False)


_NOTES = {
    "digits": "measured on scikit-learn's digits; name real data with --data or by PLANISH_DATA",
    "made": "measured on made data; name real data with --data or by PLANISH_DATA",
}


def error_name(objective: str, part: Part) -> str:
    """Name the error or loss on a part among the values of an outcome."""
    return objective if part == "search" else f"{objective}_{part}"


def _notes(workload: Workload) -> tuple[str, ...]:
    if workload.inputs is not None and not workload.data.digest:
        return ("measured on random inputs; name real ones with --data FILE.npz",)
    return (_NOTES[workload.data.stand_in],) if workload.data.stand_in else ()


class _Unchanged:
    """The function that is evolved, as it was; compiled once, where somebody asks for it.

    Attributes:
        text: the module that the back end compiles.
    """

    def __init__(self, spec: HloEvaluatorSpec, backend: Backend) -> None:
        self.text = _text(spec)
        self._spec, self._backend = spec, backend

    @cached_property
    def executable(self) -> Executable:
        """What it was compiled to; raises PlanishError where the compiler refuses it."""
        return _compiled(self._spec, self._backend, self.text)

    def known(self, text: str) -> Executable | None:
        """Give what a text was compiled to, where it is this one's; None where that is not compiled yet."""
        return self.__dict__.get("executable") if text == self.text else None


def _scorer(spec: HloEvaluatorSpec, backend: Backend, unchanged: _Unchanged) -> Inference | Trainer | Calling:
    """Make what scores; in a search modules that answer race against the unchanged one."""
    module, workload = spec.program.module, spec.program.workload
    if workload.inputs is not None:
        calls = WorkloadCalls(module, workload, at_the_end=spec.at_the_end)
        return Calling(backend, calls, spec.parts, metric_of(workload), unchanged.executable)
    fitted = fit(module, workload)
    examples = Parts(workload, fitted, at_the_end=spec.at_the_end)
    if workload.training is None:
        # Beside it answers are judged: at the end, and in a search whose times are beside it too.
        judged = unchanged.executable if spec.at_the_end or (spec.remember and spec.beside) else None
        racing = not spec.at_the_end
        return Inference(backend, workload, fitted, examples, spec.parts, judged, racing=racing)
    function = fitted.predict.function
    predict = _compiled(spec, backend, _text(spec, function), function)
    return Trainer(backend, workload, fitted, examples, spec.parts, predict, whole=spec.at_the_end)


def _compiled(spec: HloEvaluatorSpec, backend: Backend, text: str, function: str = "") -> Executable:
    """Compile a function of the unchanged module; raises PlanishError where it is refused."""
    try:
        return backend.compile(text)
    except BackendError as error:
        named = function or original(spec.program.module).function
        what = f"the compiler '{spec.backend}' refuses function '{named}': {error.message}"
        raise PlanishError(what, "Choose another with --backend.") from error


def _text(spec: HloEvaluatorSpec, function: str = "") -> str:
    """Give the text of a function of the unchanged module, else of the one that is evolved."""
    draft = original(spec.program.module)
    return entry_text(draft.root, function or draft.function)
