"""Timing sessions: in turns with the model as it came, where a call of that is not too short for it."""

from __future__ import annotations

from collections.abc import Mapping

from planish.graph.running import Feed, ModelSession, SessionSettings
from planish.measure import Beside, Runs, Samples, Timing, Yardstick, repeated, time_call

LEAST_S = 1e-3
"""Shorter calls are timed alone: many fit between two interruptions, and the median passes those by."""
PATIENCE = 4
"""How many times the budget may be spent on a candidate until its ratio is precise."""


class Timed:
    """Times the sessions of one model.

    Args:
        baseline: a session of the baseline; None where the runtime refuses it.
        settings: under which it is that.
        timing: how long each session is timed.
        yardstick: the seconds of the baseline; None: all are timed alone.
        feed: what sessions are run on.
    """

    def __init__(
        self,
        baseline: ModelSession | None,
        settings: SessionSettings,
        timing: Timing,
        yardstick: Yardstick | None,
        feed: Feed,
    ) -> None:
        self._timing, self._yardstick, self._feed = timing, yardstick, feed
        self._one_core = settings.cores == 1 and settings.provider != "cuda"
        self._baseline = self._runs(baseline) if baseline is not None and yardstick is not None else None
        self._beside: Beside | None = None
        self._begun = False
        self._best = float("inf")

    def time(self, session: ModelSession) -> Samples:
        """Measure how long a call takes; enter the stage "run" first."""
        if self._yardstick is not None and self._baseline is not None and not self._begun:
            self._begin(self._yardstick, self._baseline)
        if self._beside is not None and self._baseline is not None:
            return self._beside.time(self._runs(session), self._baseline)
        timed = time_call(self._runs(session), self._timing, self._best)
        self._best = min(self._best, timed.median)
        return timed

    def named(self, timed: Samples, batch: int) -> Mapping[str, tuple[float, ...]]:
        """Give samples as an outcome keeps them.

        Args:
            timed: what `time` gave.
            batch: the items of a call.
        """

        def rate(seconds: float) -> float:
            return batch / seconds

        return timed.named({"latency": float, "throughput": rate}, one_core=self._one_core)

    def _begin(self, yardstick: Yardstick, baseline: Runs) -> None:
        """Time the baseline; whoever measures it first decides for all workers whether it is too short."""
        self._begun = True
        alone = time_call(baseline, self._timing)
        if yardstick.seconds(alone.median) >= LEAST_S:
            self._beside = Beside(yardstick, self._timing, one_core=self._one_core, patience=PATIENCE)

    def _runs(self, session: ModelSession) -> Runs:
        return repeated(session.bound(self._feed))
