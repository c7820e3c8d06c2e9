"""What was traded for what, where there are several objectives."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import le

from planish.core import Candidate, Objective, Trial
from planish.report.curve import value_of

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


def front_of(costs: Sequence[Sequence[float]]) -> list[int]:
    """Find the vectors that no other dominates; of equal ones the first.

    Args:
        costs: vectors of one length; less is better.

    Returns:
        Places, sorted by cost.
    """
    front: list[int] = []
    # In this order nothing is dominated by what comes later.
    for place in sorted(range(len(costs)), key=lambda i: (*costs[i], i)):
        # Of two costs the second falls along the front, so its end tells for all.
        rivals = front[-1:] if len(costs[place]) <= 2 else front
        if not any(all(map(le, costs[held], costs[place])) for held in rivals):
            front.append(place)
    return front


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
    known = [(t.candidate.hash, v) for t in trials if (v := _values(t, objectives)) is not None]
    costs = [[o.cost(v) for o, v in zip(objectives, values, strict=True)] for _, values in known]
    best = [known[place][1] for place in front_of(costs)]
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


def _values(trial: Trial, objectives: Sequence[Objective]) -> list[float] | None:
    values = [v for o in objectives if (v := value_of(trial, o)) is not None]
    return values if len(values) == len(objectives) else None
