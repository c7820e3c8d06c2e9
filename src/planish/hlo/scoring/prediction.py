"""Examples that a function answers for, and how its answers are scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.hlo.backend import Backend, Executable
from planish.hlo.backend.checked_run import held_argument
from planish.hlo.backend.protocol import Held
from planish.hlo.scoring.metrics import Metric, right_answers
from planish.hlo.scoring.not_finite import NotFiniteError
from planish.hlo.scoring.race import Race
from planish.hlo.workload import Labelled, Part, RoleCall, Workload, first_parameters


@dataclass(frozen=True)
class Score:
    """What a metric gives.

    Args:
        error: or loss.
        within: so far off the difference to the unchanged module may be, by a 95 % interval; None: not known.
    """

    error: float
    within: float | None = None


Scores = Mapping[Part, Score]
"""By the part of the examples."""


def held_parameters(backend: Backend, workload: Workload, call: RoleCall) -> dict[str, Held]:
    """Copy the parameters that a function starts with to the back end; gives them by name, in order."""
    arrays = first_parameters(workload, call)
    return {
        call.names[i]: held_argument(backend, call.arguments[i], array, i)
        for i, array in zip(call.parameters, arrays, strict=True)
    }


class Prediction:
    """Examples that a function answers for.

    Args:
        backend: runs the function.
        call: what its arguments are.
        examples: at least one.
        metric: scores answers by labels.
    """

    def __init__(self, backend: Backend, call: RoleCall, examples: Labelled, metric: Metric) -> None:
        self._backend, self._call, self._metric = backend, call, metric
        self._labels = examples.labels
        self.batches = [self._held(images) for images in _batches(examples.images, call.batch)]

    def _held(self, images: NDArray[Any]) -> Held:
        place = self._call.images
        return held_argument(self._backend, self._call.arguments[place], images, place)

    def arguments(self, parameters: Mapping[str, Held], batch: Held) -> list[Held]:
        """Put the arguments of one run together."""
        arguments = [parameters.get(name) for name in self._call.names]
        arguments[self._call.images] = batch
        return arguments

    def error(self, predict: Executable, parameters: Mapping[str, Held], race: Race | None = None) -> float:
        """Give the error of all examples; of the first ones where a race is lost by them.

        Raises:
            NotFiniteError: no answer is finite.
            MetricError: the metric fails.
            BackendError: a run failed.
        """
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

    def right(self, predict: Executable, parameters: Mapping[str, Held], most: int) -> NDArray[np.bool_]:
        """Tell of each example whether its label is among so many of the largest numbers of the answer.

        Raises:
            NotFiniteError: no answer is finite.
            BackendError: a run failed.
        """
        answers = np.concatenate(list(self._answers(predict, parameters)))[: len(self._labels)]
        return right_answers(answers, self._labels, most)

    def _answers(self, predict: Executable, parameters: Mapping[str, Held]) -> Iterator[NDArray[Any]]:
        for batch in self.batches:
            yield self._backend.get(predict.run(self.arguments(parameters, batch))[0])

    def _seen(self, answers: Sequence[NDArray[Any]]) -> int:
        # The last batch is filled up with examples that do not count.
        return min(len(answers) * self._call.batch, len(self._labels))

    def _score(self, answers: Sequence[NDArray[Any]]) -> float:
        seen = self._seen(answers)
        return self._metric([np.concatenate(answers)[:seen]], [self._labels[:seen]])


def _batches(images: NDArray[Any], size: int) -> list[NDArray[Any]]:
    places = np.arange(-(-len(images) // size) * size) % len(images)
    return [images[part] for part in places.reshape(-1, size)]
