"""Scorers of modules: the error and the time of answers, or of a training step and what it trains.

During a search a module that answers races against the unchanged one: what has clearly lost by the first
examples is not run on the others. In the comparison, the error comes with how well its difference to the
unchanged module is known.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import Objective, ProgramError, StageClock
from planish.core.front import bounds
from planish.levels.hlo.backend import DeviceArray, Executable, HloBackend, device_argument
from planish.levels.hlo.ir.mlir import TensorType
from planish.levels.hlo.scoring.metrics import Metric, NotFiniteError, metric_of, right_answers
from planish.levels.hlo.workload import Workload
from planish.levels.hlo.workload.arguments import Fitted, RoleCall, first_parameters
from planish.levels.hlo.workload.examples import Arguments, Calls, LabeledExamples, NamedInputs, Part
from planish.levels.hlo.workload.spec import top_of
from planish.measure import Runs, Samples, Timer, repeated

CHANCE = 1e-6
"""Bound of the chance, at each look, that a useful module is taken for a useless one."""

_ERROR = (Objective("error", exact=True, share=True),)


@dataclass(frozen=True)
class Race:
    """The error up to which a module is useful: twice the unchanged one's, or half its right answers."""

    limit: float

    @staticmethod
    def against(error: float) -> Race:
        """Make the race against the unchanged module, of a known error."""
        return Race(*bounds((error,), _ERROR))

    def lost(self, error: float, seen: int) -> bool:
        """Return whether an error on a number of random examples is beyond the limit on others too.

        By Chernoff's bound: where q of all are wrong, p > q of n are with a chance below exp(-n KL(p, q)).
        """
        return error > self.limit and seen * _divergence(error, self.limit) > math.log(1 / CHANCE)


def _divergence(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of an event's chance p from another, q."""
    if q <= 0 or q >= 1:
        return math.inf
    return sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


NORMAL = 1.959964
"""Standard deviations within which 95 % of a normal distribution lie."""


def error_half_width(right: NDArray[np.bool_], before: NDArray[np.bool_]) -> float:
    """Return half the width of the 95 % interval of the difference between two errors.

    Only examples on which one of two modules alone is right separate them (McNemar 1947), so the difference
    is known better than either error. The interval is Wald's with half an example more of each of four kinds
    (Agresti and Min, Simple improved confidence intervals for comparing matched proportions, 2005).

    Returns:
        A share: 0.003 is 0.3 points.
    """
    lost, won = (float((a & ~b).sum()) + 0.5 for a, b in ((before, right), (right, before)))
    count = len(right) + 2
    return NORMAL * math.sqrt(lost + won - (lost - won) ** 2 / count) / count


@dataclass(frozen=True)
class Score:
    """A metric's value.

    Args:
        error: or loss.
        within: so far off the difference to the unchanged module may be, by a 95 % interval; None: not known.
    """

    error: float
    within: float | None = None


Scores = Mapping[Part, Score]
"""By the part of the examples."""


def device_parameters(backend: HloBackend, workload: Workload, call: RoleCall) -> dict[int, DeviceArray]:
    """Copy the parameters that a function starts with to the back end; returns them by position, in order."""
    arrays = zip(call.parameters, first_parameters(workload, call), strict=True)
    return device_arguments(backend, call.arguments, dict(arrays))


def device_arguments(
    backend: HloBackend, types: Sequence[TensorType], arrays: Arguments
) -> dict[int, DeviceArray]:
    """Copy arguments of a function to the back end; returns them by position."""
    return {i: device_argument(backend, types[i], array, i) for i, array in arrays.items()}


class Prediction:
    """Examples that a function answers for, and what its answers are compared with.

    Args:
        types: of the function's arguments.
        calls: of the function on the examples.
        metric: compares answers with the targets.

    Attributes:
        targets: an array for each result that is compared; those of the calls, if they have any.
    """

    def __init__(
        self, backend: HloBackend, types: Sequence[TensorType], calls: Calls, metric: Metric
    ) -> None:
        self._backend, self._calls, self._metric = backend, calls, metric
        self._varying = [device_arguments(backend, types, call) for call in calls.varying]
        self.targets = [] if calls.targets is None else [calls.targets]

    def arguments(self, fixed: Mapping[int, DeviceArray], call: int = 0) -> list[DeviceArray]:
        """Put the arguments of a call together."""
        every = {**fixed, **self._varying[call]}
        return [every[position] for position in range(len(every))]

    def error(self, predict: Executable, fixed: Mapping[int, DeviceArray], race: Race | None = None) -> float:
        """Return the error of all examples; of the first ones where a race is lost by them."""
        answers: list[Sequence[NDArray[Any]]] = []
        for answer in self._run(predict, fixed):
            answers.append(answer)
            # At powers of two: as few looks as can be, each of which may err.
            if race is not None and len(answers) & (len(answers) - 1) == 0:
                with suppress(NotFiniteError):
                    error, seen = self._score(answers), self._calls.seen(len(answers))
                    if race.lost(error, seen):
                        return error
        return self._score(answers)

    def right(self, predict: Executable, fixed: Mapping[int, DeviceArray], most: int) -> NDArray[np.bool_]:
        """Return for each example whether its label is among the k largest numbers of the answer."""
        return right_answers(self.answers(predict, fixed)[0], self.targets[0], most)

    def answers(self, executable: Executable, fixed: Mapping[int, DeviceArray]) -> list[NDArray[Any]]:
        """Run all calls; returns an array for each result, by row or else by call."""
        return self._joined(list(self._run(executable, fixed)))

    def _run(
        self, executable: Executable, fixed: Mapping[int, DeviceArray]
    ) -> Iterator[Sequence[NDArray[Any]]]:
        for call in range(len(self._varying)):
            results = executable(self.arguments(fixed, call))[: self._calls.scored]
            # Copied: the back end may use the memory of a result again.
            yield [np.array(self._backend.get(result)) for result in results]

    def _joined(self, answers: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[Any]]:
        return [self._calls.joined(each) for each in zip(*answers, strict=True)]

    def _score(self, answers: Sequence[Sequence[NDArray[Any]]]) -> float:
        seen = self._calls.seen(len(answers))
        return self._metric(self._joined(answers), [targets[:seen] for targets in self.targets])


class Scorer(ABC):
    """Scores compiled modules: by their error on parts of the data, and by their time."""

    def score(
        self, executable: Executable, clock: StageClock, timer: Timer | None
    ) -> tuple[Scores, Samples | None]:
        """Return the error on each part, and the times of a run.

        Raises:
            NotFiniteError: no answer is finite.
            MetricError: the metric fails.
            BackendError: a run failed.
        """
        with clock("verify"):
            scores = self.scores(executable)
        return scores, self.time(executable, clock, timer) if timer else None

    def time(self, executable: Executable, clock: StageClock, timer: Timer) -> Samples:
        """Return the times of a run; raises BackendError where one failed."""
        with clock("run"):
            return timer(self.runs(executable))

    @abstractmethod
    def scores(self, executable: Executable) -> Scores:
        """Return the error on each part; raises as `score` does."""

    @abstractmethod
    def runs(self, executable: Executable) -> Runs:
        """Return a function that runs a module n times: on a batch, a call, or steps of a new training."""


class Inference(Scorer):
    """Scores the answers of a function.

    Args:
        predictions: the examples of each part on which its error is measured.
        fixed: arguments that are the same in each call.
        most: how many of an answer's largest numbers count as right; 0 where a loss is measured.
        unchanged: the function as it was, compiled, with whose answers its own are compared; None: alone.
        racing: whether an error need not be known that makes a module useless beside the unchanged one; else
            all are measured on all examples, and reported with how well the difference is known.
    """

    def __init__(
        self,
        predictions: Mapping[Part, Prediction],
        fixed: Mapping[int, DeviceArray],
        most: int = 0,
        unchanged: Executable | None = None,
        *,
        racing: bool = True,
    ) -> None:
        self._predictions, self._fixed, self._most, self._unchanged = predictions, fixed, most, unchanged
        self._races: dict[Part, Race] = {}
        self._right: dict[Part, NDArray[np.bool_]] = {}
        if unchanged is None or not most:  # a loss has no bound
            return
        for part, each in predictions.items():
            with suppress(NotFiniteError):  # reported when the unchanged function is scored
                right = each.right(unchanged, fixed, most)
                if racing:
                    self._races[part] = Race.against(float(1 - right.mean()))
                else:
                    self._right[part] = right

    def scores(self, executable: Executable) -> Scores:
        return {part: self._score(part, executable) for part in self._predictions}

    def _score(self, part: Part, executable: Executable) -> Score:
        prediction, before = self._predictions[part], self._right.get(part)
        if before is None:
            return Score(prediction.error(executable, self._fixed, self._races.get(part)))
        known = executable is self._unchanged
        right = before if known else prediction.right(executable, self._fixed, self._most)
        return Score(float(1 - right.mean()), error_half_width(right, before))

    def runs(self, executable: Executable) -> Runs:
        prediction = next(iter(self._predictions.values()))
        return repeated(partial(executable, prediction.arguments(self._fixed)))


def score_images(
    backend: HloBackend,
    workload: Workload,
    fitted: Fitted,
    examples: LabeledExamples,
    parts: Sequence[Part],
    unchanged: Executable | None = None,
    *,
    racing: bool = True,
) -> Inference:
    """Make the scorer of a function that predicts; see `Inference`."""
    call, metric = fitted.evolved, metric_of(workload)
    predictions: dict[Part, Prediction] = {
        part: Prediction(backend, call.arguments, examples.calls(part, call), metric) for part in parts
    }
    fixed, most = device_parameters(backend, workload, call), top_of(workload.metric)
    return Inference(predictions, fixed, most, unchanged, racing=racing)


def score_outputs(
    backend: HloBackend, inputs: NamedInputs, parts: Sequence[Part], metric: Metric, unchanged: Executable
) -> Inference:
    """Make the scorer of a function's answers to some calls.

    The metric compares them with the targets of the data, else with the outputs of the unchanged function.
    """
    types, predictions = inputs.takes.arguments, dict[Part, Prediction]()
    fixed = device_arguments(backend, types, inputs.fixed)
    for part in parts:
        predictions[part] = prediction = Prediction(backend, types, inputs.calls(part), metric)
        if not prediction.targets:
            prediction.targets = prediction.answers(unchanged, fixed)
    return Inference(predictions, fixed)


class Trainer(Scorer):
    """Scores a step of training.

    Args:
        predict: the compiled function whose answers are scored.
        whole: whether as many steps are trained as at the end of a search.
    """

    def __init__(
        self,
        backend: HloBackend,
        workload: Workload,
        fitted: Fitted,
        examples: LabeledExamples,
        parts: Sequence[Part],
        predict: Executable,
        *,
        whole: bool,
    ) -> None:
        training, self._fitted, self._call = workload.training, fitted, fitted.evolved
        assert training is not None
        self._predict = predict
        # Only whole batches: a step takes no fewer examples than its type says.
        batches = examples.count("train") // self._call.batch
        order = batch_order(batches, training.epochs, training.seed)
        if not whole and training.search_steps:
            order = order[: training.search_steps]
        self._batches = _device_batches(backend, self._call, examples, order)
        self._first = device_parameters(backend, workload, self._call)
        metric = metric_of(workload)
        self._predictions: dict[Part, Prediction] = {
            part: Prediction(backend, fitted.predict.arguments, examples.calls(part, fitted.predict), metric)
            for part in parts
        }

    def score(
        self, executable: Executable, clock: StageClock, timer: Timer | None
    ) -> tuple[Scores, Samples | None]:
        """Train, and return the error on each part, and the times of the first steps."""
        training_run, samples = self._begin(executable), None
        if timer is not None:
            with clock("run"):
                samples = timer(training_run.advance)
        with clock("verify"):
            return self._finished(training_run), samples

    def scores(self, executable: Executable) -> Scores:
        return self._finished(self._begin(executable))

    def _finished(self, training_run: TrainingRun) -> Scores:
        training_run.finish()
        predict, names = self._fitted.predict, [self._call.names[position] for position in self._first]
        trained = dict(zip(names, training_run.parameters, strict=True))
        fixed = {position: trained[predict.names[position]] for position in predict.parameters}
        return {part: Score(each.error(self._predict, fixed)) for part, each in self._predictions.items()}

    def runs(self, executable: Executable) -> Runs:
        return self._begin(executable).advance

    def _begin(self, executable: Executable) -> TrainingRun:
        return TrainingRun(executable, self._call, list(self._first.values()), self._batches)


class TrainingRun:
    """One training.

    Attributes:
        parameters: after the last step; further steps do not change them.
    """

    def __init__(
        self,
        step: Executable,
        call: RoleCall,
        first: Sequence[DeviceArray],
        batches: Sequence[Mapping[int, DeviceArray]],
    ) -> None:
        self.parameters = list(first)
        self._step, self._batches, self._done = step, batches, 0
        self._positions = call.parameters
        self._arguments: list[DeviceArray] = [None] * len(call.arguments)

    def advance(self, steps: int) -> None:
        """Take steps; once the training is over they repeat its batches, and their results are dropped."""
        arguments = self._arguments
        for _ in range(steps):
            for position, value in zip(self._positions, self.parameters, strict=True):
                arguments[position] = value
            for position, value in self._batches[self._done % len(self._batches)].items():
                arguments[position] = value
            results = self._step(arguments)
            if self._done < len(self._batches):
                self.parameters = list(results[: len(self.parameters)])
            self._done += 1

    def finish(self) -> None:
        """Take the steps that are left."""
        self.advance(max(0, len(self._batches) - self._done))


def batch_order(batches: int, epochs: int, seed: int) -> NDArray[np.int64]:
    """Return the number of the batch of each step: all of them in each epoch, shuffled.

    Raises:
        ProgramError: there is no whole batch.
    """
    if batches < 1:
        what = "there are fewer examples to train on than one step takes"
        raise ProgramError(what, "Give more, in [split].")
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.permutation(batches) for _ in range(epochs)])


def _device_batches(
    backend: HloBackend, call: RoleCall, examples: LabeledExamples, order: NDArray[np.int64]
) -> list[dict[int, DeviceArray]]:
    """Copy each batch that is needed to the back end, once, and return those of each step."""
    needed, steps = np.unique(order, return_inverse=True)
    examples_of = (needed[:, None] * call.batch + np.arange(call.batch)).ravel()
    calls = examples.calls("train", call, examples_of).varying
    batches = [device_arguments(backend, call.arguments, each) for each in calls]
    return [batches[step] for step in steps.tolist()]
