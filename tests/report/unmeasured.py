"""Finalists without a measurement, for what shows them."""

from __future__ import annotations

from dataclasses import replace

from planish.core import Candidate
from planish.tuning.comparison import Comparison, Finalist
from report.planks import Saw

WRONG = Finalist(
    candidate=Candidate((Saw(8),)),
    n_steps_found=3,
    trial={"time_s": 1e-4},
    unmeasured="failed",
    why="verify: wrong answer",
)
LATE = Finalist(candidate=Candidate((Saw(9),)), n_steps_found=1, unmeasured="undecided")


def with_unmeasured(found: Comparison) -> Comparison:
    """Let two be chosen besides: one failed when it was measured again, there was no time for the other."""
    count = len(found.finalists)
    named = (replace(each, name=f"#{count + at}") for at, each in enumerate((WRONG, LATE), 1))
    return replace(found, unmeasured=tuple(named))
