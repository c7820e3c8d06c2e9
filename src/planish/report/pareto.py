"""What was traded for what, where there are several objectives."""

from collections.abc import Sequence
from dataclasses import dataclass

from planish.core import Candidate, Objective, Trial, front_of
from planish.report.remeasured import Remeasured, remeasured, told_steps
from planish.results.comparison import Comparison

MOST = 4000
"""Points drawn at most, those on the front apart."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Tradeoff:
    """Two objectives, one over the other.

    Args:
        x: the leading objective.
        y: another.
        points: every measured trial; of more than `MOST`, every so manieth.
        front: those that no trial beats in all objectives of the task, by x.
        told: what is told of each on the front.
        finalists: what was measured again at the end, by its values in the search.
        baseline: None where the search did not measure it.
        again: the same front as measured again at the end; None where it was not.
    """

    x: Objective
    y: Objective
    points: tuple[Point, ...]
    front: tuple[Point, ...]
    told: tuple[str, ...]
    finalists: tuple[Point, ...]
    baseline: Point | None
    again: Remeasured | None = None


def tradeoffs(
    trials: Sequence[Trial],
    objectives: Sequence[Objective],
    finalists: Sequence[Candidate],
    baseline: Candidate | None,
    again: Comparison | None = None,
) -> list[Tradeoff]:
    """Set each further objective against the leading one.

    Args:
        trials: of the run.
        objectives: of the task.
        finalists: to be marked.
        baseline: to be marked; None where it is not known.
        again: the front as measured again at the end.
    """
    measured = [(t.candidate, c) for t in trials if (c := t.costs(objectives)) is not None]
    known = [(candidate.hash, _values(costs, objectives)) for candidate, costs in measured]
    best = [(known[place][1], told_steps(measured[place][0])) for place in front_of([c for _, c in measured])]
    places = dict(known)
    kept = [values for _, values in known][:: -(-len(known) // MOST) or 1]
    marked = [places[c.hash] for c in finalists if c.hash in places]
    start = places.get(baseline.hash) if baseline else None

    def pair(values: Sequence[float], other: int) -> Point:
        return values[0], values[other]

    def against(n: int) -> Tradeoff:
        front = sorted((pair(values, n), told) for values, told in best)
        return Tradeoff(
            objectives[0],
            objectives[n],
            tuple(pair(v, n) for v in kept),
            tuple(point for point, _ in front),
            tuple(told for _, told in front),
            tuple(pair(v, n) for v in marked),
            pair(start, n) if start else None,
            remeasured(again, objectives[0], objectives[n]) if again else None,
        )

    return [against(n) for n in range(1, len(objectives)) if known]


def _values(costs: Sequence[float], objectives: Sequence[Objective]) -> list[float]:
    """Give values for costs: turned over twice, a value is itself again."""
    return [o.cost(cost) for o, cost in zip(objectives, costs, strict=True)]
