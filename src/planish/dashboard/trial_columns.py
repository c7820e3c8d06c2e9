"""Trials of a run in columns, read from the store as they are added to it.

A page that is shown while a search goes on has to follow a hundred thousand trials, so of each one only what
is drawn, counted and sorted by is kept; whole trials are read for the rows that are shown.
"""

from __future__ import annotations

import math
import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from planish.core import Candidate, Failed, Objective, Step, Trial
from planish.core.front import HypervolumeTracker
from planish.plot.search import CURVE_POINTS, Curve
from planish.store import Reader
from planish.tuning.stored_run import (
    PAUSE_S,
    FailureGroup,
    StageTime,
    TrialSources,
    stage_table,
    value_of,
)

if TYPE_CHECKING:
    from numpy import bool_, float64, int64
    from numpy.typing import NDArray

_P = ParamSpec("_P")
_T = TypeVar("_T")

MEASURED = -1
"""Cause of a trial that did not fail."""


@dataclass
class Cause:
    """Trials that failed alike.

    Args:
        stage: where.
        reason: why.
        first: the first of them that was stored.
        detail: of the first.
        count: how many there are.
    """

    stage: str
    reason: str
    first: Candidate
    detail: str
    count: int = 0

    @property
    def name(self) -> str:
        """Return what it is called in a filter: `verify: wrong answer`."""
        return f"{self.stage}: {self.reason}"


def _locked(
    method: Callable[Concatenate[TrialColumns, _P], _T],
) -> Callable[Concatenate[TrialColumns, _P], _T]:
    """Return a method that reads columns while none is extended: sections are rendered in several threads."""

    @wraps(method)
    def locked(self: TrialColumns, *args: _P.args, **named: _P.kwargs) -> _T:
        with self.busy:
            return method(self, *args, **named)

    return locked


@dataclass
class TrialColumns:
    """Columns of a run's trials, in the order of storing; several threads may read and extend them.

    Args:
        run_id: the run.
        objectives: of its task.
        steps: step name to class, as the level lists them.
        baseline: what they are compared with; None where it is not known.
        index: of each trial in the run, from 0.
        ended: when each ended, in seconds since the epoch.
        work: the seconds that each took; -1 of one whose outcome was taken from the store.
        cause: of each one's failure, an index of `causes`; `MEASURED` where it was measured.
        values: of each by each objective; not a number where it has none.
        causes: the reasons of failures.
        best: the best by the leading objective.
        baseline_value: the baseline's by that objective; None where the search did not measure it.
        cached: how many outcomes were taken from the store.
        sources: the hosts that measured them, and the clients that submitted them.
        growth: of the front's hypervolume; None where there is one objective.
        busy: held while columns are read or extended.
    """

    run_id: str
    objectives: Sequence[Objective]
    steps: Mapping[str, type[Step]]
    baseline: Candidate | None = None
    index: array[int] = field(default_factory=lambda: array("q"))
    ended: array[float] = field(default_factory=lambda: array("d"))
    work: array[float] = field(default_factory=lambda: array("d"))
    cause: array[int] = field(default_factory=lambda: array("q"))
    values: list[array[float]] = field(init=False)
    causes: list[Cause] = field(default_factory=list[Cause])
    best: Trial | None = None
    baseline_value: float | None = None
    cached: int = 0
    sources: TrialSources = field(default_factory=TrialSources)
    growth: HypervolumeTracker | None = None
    busy: threading.RLock = field(default_factory=threading.RLock, repr=False, compare=False)
    _row: int = 0
    _known: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _stages: dict[str, array[float]] = field(default_factory=dict[str, "array[float]"])

    def __post_init__(self) -> None:
        self.values = [array("d") for _ in self.objectives]
        if len(self.objectives) > 1:
            self.growth = HypervolumeTracker(self.objectives, self.baseline)

    def __len__(self) -> int:
        return len(self.index)

    def follow(self, store: Reader, seconds: float) -> bool:
        """Read what was stored since; return whether all of it was, or the time ended it.

        Raises:
            StoreError: a trial is damaged, or the store cannot be read.
            ProgramError: the level lacks a step.
        """
        end = time.monotonic() + seconds
        for found, row in store.trials_after(self.run_id, self._row, self.steps):
            with self.busy:
                for trial in found:
                    self._add(trial)
                self._row = row
            if time.monotonic() > end:
                return False
        return True

    def _add(self, trial: Trial) -> None:
        outcome = trial.outcome
        self.index.append(trial.index)
        self.ended.append(trial.time)
        self.cached += trial.cached
        self.sources.add([trial])
        self.work.append(-1.0 if trial.cached else sum(trial.seconds.values()))
        self.cause.append(self._cause(trial, outcome) if isinstance(outcome, Failed) else MEASURED)
        for column, objective in zip(self.values, self.objectives, strict=True):
            value = value_of(trial, objective)
            column.append(math.nan if value is None else value)
        for stage, spent in () if trial.cached else trial.seconds.items():
            self._stages.setdefault(stage, array("d")).append(spent)
        lead = self.objectives[0]
        if self.growth is not None:
            self.growth.add(trial)
        if self.baseline_value is None and self.baseline and trial.candidate.hash == self.baseline.hash:
            self.baseline_value = value_of(trial, lead)
        cost = trial.cost(lead)
        if cost is not None and math.isfinite(cost):
            known = None if self.best is None else (self.best.cost(lead) or 0.0, self.best.index)
            if known is None or (cost, trial.index) < known:
                self.best = trial

    def _cause(self, trial: Trial, failed: Failed) -> int:
        key = failed.stage, failed.reason
        if key not in self._known:
            self._known[key] = len(self.causes)
            self.causes.append(Cause(*key, trial.candidate, failed.detail))
        found = self._known[key]
        self.causes[found].count += 1
        return found

    @property
    def failed(self) -> int:
        """Return how many failed."""
        with self.busy:
            return sum(cause.count for cause in self.causes)

    @_locked
    def failure_groups(self) -> list[FailureGroup]:
        """Return the causes of failures as reports show them, the most frequent first."""
        found = sorted(self.causes, key=lambda cause: -cause.count)
        return [
            FailureGroup(c.stage, c.reason, c.count, c.count / len(self), c.detail, c.first) for c in found
        ]

    @_locked
    def stage_times(self, run_seconds: Mapping[str, float]) -> list[StageTime]:
        """Return the time by stage as reports show it; see `planish.tuning.stored_run.stage_times`."""
        return stage_table(self._stages, run_seconds)

    @_locked
    def curve(self, started: float | None = None) -> Curve:
        """Return the search's curve, thinned.

        Args:
            started: draw it over the seconds since then, without pauses; None draws it over trials.
        """
        import numpy as np

        index, value, cause = np.array(self.index), np.array(self.values[0]), np.array(self.cause)
        x = index + 1.0 if started is None else self._seconds(started)
        order = np.lexsort((index, x))
        x, value, cause = x[order], value[order], cause[order]
        known = np.isfinite(value)
        end = float(x[-1]) if len(x) else 0.0
        cost = value[known] * (1.0 if self.objectives[0].direction == "down" else -1.0)
        least = np.minimum.accumulate(cost) if len(cost) else cost
        first = np.concatenate(([True], least[1:] < least[:-1])) if len(cost) else np.zeros(0, bool)
        points = x[known], value[known]
        best = list(zip(points[0][first].tolist(), points[1][first].tolist(), strict=True))
        if best:
            best.append((end, best[-1][1]))
        thin = slice(None, None, -(-len(cost) // CURVE_POINTS) or 1)
        failures = x[cause != MEASURED]
        return Curve(
            tuple(best),
            tuple(zip(points[0][thin].tolist(), points[1][thin].tolist(), strict=True)),
            tuple(failures[:: -(-len(failures) // CURVE_POINTS) or 1].tolist()),
            end,
        )

    def _seconds(self, started: float) -> NDArray[float64]:
        """Return the seconds that the run had been under way when each trial ended, without its pauses."""
        import numpy as np

        ended, work, index = np.array(self.ended), np.array(self.work), np.array(self.index)
        own = np.flatnonzero(work >= 0)
        own = own[np.argsort(ended[own], kind="stable")]
        before = np.maximum.accumulate(np.concatenate(([started], ended[own])))[:-1]
        gap = np.maximum(ended[own] - before, 0.0)
        pause = np.where(gap > work[own] + PAUSE_S, gap - work[own], 0.0)
        spent = np.full(len(index), -1.0)
        spent[own] = np.cumsum(gap - pause)
        # What was taken from the store cost nothing: it has the time of the trial before it.
        by_index = np.argsort(index, kind="stable")
        last = np.where(spent[by_index] >= 0, np.arange(len(index)), -1)
        last = np.maximum.accumulate(last) if len(last) else last
        seconds = np.zeros(len(index))
        seconds[by_index] = np.where(last >= 0, spent[by_index][last], 0.0)
        return seconds

    @_locked
    def select(self, outcome: str, order: str) -> NDArray[int64]:
        """Return the indices in the run of the trials to be shown.

        Args:
            outcome: "" for all, "measured", "failed", or the name of a cause of failures.
            order: "newest" or "first", by index; or "best" or "worst", by the leading objective, where
                failures are last.
        """
        import numpy as np

        index, value = np.array(self.index), np.array(self.values[0])
        shown = self._shown(outcome)
        index, value = index[shown], value[shown]
        if order in ("newest", "first"):
            index = np.sort(index)
            return index[::-1] if order == "newest" else index
        down = self.objectives[0].direction == "down"
        key = value if down == (order == "best") else -value
        return index[np.lexsort((index, key))]  # what is not a number comes last

    @_locked
    def costs(self) -> list[tuple[int, tuple[float, ...]]]:
        """Return the index in the run and the costs of each trial that has all values."""
        signs = [1.0 if each.direction == "down" else -1.0 for each in self.objectives]
        rows = zip(self.index, zip(*self.values, strict=True), strict=True)
        return [
            (index, tuple(sign * value for sign, value in zip(signs, values, strict=True)))
            for index, values in rows
            if all(map(math.isfinite, values))
        ]

    def _shown(self, outcome: str) -> NDArray[bool_]:
        import numpy as np

        cause = np.array(self.cause)
        if outcome == "measured":
            return cause == MEASURED
        if outcome == "failed":
            return cause != MEASURED
        names = {each.name: number for number, each in enumerate(self.causes)}
        return cause == names.get(outcome, MEASURED - 1) if outcome else np.ones(len(cause), bool)
