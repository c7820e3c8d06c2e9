"""Where the front lies in the plane of two objectives, as measured again at the end."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from planish.core import Candidate, Objective, Step
from planish.results.comparison import Compared, Comparison, Finalist

Point = tuple[float, float]
UNSEEN = "final"
"""The score on data that is opened at the very end is named after it: `error_final`."""

_LINES = 12
_LINE = 90


@dataclass(frozen=True)
class Dot:
    """Somebody in the plane.

    Args:
        name: who.
        at: by both objectives.
        unseen: the same, but the second on data that the search did not see; None where that is not known.
        hover: what is told of it: the steps.
        disputed: whether the second opinion differs.
    """

    name: str
    at: Point
    unseen: Point | None
    hover: str
    disputed: bool = False


@dataclass(frozen=True)
class Remeasured:
    """All that is drawn of it.

    Args:
        members: of the front.
        baseline: what they are compared with.
        reference: another baseline; None where there is none.
    """

    members: tuple[Dot, ...]
    baseline: Dot
    reference: Dot | None


def remeasured(front: Comparison, x: Objective, y: Objective) -> Remeasured:
    """Place a front in the plane of two objectives."""
    return Remeasured(
        tuple(_dot(member, x, y) for member in front.finalists),
        _dot(front.baseline, x, y),
        _dot(front.reference, x, y) if front.reference else None,
    )


def _dot(member: Compared, x: Objective, y: Objective) -> Dot:
    across, score = member.measured[x.name].median, member.scores.get(f"{y.name}_{UNSEEN}")
    unseen = None if score is None else (across, score)
    told = told_steps(member.candidate) if isinstance(member, Finalist) else ""
    at = across, member.measured[y.name].median
    return Dot(member.name, at, unseen, told, member.opinion.agrees is False)


def told_steps(candidate: Candidate) -> str:
    """List a candidate's steps for a hover label, in plotly's markup."""
    lines = [_line(number, step) for number, step in enumerate(candidate.steps[:_LINES], 1)]
    more = len(candidate.steps) - _LINES
    return "<br>".join([*(lines or ["unchanged"]), *([f"and {more} more"] if more > 0 else [])])


def _line(number: int, step: Step) -> str:
    text = str(step)
    return html.escape(f"{number}. {text if len(text) <= _LINE else text[: _LINE - 1] + '…'}")


def dots_of(found: Remeasured) -> Sequence[Point]:
    """List every place that is drawn."""
    dots = (*found.members, found.baseline, *([found.reference] if found.reference else []))
    return [point for dot in dots for point in (dot.at, dot.unseen) if point is not None]
