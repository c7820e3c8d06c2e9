"""A network as a policy over lists: it reads the program once, and then says which list, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planish.core import Candidate, CanObserve, PlanishError, Policy, PolicyState, Space, Step
from planish.learn.language.decoder import DecoderShape
from planish.learn.language.network import HEADS, ReaderShape, expected
from planish.learn.language.writer import WriterShape
from planish.learn.policy.language_model import AnsweringPolicy
from planish.learn.policy.network_policy import NetworkPolicy
from planish.learn.policy.saved import SavedPolicy
from planish.learn.policy.written import WritingPolicy

Way = tuple[tuple[Step, ...], float]
"""What is left of a list, and the logarithm of its probability."""


@dataclass(frozen=True)
class Reading:
    """Where a policy over lists stands: the lists that begin so."""

    candidate: Candidate
    ways: tuple[Way, ...]


class ListPolicy:
    """Writes one of the lists that its network knows, a step at a time.

    The probability of a step is that of all lists which go on so; thus the lists are as probable as the
    network has them. Lists with a step that the space lacks, as where a pass breaks the module, are left out.

    Args:
        saved: the network, and what it is for.
    """

    def __init__(self, saved: SavedPolicy) -> None:
        assert isinstance(saved.shape, ReaderShape)
        self._saved, self._shape = saved, saved.shape

    def begin(self, space: Space) -> Reading:
        """Read the program of a space.

        Raises:
            PlanishError: the policy is for another space.
        """
        why = self._saved.unfit(space) if isinstance(space, CanObserve) else "observes programs"
        if why or not isinstance(space, CanObserve):
            raise PlanishError(f"the policy {self._saved.name} {why}", "planish policy lists others.")
        observed = space.observe(space.start())[None]
        said = expected(self._shape, self._saved.parameters, observed)[0, HEADS.index("choice")]
        steps = {str(step): step for step in space.actions}
        ways = [
            (tuple(steps[text] for text in self._saved.actions[place].split(",")), float(said[place]))
            for place in self._saved.written(steps)
        ]
        return Reading(space.start(), tuple(ways))

    def extend(self, state: PolicyState, step: Step) -> Reading:
        """Keep the lists that go on with a step."""
        assert isinstance(state, Reading)
        ways = tuple((rest[1:], sure) for rest, sure in state.ways if rest and rest[0] == step)
        return Reading(state.candidate.then(step), ways)

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Add up the lists that go on with each step, or end; where none goes on, there is the end alone."""
        return [_next(state.ways) for state in states if isinstance(state, Reading)]


def policy_of(saved: SavedPolicy) -> Policy:
    """Make a policy of what was saved: one that walks, chooses among lists, writes them, or answers."""
    if isinstance(saved.shape, DecoderShape):
        return AnsweringPolicy(saved)
    if isinstance(saved.shape, WriterShape):
        return WritingPolicy(saved)
    return ListPolicy(saved) if isinstance(saved.shape, ReaderShape) else NetworkPolicy(saved)


def _next(ways: Sequence[Way]) -> Mapping[Step | None, float]:
    if not ways:
        return {None: 0.0}
    found = dict[Step | None, float]()
    for rest, sure in ways:
        step = rest[0] if rest else None
        # In logarithms: probabilities of improbable lists would be 0 in float64 long before their ratio is.
        found[step] = float(np.logaddexp(found.get(step, -np.inf), sure))
    # Divided by what is left: lists that cannot be written here have given their share to the others.
    whole = float(np.logaddexp.reduce(list(found.values())))
    return {step: sure - whole for step, sure in found.items()}
