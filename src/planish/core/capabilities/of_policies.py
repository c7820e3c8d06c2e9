"""What policies may offer beyond probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from planish.core.protocols import Policy, PolicyState


@runtime_checkable
class CanJudge(Policy, Protocol):
    """A policy that tells what it holds a candidate for, without a measurement.

    Offered by networks that score actions alone, whose score of the end tells it; used by the searcher
    `policy`.
    """

    def worth(self, states: Sequence[PolicyState]) -> Sequence[float]:
        """Give how good the candidate of each state is; more is better, among candidates of one program."""
        ...


@runtime_checkable
class CanReconsider(Policy, Protocol):
    """A policy that learns what came of a candidate, and gives another.

    Offered by language models alone, which were trained on feedback; used by the searcher `feedback`.
    """

    def reconsider(self, state: PolicyState, cost: float | None) -> PolicyState | None:
        """Give the state before the first step of another candidate.

        Args:
            state: the end of a candidate.
            cost: the candidate's, by the first objective; None where it failed.

        Returns:
            None where the policy holds to its candidate.
        """
        ...
