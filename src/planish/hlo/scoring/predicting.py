"""Modules that predict: the error of their answers, and the time of one batch."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import numpy as np
from numpy.typing import NDArray

from planish.core import StageClock
from planish.hlo.backend import Backend, Executable
from planish.hlo.scoring.metrics import metric_of
from planish.hlo.scoring.not_finite import NotFiniteError
from planish.hlo.scoring.paired import known_within
from planish.hlo.scoring.prediction import Prediction, Score, Scores, held_parameters
from planish.hlo.scoring.race import Race
from planish.hlo.workload import Fitted, Part, Parts, Workload
from planish.hlo.workload.metric import top_of
from planish.measure import Runs, Samples, Timer, repeated


class Inference:
    """Scores a function that predicts.

    Args:
        backend: runs it.
        workload: what it is run with.
        fitted: what its arguments are.
        examples: the data.
        parts: on which its error is measured.
        unchanged: the function as it was, compiled, beside which its answers are judged; None: alone.
        racing: whether an error need not be known that makes a module useless beside the unchanged one; else
            all are measured on all examples, and told with how well the difference is known.
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
        self._parameters = held_parameters(backend, workload, call)
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
            with suppress(NotFiniteError):  # whoever asks for the unchanged function is told
                right = each.right(unchanged, self._parameters, self._most)
                if racing:
                    self._races[part] = Race.against(float(1 - right.mean()))
                else:
                    self._right[part] = right

    def score(
        self, executable: Executable, clock: StageClock, timer: Timer | None
    ) -> tuple[Scores, Samples | None]:
        """Give the error on each part, then the times of a batch.

        Raises:
            NotFiniteError: no answer is finite.
            BackendError: a run failed.
        """
        with clock("verify"):
            scores: Scores = {part: self._score(part, executable) for part in self._predictions}
        return scores, self.time(executable, clock, timer) if timer else None

    def _score(self, part: Part, executable: Executable) -> Score:
        prediction, before = self._predictions[part], self._right.get(part)
        if before is None:
            return Score(prediction.error(executable, self._parameters, self._races.get(part)))
        known = executable is self._unchanged
        right = before if known else prediction.right(executable, self._parameters, self._most)
        return Score(float(1 - right.mean()), known_within(right, before))

    def time(self, executable: Executable, clock: StageClock, timer: Timer) -> Samples:
        """Give the times of a batch; raises BackendError where a run failed."""
        with clock("run"):
            return timer(self.runs(executable))

    def runs(self, executable: Executable) -> Runs:
        """Give what answers for a batch n times."""
        prediction = next(iter(self._predictions.values()))
        arguments = prediction.arguments(self._parameters, prediction.batches[0])
        return repeated(partial(executable.run, arguments))
