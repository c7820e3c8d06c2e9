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
from planish.levels.hlo.backend import Backend, DeviceArray, Executable, device_argument
from planish.levels.hlo.scoring.metrics import Metric, NotFiniteError, metric_of, right_answers
from planish.levels.hlo.workload import Workload
from planish.levels.hlo.workload.arguments import Fitted, RoleCall, first_parameters, labels_as
from planish.levels.hlo.workload.examples import Arguments, Labeled, Part, Parts, WorkloadCalls
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
        """Return whether an error on so many random examples is beyond the limit on others too.

        By Chernoff's bound: where q of all are wrong, p > q of n are with a chance below exp(-n KL(p, q)).
        """
        return error > self.limit and seen * _divergence(error, self.limit) > math.log(1 / CHANCE)


def _divergence(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of an event's chance p from another, q."""
    if q <= 0 or q >= 1:
        return math.inf
    return sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


NORMAL = 1.959964
"""95 % of a normal distribution lie within so many standard deviations."""


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


def device_parameters(backend: Backend, workload: Workload, call: RoleCall) -> dict[str, DeviceArray]:
    """Copy the parameters that a function starts with to the back end; returns them by name, in order."""
    arrays = first_parameters(workload, call)
    return {
        call.names[i]: device_argument(backend, call.arguments[i], array, i)
        for i, array in zip(call.parameters, arrays, strict=True)
    }


class Prediction:
    """Examples that a function answers for."""

    def __init__(self, backend: Backend, call: RoleCall, examples: Labeled, metric: Metric) -> None:
        self._backend, self._call, self._metric = backend, call, metric
        self._labels, images = examples.labels, examples.images
        # The last batch is filled up with examples that do not count.
        positions = np.arange(-(-len(images) // call.batch) * call.batch) % len(images)
        self.batches = [
            device_argument(backend, call.arguments[call.images], images[part], call.images)
            for part in positions.reshape(-1, call.batch)
        ]

    def arguments(self, parameters: Mapping[str, DeviceArray], batch: DeviceArray) -> list[DeviceArray]:
        """Put the arguments of one run together."""
        arguments = [parameters.get(name) for name in self._call.names]
        arguments[self._call.images] = batch
        return arguments

    def error(
        self, predict: Executable, parameters: Mapping[str, DeviceArray], race: Race | None = None
    ) -> float:
        """Return the error of all examples; of the first ones where a race is lost by them."""
        answers: list[NDArray[Any]] = []
        for answer in self._answers(predict, parameters):
            answers.append(answer)
            # At powers of two: as few looks as can be, each of which may err.
            if race is not None and len(answers) & (len(answers) - 1) == 0:
                with suppress(NotFiniteError):
                    error = self._score(answers)
                    if race.lost(error, self._seen(answers)):
                        return error
        return self._score(answers)

    def right(
        self, predict: Executable, parameters: Mapping[str, DeviceArray], most: int
    ) -> NDArray[np.bool_]:
        """Return for each example whether its label is among so many of the answer's largest numbers."""
        answers = np.concatenate(list(self._answers(predict, parameters)))[: len(self._labels)]
        return right_answers(answers, self._labels, most)

    def _answers(self, predict: Executable, parameters: Mapping[str, DeviceArray]) -> Iterator[NDArray[Any]]:
        for batch in self.batches:
            yield self._backend.get(predict(self.arguments(parameters, batch))[0])

    def _seen(self, answers: Sequence[NDArray[Any]]) -> int:
        return min(len(answers) * self._call.batch, len(self._labels))

    def _score(self, answers: Sequence[NDArray[Any]]) -> float:
        seen = self._seen(answers)
        return self._metric([np.concatenate(answers)[:seen]], [self._labels[:seen]])


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
    """Scores a function that predicts.

    Args:
        parts: on which its error is measured.
        unchanged: the function as it was, compiled, with whose answers its own are compared; None: alone.
        racing: whether an error need not be known that makes a module useless beside the unchanged one; else
            all are measured on all examples, and reported with how well the difference is known.
    """

    def __init__(
        self,
        backend: Backend,
        workload: Workload,
        fitted: Fitted,
        examples: Parts,
        parts: tuple[Part, ...],
        unchanged: Executable | None = None,
        *,
        racing: bool = True,
    ) -> None:
        call = fitted.evolved
        self._parameters = device_parameters(backend, workload, call)
        metric = metric_of(workload)
        self._predictions: dict[Part, Prediction] = {
            part: Prediction(backend, call, examples.read(part, call), metric) for part in parts
        }
        self._most = top_of(workload.metric)
        self._races: dict[Part, Race] = {}
        self._right: dict[Part, NDArray[np.bool_]] = {}
        self._unchanged = unchanged
        if unchanged is None or not self._most:  # a loss has no bound
            return
        for part, each in self._predictions.items():
            with suppress(NotFiniteError):  # reported when the unchanged function is scored
                right = each.right(unchanged, self._parameters, self._most)
                if racing:
                    self._races[part] = Race.against(float(1 - right.mean()))
                else:
                    self._right[part] = right

    def scores(self, executable: Executable) -> Scores:
        return {part: self._score(part, executable) for part in self._predictions}

    def _score(self, part: Part, executable: Executable) -> Score:
        prediction, before = self._predictions[part], self._right.get(part)
        if before is None:
            return Score(prediction.error(executable, self._parameters, self._races.get(part)))
        known = executable is self._unchanged
        right = before if known else prediction.right(executable, self._parameters, self._most)
        return Score(float(1 - right.mean()), error_half_width(right, before))

    def runs(self, executable: Executable) -> Runs:
        prediction = next(iter(self._predictions.values()))
        arguments = prediction.arguments(self._parameters, prediction.batches[0])
        return repeated(partial(executable, arguments))


class Calling(Scorer):
    """Scores a function by its answers to some calls.

    Args:
        metric: by which; it compares with the targets of the data, else with the outputs of the unchanged.
    """

    def __init__(
        self,
        backend: Backend,
        calls: WorkloadCalls,
        parts: tuple[Part, ...],
        metric: Metric,
        unchanged: Executable,
    ) -> None:
        self._backend, self._calls, self._metric = backend, calls, metric
        fixed = self._put(calls.fixed)
        self._arguments: dict[Part, list[list[DeviceArray]]] = {}
        self._targets: dict[Part, list[NDArray[Any]]] = {}
        for part in parts:
            every = [fixed | self._put(call) for call in calls.of(part)]
            self._arguments[part] = [[given[i] for i in range(len(given))] for given in every]
            targets = calls.targets(part)
            self._targets[part] = self._answers(unchanged, part) if targets is None else [targets]

    def _put(self, arrays: Arguments) -> dict[int, DeviceArray]:
        types = self._calls.takes.arguments
        return {i: device_argument(self._backend, types[i], array, i) for i, array in arrays.items()}

    def _answers(self, executable: Executable, part: Part) -> list[NDArray[Any]]:
        """Run all calls of a part; returns an array for each result, by row or else by call."""
        # Copied: the back end may use the memory of a result again.
        found = [
            [np.array(self._backend.get(result)) for result in executable(arguments)]
            for arguments in self._arguments[part]
        ]
        return [self._calls.joined(list(each)) for each in zip(*found, strict=True)]

    def scores(self, executable: Executable) -> Scores:
        return {
            part: Score(self._metric(self._answers(executable, part), wanted))
            for part, wanted in self._targets.items()
        }

    def runs(self, executable: Executable) -> Runs:
        return repeated(partial(executable, next(iter(self._arguments.values()))[0]))


class Trainer(Scorer):
    """Scores a step of training.

    Args:
        predict: the compiled function whose answers are scored.
        whole: whether as many steps are trained as at the end of a search.
    """

    def __init__(
        self,
        backend: Backend,
        workload: Workload,
        fitted: Fitted,
        examples: Parts,
        parts: tuple[Part, ...],
        predict: Executable,
        *,
        whole: bool,
    ) -> None:
        training, self._call = workload.training, fitted.evolved
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
            part: Prediction(backend, fitted.predict, examples.read(part, fitted.predict), metric)
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
        parameters = dict(zip(self._first, training_run.parameters, strict=True))
        return {
            part: Score(each.error(self._predict, parameters)) for part, each in self._predictions.items()
        }

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
        batches: Sequence[tuple[DeviceArray, DeviceArray]],
    ) -> None:
        assert call.labels is not None
        self.parameters = list(first)
        self._step, self._batches, self._done = step, batches, 0
        self._positions, self._images, self._labels = call.parameters, call.images, call.labels
        self._arguments: list[DeviceArray] = [None] * len(call.arguments)

    def advance(self, steps: int) -> None:
        """Take steps; once the training is over they repeat its batches, and their results are dropped."""
        arguments = self._arguments
        for _ in range(steps):
            for position, value in zip(self._positions, self.parameters, strict=True):
                arguments[position] = value
            arguments[self._images], arguments[self._labels] = self._batches[self._done % len(self._batches)]
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
    backend: Backend, call: RoleCall, examples: Parts, order: NDArray[np.int64]
) -> list[tuple[DeviceArray, DeviceArray]]:
    """Copy each batch that is needed to the back end, once, and return those of each step."""
    assert call.labels is not None
    needed, steps = np.unique(order, return_inverse=True)
    size, types = call.batch, call.arguments
    read = examples.read("train", call, (needed[:, None] * size + np.arange(size)).ravel())
    labels = labels_as(read.labels, types[call.labels])
    slices = [slice(first, first + size) for first in range(0, len(labels), size)]
    images = [device_argument(backend, types[call.images], read.images[s], call.images) for s in slices]
    answers = [device_argument(backend, types[call.labels], labels[s], call.labels) for s in slices]
    return [(images[step], answers[step]) for step in steps.tolist()]
