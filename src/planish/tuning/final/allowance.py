"""How long the end of a run may take, and each of its steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

LEAST_S = 5.0
"""The end, and its comparison, may take so long even where the search took less."""
COMPARED = 0.2
"""The share of the search's time that is reserved for the comparison, whatever came before it took."""

WEIGHTS = {
    "minimise": 0.25,
    "compare": 0.4,
    "doubt": 0.1,
    "score": 0.1,
    "refer": 0.05,
    "effects": 0.1,
    "describe": 0.1,
}
"""What the steps are given of the time that is left, in their order; of those that there are."""


@dataclass
class Allowance:
    """The seconds that the end of a run may take: as many as the search took, `LEAST_S` at least.

    What a step does not use is there for the later ones. The comparison has its time in any case, since
    without it there is no verdict.

    Args:
        searched_s: how long the search took.
        steps: the end's, in their order: keys of `WEIGHTS`.
        now: the monotonic clock.

    Attributes:
        seconds: of all steps together.
        ends: when they are to be over.
    """

    searched_s: float
    steps: Sequence[str]
    now: Callable[[], float] = time.monotonic
    seconds: float = field(init=False)
    ends: float = field(init=False)

    def __post_init__(self) -> None:
        self.seconds = max(LEAST_S, self.searched_s)
        self.ends = self.now() + self.seconds

    def has(self, seconds: float, step: str) -> bool:
        """Whether a step that begins now has more than so many seconds, such as a process takes to start."""
        return self.until(step) - self.now() > seconds

    @property
    def told(self) -> str:
        """Say how long it takes from now on."""
        return f"at most {max(1.0, self.ends - self.now()):.0f} s to the end"

    def until(self, step: str) -> float:
        """Give when a step that begins now is to be over."""
        now, later = self.now(), self.steps[self.steps.index(step) :]
        # Of what is left now, among those that are still to come: so an early end of one is the others' gain.
        share = max(0.0, self.ends - now) * WEIGHTS[step] / sum(WEIGHTS[each] for each in later)
        reserved = max(LEAST_S, COMPARED * self.searched_s) if step == "compare" else 0.0
        return now + max(share, reserved)
