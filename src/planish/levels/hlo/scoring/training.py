"""Scores of training steps: the error of what they train, and the time of a step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError, StageClock
from planish.levels.hlo.backend import Backend, Executable
from planish.levels.hlo.backend.compiler import Held, held_argument
from planish.levels.hlo.scoring.inference import Prediction, Score, Scores, held_parameters
from planish.levels.hlo.scoring.metrics import metric_of
from planish.levels.hlo.workload import Fitted, Part, Parts, RoleCall, Workload, labels_as
from planish.measure import Runs, Samples, Timer


class Trainer:
    """Scores a step of training.

    Args:
        backend: runs it.
        workload: what it is run with; it has a training.
        fitted: what its arguments are.
        examples: the data.
        parts: on which the error is measured.
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
        self._batches = _held_batches(backend, self._call, examples, order)
        self._first = held_parameters(backend, workload, self._call)
        metric = metric_of(workload)
        self._predictions: dict[Part, Prediction] = {
            part: Prediction(backend, fitted.predict, examples.read(part, fitted.predict), metric)
            for part in parts
        }

    def score(
        self, executable: Executable, clock: StageClock, timer: Timer | None
    ) -> tuple[Scores, Samples | None]:
        """Train, and give the error on each part, and the times of a step.

        The steps that are timed are the first ones of the training.

        Raises:
            NotFiniteError: no answer is finite.
            BackendError: a run failed.
        """
        training_run = self._begin(executable)
        samples: Samples | None = None
        if timer is not None:
            with clock("run"):
                samples = timer(training_run.advance)
        with clock("verify"):
            training_run.finish()
            parameters = dict(zip(self._first, training_run.parameters, strict=True))
            scores: Scores = {
                p: Score(e.error(self._predict, parameters)) for p, e in self._predictions.items()
            }
        return scores, samples

    def time(self, executable: Executable, clock: StageClock, timer: Timer) -> Samples:
        """Return the times of a step, as of the first ones of a training; raises BackendError."""
        with clock("run"):
            return timer(self.runs(executable))

    def runs(self, executable: Executable) -> Runs:
        """Return a function that takes the next n steps of a new training."""
        return self._begin(executable).advance

    def _begin(self, executable: Executable) -> TrainingRun:
        return TrainingRun(executable, self._call, list(self._first.values()), self._batches)


class TrainingRun:
    """One training.

    Args:
        step: takes parameters, images and labels, and gives new parameters first.
        call: what its arguments are.
        first: the parameters to begin with.
        batches: images and labels of each step.

    Attributes:
        parameters: after the last step; further steps do not change them.
    """

    def __init__(
        self, step: Executable, call: RoleCall, first: Sequence[Held], batches: Sequence[tuple[Held, Held]]
    ) -> None:
        assert call.labels is not None
        self.parameters = list(first)
        self._step, self._batches, self._done = step, batches, 0
        self._positions, self._images, self._labels = call.parameters, call.images, call.labels
        self._arguments: list[Held] = [None] * len(call.arguments)

    def advance(self, steps: int) -> None:
        """Take steps; once the training is over they repeat its batches, and their results are dropped."""
        for _ in range(steps):
            results = self._one()
            if self._done < len(self._batches):
                self.parameters = list(results[: len(self.parameters)])
            self._done += 1

    def finish(self) -> None:
        """Take the steps that are left."""
        self.advance(max(0, len(self._batches) - self._done))

    def _one(self) -> Sequence[Held]:
        arguments = self._arguments
        for position, value in zip(self._positions, self.parameters, strict=True):
            arguments[position] = value
        arguments[self._images], arguments[self._labels] = self._batches[self._done % len(self._batches)]
        return self._step.run(arguments)


def batch_order(batches: int, epochs: int, seed: int) -> NDArray[np.int64]:
    """Return the number of the batch of each step: all of them in each epoch, shuffled.

    Raises:
        ProgramError: there is no whole batch.
    """
    if batches < 1:
        raise ProgramError(
            "there are fewer examples to train on than one step takes", "Give more, in [split]."
        )
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.permutation(batches) for _ in range(epochs)])


def _held_batches(
    backend: Backend, call: RoleCall, examples: Parts, order: NDArray[np.int64]
) -> list[tuple[Held, Held]]:
    """Copy each batch that is needed to the back end, once; gives those of each step."""
    assert call.labels is not None
    needed, steps = np.unique(order, return_inverse=True)
    size, types = call.batch, call.arguments
    read = examples.read("train", call, (needed[:, None] * size + np.arange(size)).ravel())
    labels = labels_as(read.labels, types[call.labels])
    held: list[tuple[Held, Held]] = []
    for first in range(0, len(labels), size):
        batch = slice(first, first + size)
        images = held_argument(backend, types[call.images], read.images[batch], call.images)
        held.append((images, held_argument(backend, types[call.labels], labels[batch], call.labels)))
    return [held[step] for step in steps.tolist()]
