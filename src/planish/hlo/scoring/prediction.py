"""The share of examples for which the largest number is not the label's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.hlo.backend import Backend, Executable
from planish.hlo.backend.checked_run import held_argument
from planish.hlo.backend.protocol import Held
from planish.hlo.workload import Call, Labelled, Part, Workload, first_parameters

Errors = Mapping[Part, float]
"""The error on each part."""


class NotFiniteError(Exception):
    """No answer is a finite number, so that there is nothing to score."""


def error_of(answers: NDArray[Any], labels: NDArray[np.int64]) -> float:
    """Give the top-1 error.

    The paper asks of a module that it runs and that its accuracy can be evaluated (section 4.3): an answer
    with a number that is not finite is wrong, and where all are so, there is none to evaluate.

    Args:
        answers: N x classes.
        labels: N whole numbers.

    Returns:
        The share that is wrong, 0 to 1.

    Raises:
        NotFiniteError: no answer is finite.
    """
    finite = np.isfinite(answers).all(axis=1)
    if not finite.any():
        raise NotFiniteError(f"none of {len(answers)} answers is finite")
    return float(1 - (finite & (answers.argmax(axis=1) == labels)).mean())


def held_parameters(backend: Backend, workload: Workload, call: Call) -> dict[str, Held]:
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
    """

    def __init__(self, backend: Backend, call: Call, examples: Labelled) -> None:
        self._backend, self._call = backend, call
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

    def error(self, predict: Executable, parameters: Mapping[str, Held]) -> float:
        """Give the error of all examples.

        Raises:
            NotFiniteError: no answer is finite.
            BackendError: a run failed.
        """
        answers = [
            self._backend.get(predict.run(self.arguments(parameters, batch))[0]) for batch in self.batches
        ]
        # The last batch is filled up with examples that do not count.
        return error_of(np.concatenate(answers)[: len(self._labels)], self._labels)


def _batches(images: NDArray[Any], size: int) -> list[NDArray[Any]]:
    places = np.arange(-(-len(images) // size) * size) % len(images)
    return [images[part] for part in places.reshape(-1, size)]
