"""A network as a policy: it walks a space of numbered actions until it ends, or has no step left.

The thesis' agent (3.6.2) has no ending action, since exploring suffered from it. A network that knows what
actions are worth is none the worse for it, and need not walk about when it has found what it can. Its score
of the end is what it holds the state itself for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planish.core import Candidate, CanObserve, PlanishError, PolicyState, Space, Step
from planish.learn.policy.network import Shape, scaled, scores
from planish.learn.policy.saved import SavedPolicy

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Standing:
    """Where a network stands: a candidate of a space."""

    space: CanObserve
    candidate: Candidate


class NetworkPolicy:
    """Asks a network for the next action, or the end; after its number of steps there is only the end.

    Args:
        saved: the network, and what it is for.
    """

    def __init__(self, saved: SavedPolicy) -> None:
        assert isinstance(saved.shape, Shape)
        self._saved, self._shape = saved, saved.shape

    def begin(self, space: Space) -> Standing:
        """Stand at the start of a space.

        Raises:
            PlanishError: the policy is for another space.
        """
        why = f"is for the actions of {self._saved.schema.name}"
        if isinstance(space, CanObserve) and not (why := self._saved.unfit(space)):
            return Standing(space, space.start())
        raise PlanishError(
            f"the policy {self._saved.name} {why}",
            "Use the space that it learnt in, or one of `planish policy`.",
        )

    def extend(self, state: PolicyState, step: Step) -> Standing:
        """Take a step."""
        assert isinstance(state, Standing)
        return Standing(state.space, state.space.extend(state.candidate, step))

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Ask the network once for all states that are not at their end; illegal actions are masked."""
        standing = [state for state in states if isinstance(state, Standing)]
        legal = [self._legal(state) for state in standing]
        open_ = [place for place, steps in enumerate(legal) if steps]
        # Where no step is legal, or all are taken, the end is certain.
        found: list[Mapping[Step | None, float]] = [{None: 0.0}] * len(standing)
        if open_:
            for place, row in zip(open_, self._scores([standing[p] for p in open_]), strict=True):
                found[place] = _masked(standing[place].space.actions, legal[place], row)
        return found

    def worth(self, states: Sequence[PolicyState]) -> Sequence[float]:
        """Give the scores of the end: what the network holds each candidate for."""
        standing = [state for state in states if isinstance(state, Standing)]
        return self._scores(standing)[:, -1].tolist()

    def _legal(self, state: Standing) -> Sequence[Step]:
        over = len(state.candidate.steps) >= self._saved.steps
        return () if over else state.space.steps(state.candidate)

    def _scores(self, states: Sequence[Standing]) -> Floats:
        observed = np.stack([state.space.observe(state.candidate) for state in states])
        done = np.array([len(state.candidate.steps) for state in states], np.float32)
        rows = scaled(observed, 1 - done / np.float32(self._saved.steps))
        return scores(np, self._shape, self._saved.parameters, rows)


def _masked(actions: Sequence[Step], legal: Sequence[Step], row: Floats) -> Mapping[Step | None, float]:
    place: dict[Step | None, int] = {action: number for number, action in enumerate((*actions, None))}
    open_: Sequence[Step | None] = (*legal, None)
    kept = np.array([row[place[step]] for step in open_], np.float64)
    # Less the greatest, so that no exponential overflows; masked first, for illegal actions must get no
    # share.
    sure = kept - kept.max()
    sure -= np.log(np.exp(sure).sum())
    return dict(zip(open_, sure.tolist(), strict=True))
