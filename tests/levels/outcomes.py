"""What tests of every level ask of an outcome."""

from __future__ import annotations

from planish.core import Failed, Measured, Outcome


def measured(outcome: Outcome) -> Measured:
    """Require that an outcome is measured."""
    assert isinstance(outcome, Measured), outcome
    return outcome


def failure(outcome: Outcome) -> tuple[str, str]:
    """Require that an outcome is a failure; gives its stage and reason."""
    assert isinstance(outcome, Failed), outcome
    return outcome.stage, outcome.reason
