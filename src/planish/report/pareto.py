"""What was traded for what, where there are several objectives."""

from collections.abc import Sequence
from dataclasses import dataclass

from planish.core import Candidate, Objective, Trial, front_of

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
        finalists: what was measured again at the end, by its values in the search.
        baseline: None where the search did not measure it.
    """

    x: Objective
    y: Objective
    points: tuple[Point, ...]
    front: tuple[Point, ...]
    finalists: tuple[Point, ...]
    baseline: Point | None


def tradeoffs(
    trials: Sequence[Trial],
    objectives: Sequence[Objective],
    finalists: Sequence[Candidate],
    baseline: Candidate | None,
) -> list[Tradeoff]:
    """Set each further objective against the leading one.

    Args:
        trials: of the run.
        objectives: of the task.
        finalists: to be marked.
        baseline: to be marked; None where it is not known.
    """
    measured = [(t.candidate.hash, c) for t in trials if (c := t.costs(objectives)) is not None]
    known = [(name, _values(costs, objectives)) for name, costs in measured]
    best = [known[place][1] for place in front_of([costs for _, costs in measured])]
    places = dict(known)
    kept = [values for _, values in known][:: -(-len(known) // MOST) or 1]
    marked = [places[c.hash] for c in finalists if c.hash in places]
    start = places.get(baseline.hash) if baseline else None

    def pair(values: Sequence[float], other: int) -> Point:
        return values[0], values[other]

    return [
        Tradeoff(
            objectives[0],
            objectives[n],
            tuple(pair(v, n) for v in kept),
            tuple(sorted(pair(v, n) for v in best)),
            tuple(pair(v, n) for v in marked),
            pair(start, n) if start else None,
        )
        for n in range(1, len(objectives))
        if known
    ]


def _values(costs: Sequence[float], objectives: Sequence[Objective]) -> list[float]:
    """Give values for costs: turned over twice, a value is itself again."""
    return [o.cost(cost) for o, cost in zip(objectives, costs, strict=True)]
