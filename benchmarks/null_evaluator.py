"""An evaluator that does nothing; in a module of its own, so that workers can import it."""

from dataclasses import dataclass

from planish.core import Candidate, Measured, Outcome, StageClock, Step

SAMPLES = tuple(k * 1e-6 for k in range(20))


@dataclass(frozen=True)
class Split(Step):
    """A step of the usual size."""

    axis: str
    factor: int


class NullEvaluator:
    """Enters every stage, and gives as many samples as a measurement does."""

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Do nothing."""
        assert candidate.steps
        for stage in ("transform", "build", "verify", "run"):
            with clock(stage):
                pass
        return Measured({"time_s": 1e-6}, {"time_s": SAMPLES})


def candidates(count: int) -> list[Candidate]:
    """Make candidates of eight steps, all different."""
    return [Candidate(tuple(Split(f"axis{k}", i + k) for k in range(8))) for i in range(count)]
