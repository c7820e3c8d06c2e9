"""What is known of one function after its search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Label:
    """A function's best pass list.

    Args:
        identity: the function's, as in its corpus.
        package: where it is from.
        split: what it is for.
        unoptimised: what the function costs as it is, prepared for size; by the objective.
        baseline: what it costs after -Oz.
        best: what it costs after `passes`.
        other: what it costs after the best list that is not -Oz itself; it may be more than the baseline.
        passes: the shortest best list that was found; -Oz itself where nothing is better.
        found_by: "search" on this function, a list of others by "broadcast", or the "baseline".
        evaluations: how many lists were run.
        refused: the pipelines that ended LLVM's process on this function: a crash, an exit or a hang.
    """

    identity: str
    package: str
    split: str
    unoptimised: int
    baseline: int
    best: int
    other: int
    passes: tuple[str, ...]
    found_by: str
    evaluations: int
    refused: tuple[str, ...]

    @property
    def saved(self) -> int:
        """What the list saves over -Oz; never negative, since -Oz stands behind it."""
        return self.baseline - self.best
