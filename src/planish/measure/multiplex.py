"""Several evaluators in one worker process, for candidates that say whose they are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planish.core import Candidate, Evaluator, EvaluatorSpec, Lost, Outcome, StageClock, Step
from planish.isolation.cage import Cage
from planish.isolation.limits import Limits


@dataclass(frozen=True)
class Turn(Step):
    """Whose turn it is; the first step of a candidate on its way to the panel.

    Args:
        variant: whose.
        later: whether the same process must have had a turn before. A process that is killed while it has
            nothing to do is replaced without a word; the new one tells by this that it is not the same.
    """

    variant: int
    later: bool


@dataclass(frozen=True)
class Panel:
    """Makes the evaluators of all variants; variants that share a spec share an evaluator.

    Args:
        specs: one for each variant.
    """

    specs: tuple[EvaluatorSpec, ...]

    @property
    def limits(self) -> Limits:
        """What suffices for every variant; nobody is evaluated again alone, since rounds are to be whole."""
        return replace(Limits.widest(map(Limits.of, self.specs)), attempts=1)

    @property
    def cage(self) -> Cage | None:
        """How the worker is confined: as for whoever runs programs, with what all of them may read."""
        return Cage.widest(map(Cage.of, self.specs))

    def __call__(self) -> Evaluator:
        distinct = {id(spec): spec for spec in self.specs}
        made = {key: spec() for key, spec in distinct.items()}
        return _Switch([made[id(spec)] for spec in self.specs])


class _Switch:
    def __init__(self, evaluators: Sequence[Evaluator]) -> None:
        self._evaluators = evaluators
        self._begun = False

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        turn, *steps = candidate.steps
        assert isinstance(turn, Turn)
        if turn.later and not self._begun:
            return Lost("worker", "killed", "the process was lost between two of its turns")
        self._begun = True
        return self._evaluators[turn.variant].evaluate(Candidate(tuple(steps)), clock)
