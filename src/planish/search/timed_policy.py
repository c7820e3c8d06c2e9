"""A policy whose time is counted, so that a run tells what asking a network took from searching."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from planish.core import CanJudge, Policy, PolicyState, Space, Step


class TimedPolicy:
    """Asks another policy, and counts the seconds.

    Args:
        policy: is asked.

    Attributes:
        seconds: that its answers took so far.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.seconds = 0.0

    def begin(self, space: Space) -> PolicyState:
        """Begin as the policy does."""
        with self._timed():
            return self._policy.begin(space)

    def extend(self, state: PolicyState, step: Step) -> PolicyState:
        """Extend as the policy does."""
        with self._timed():
            return self._policy.extend(state, step)

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Answer as the policy does."""
        with self._timed():
            return self._policy.log_probabilities(states)

    @contextmanager
    def _timed(self) -> Generator[None]:
        started = time.perf_counter()
        try:
            yield
        # A policy that fails has taken its time as well.
        finally:
            self.seconds += time.perf_counter() - started


class TimedJudge(TimedPolicy):
    """Counts the seconds of telling what candidates are worth, too."""

    def __init__(self, policy: CanJudge) -> None:
        super().__init__(policy)
        self._judge = policy

    def worth(self, states: Sequence[PolicyState]) -> Sequence[float]:
        """Judge as the policy does."""
        with self._timed():
            return self._judge.worth(states)
