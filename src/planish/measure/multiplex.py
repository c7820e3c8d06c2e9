"""Several evaluators in one worker process, for candidates that say whose they are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planish.core import Candidate, Evaluator, EvaluatorSpec, Outcome, StageClock, Step
from planish.isolation.cage import Cage
from planish.isolation.limits import Limits


@dataclass(frozen=True)
class Turn(Step):
    """Whose turn it is; the first step of a candidate on its way to the panel."""

    variant: int


@dataclass(frozen=True)
class Panel:
    """Makes the evaluators of all variants; variants that share a factory share an evaluator.

    Args:
        factories: one for each variant.
    """

    factories: tuple[EvaluatorSpec, ...]

    @property
    def limits(self) -> Limits:
        """What suffices for every variant; nobody is evaluated again alone, since rounds are to be whole."""
        return replace(Limits.widest(map(Limits.of, self.factories)), attempts=1)

    @property
    def cage(self) -> Cage | None:
        """How the worker is confined: as for whoever runs programs, with what all of them may read."""
        return Cage.widest(map(Cage.of, self.factories))

    def __call__(self) -> Evaluator:
        distinct = {id(factory): factory for factory in self.factories}
        made = {key: factory() for key, factory in distinct.items()}
        return _Switch([made[id(factory)] for factory in self.factories])


class _Switch:
    def __init__(self, evaluators: Sequence[Evaluator]) -> None:
        self._evaluators = evaluators

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        turn, *steps = candidate.steps
        assert isinstance(turn, Turn)
        return self._evaluators[turn.variant].evaluate(Candidate(tuple(steps)), clock)
