"""What policies may offer beyond probabilities."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from planish.core.protocols import Policy, PolicyState


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
