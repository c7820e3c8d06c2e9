"""Modules that predict: the error of their answers, and the time of one batch."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from planish.core import StageClock
from planish.hlo.backend import Backend, Executable
from planish.hlo.scoring.metrics import metric_of
from planish.hlo.scoring.not_finite import NotFiniteError
from planish.hlo.scoring.prediction import Errors, Prediction, held_parameters
from planish.hlo.scoring.race import Race
from planish.hlo.workload import Fitted, Part, Parts, Workload
from planish.hlo.workload.metric import measured_as
from planish.measure import Runs, Samples, Timer, repeated


class Inference:
    """Scores a function that predicts.

    Args:
        backend: runs it.
        workload: what it is run with.
        fitted: what its arguments are.
        examples: the data.
        parts: on which its error is measured.
        rival: the unchanged function, compiled, where an error need not be known that makes a module useless
            beside it; None: all errors are measured on all examples.
    """

    def __init__(
        self,
        backend: Backend,
        workload: Workload,
        fitted: Fitted,
        examples: Parts,
        parts: tuple[Part, ...],
        rival: Executable | None = None,
    ) -> None:
        call = fitted.evolved
        self._parameters = held_parameters(backend, workload, call)
        metric = metric_of(workload)
        self._predictions: dict[Part, Prediction] = {
            part: Prediction(backend, call, examples.read(part, call), metric) for part in parts
        }
        self._races: dict[Part, Race] = {}
        if rival is not None and measured_as(workload) == "error":
            for part, each in self._predictions.items():
                with suppress(NotFiniteError):  # whoever asks for the unchanged function is told
                    self._races[part] = Race.against(each.error(rival, self._parameters))

    def score(
        self, executable: Executable, clock: StageClock, timer: Timer | None
    ) -> tuple[Errors, Samples | None]:
        """Give the error on each part, then the times of a batch.

        Raises:
            NotFiniteError: no answer is finite.
            BackendError: a run failed.
        """
        with clock("verify"):
            errors: Errors = {
                p: each.error(executable, self._parameters, self._races.get(p))
                for p, each in self._predictions.items()
            }
        return errors, self.time(executable, clock, timer) if timer else None

    def time(self, executable: Executable, clock: StageClock, timer: Timer) -> Samples:
        """Give the times of a batch; raises BackendError where a run failed."""
        with clock("run"):
            return timer(self.runs(executable))

    def runs(self, executable: Executable) -> Runs:
        """Give what answers for a batch n times."""
        prediction = next(iter(self._predictions.values()))
        arguments = prediction.arguments(self._parameters, prediction.batches[0])
        return repeated(partial(executable.run, arguments))
