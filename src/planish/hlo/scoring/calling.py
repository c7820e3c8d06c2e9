"""Modules of any arguments: how good their answers are, and the time of one call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import StageClock
from planish.hlo.backend import Backend, Executable
from planish.hlo.backend.checked_run import held_argument
from planish.hlo.backend.protocol import Held
from planish.hlo.scoring.metrics import Metric
from planish.hlo.scoring.prediction import Score, Scores
from planish.hlo.workload import Part, WorkloadCalls
from planish.measure import Runs, Samples, Timer, repeated


class Calling:
    """Scores a function by its answers to some calls.

    Args:
        backend: runs it.
        calls: with what.
        parts: on which it is scored.
        metric: by which; it compares with the targets of the data, else with the outputs of the unchanged.
        unchanged: the function as it was, compiled.
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
        fixed = {place: self._held(array, place) for place, array in calls.fixed.items()}
        self._arguments: dict[Part, list[list[Held]]] = {
            part: [self._all(fixed, call) for call in calls.of(part)] for part in parts
        }
        self._targets: dict[Part, list[NDArray[Any]]] = {
            part: self._wanted(part, unchanged) for part in parts
        }

    def _held(self, array: NDArray[Any], place: int) -> Held:
        return held_argument(self._backend, self._calls.takes.arguments[place], array, place)

    def _all(self, fixed: dict[int, Held], call: dict[int, NDArray[Any]]) -> list[Held]:
        held = fixed | {place: self._held(array, place) for place, array in call.items()}
        return [held[place] for place in range(len(held))]

    def _wanted(self, part: Part, unchanged: Executable) -> list[NDArray[Any]]:
        targets = self._calls.targets(part)
        return self._answers(unchanged, part) if targets is None else [targets]

    def _answers(self, executable: Executable, part: Part) -> list[NDArray[Any]]:
        """Run all calls of a part; gives an array for each result, by row or else by call."""
        found = [self._results(executable, arguments) for arguments in self._arguments[part]]
        return [self._calls.joined(list(each)) for each in zip(*found, strict=True)]

    def _results(self, executable: Executable, arguments: Sequence[Held]) -> list[NDArray[Any]]:
        # Copied: the back end may use the memory of a result again.
        return [np.array(self._backend.get(result)) for result in executable.run(arguments)]

    def score(
        self, executable: Executable, clock: StageClock, timer: Timer | None
    ) -> tuple[Scores, Samples | None]:
        """Give the score on each part, then the times of a call.

        Raises:
            NotFiniteError: there is nothing to score.
            MetricError: the metric fails.
            BackendError: a run failed.
        """
        with clock("verify"):
            scores: Scores = {
                p: Score(self._metric(self._answers(executable, p), wanted))
                for p, wanted in self._targets.items()
            }
        return scores, self.time(executable, clock, timer) if timer else None

    def time(self, executable: Executable, clock: StageClock, timer: Timer) -> Samples:
        """Give the times of a call; raises BackendError where a run failed."""
        with clock("run"):
            return timer(self.runs(executable))

    def runs(self, executable: Executable) -> Runs:
        """Give what makes the first call n times."""
        return repeated(partial(executable.run, next(iter(self._arguments.values()))[0]))
