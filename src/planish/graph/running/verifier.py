"""Verification of sessions against the model as it came, up to what rounding comes to in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from planish.graph.running.answers import (
    DEFAULT,
    Tolerance,
    difference,
    largest_difference,
    largest_number,
)
from planish.graph.running.feeds import Feed
from planish.graph.running.ort_session import ModelSession, RefusedError

Answers = Sequence[Any]

OF_BASELINE = 2.0
"""What others may be off by, in terms of what the baseline is off by: they may round once more."""
OF_ROUNDING = 4.0
"""The same in terms of what answers change by when weights and inputs are rounded otherwise."""
_BLIND = 0.1
"""Answers tell nothing where rounding may come to this share of the largest of them."""
_UNSTABLE = "the model's answers to all inputs depend on rounding, so that nothing can be compared with them"


@dataclass(eq=False)
class Batch:
    """Inputs on which answers are compared.

    Args:
        feed: the inputs.
        expected: the answers of the model with every optimisation off.
        derived: whether the inputs were made of the user's.

    Attributes:
        floors: what numbers of each output may be off by in any case.
        is_settled: whether the floors are known.
    """

    feed: Feed
    expected: Answers
    derived: bool = False
    floors: list[float] = field(init=False)
    is_settled: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.floors = [0.0] * len(self.expected)

    def widen(self, found: Answers, factor: float) -> None:
        """Let outputs be off by a multiple of what others, which are right, are off by."""
        pairs = zip(self.floors, found, self.expected, strict=True)
        self.floors = [max(floor, factor * largest_difference(one, other)) for floor, one, other in pairs]

    def wrong(self, found: Answers, allowed: Tolerance = DEFAULT) -> str:
        """Say how outputs differ; empty where they do not."""
        return difference(found, self.expected, allowed, self.floors)

    @property
    def is_blind(self) -> bool:
        """Whether an output may be off by so much that nothing can be seen in it."""
        pairs = zip(self.floors, self.expected, strict=True)
        return any(floor > _BLIND * largest_number(output) for floor, output in pairs)


class Verifier:
    """Compares answers with those of the model as it came, with every optimisation off.

    Where something is off by more than its tolerance, the model's own rounding decides: numbers may be off by
    twice what the baseline is off by, where that is right, and by four times what answers change by when
    weights and inputs are rounded otherwise. A batch is left out on which these come to a tenth of an output,
    or on which the other roundings change what has to be equal; one that was made of the user's inputs also
    where the baseline is wrong.

    Args:
        batches: with the expected answers.
        baseline: a session of the baseline; None where the runtime refuses it.
        moved: computes answers with other roundings; it may raise RefusedError.

    Attributes:
        batches: those on which answers are compared.
    """

    def __init__(
        self,
        batches: Sequence[Batch],
        baseline: ModelSession | None,
        moved: Callable[[Sequence[Feed]], Sequence[Answers]],
    ) -> None:
        self._all, self._baseline, self._moved = batches, baseline, moved
        self.batches = [each for each in batches if not each.derived or self._is_right_by_default(each)]

    def wrong(self, session: ModelSession, allowed: Tolerance) -> str:
        """Say how a session's answers differ; empty where they do not.

        Raises:
            RefusedError: the runtime fails.
        """
        for batch in tuple(self.batches):
            found = session.run(batch.feed)
            said = batch.wrong(found, allowed)
            if said and not batch.is_settled:
                if not self._settle(batch):
                    self.batches.remove(batch)
                    continue
                said = batch.wrong(found, allowed)
            if said:
                return said
        return "" if any(not batch.derived for batch in self.batches) else _UNSTABLE

    def _is_right_by_default(self, batch: Batch) -> bool:
        found = self._by_default(batch)
        return found is not None and not batch.wrong(found)

    def _settle(self, batch: Batch) -> bool:
        """Find out what rounding comes to; False where the batch is of no use."""
        batch.is_settled = True
        moved = self._roundings[self._all.index(batch)] if self._roundings else batch.expected
        batch.widen(moved, OF_ROUNDING)
        if batch.wrong(moved):
            return False
        found = self._by_default(batch)
        if found is not None and not batch.wrong(found):
            batch.widen(found, OF_BASELINE)
        return not batch.is_blind

    def _by_default(self, batch: Batch) -> Answers | None:
        try:
            return self._baseline.run(batch.feed) if self._baseline is not None else None
        except RefusedError:  # that is the baseline's failure, in its turn
            return None

    @cached_property
    def _roundings(self) -> Sequence[Answers]:
        """The answers to all batches with other roundings; empty where the runtime refuses to give them."""
        try:
            return self._moved([batch.feed for batch in self._all])
        except RefusedError:
            return ()
