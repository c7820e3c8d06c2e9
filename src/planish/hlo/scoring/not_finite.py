"""Why answers have no score."""

from __future__ import annotations


class NotFiniteError(Exception):
    """No answer is a finite number, or not all of those are that a metric needs."""


class MetricError(Exception):
    """A metric cannot score the answers, or the user's own raises an error."""
