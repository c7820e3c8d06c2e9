"""The order in which members of a front are measured again: the most telling first, useless ones never."""

from __future__ import annotations

from collections.abc import Sequence
from operator import le

from planish.core import Costs, hypervolume


def telling(
    costs: Sequence[Costs],
    worst: Costs | None,
    baseline: Costs | None,
    least: Sequence[Costs] | None = None,
) -> list[int]:
    """Put the members of a front in the order in which they tell the most, wherever the time ends.

    First comes the knee, which is the one that dominates most, of those that are worse than the baseline in
    nothing, if there are any: they alone may be called better, so on a busy machine, where one or two can be
    measured, it is one of them. Then come the best by each objective; then always the one that adds most to
    what those before it dominate.

    Args:
        costs: of the members, no two equal.
        worst: what is worse than this in any objective is of no use; None where the baseline is not known.
        baseline: its costs; None where they are not known.
        least: how low the costs of each may be, since they are noisy: who may be no worse than the baseline
            counts as such. None: as measured.

    Returns:
        The places of those that are of use.
    """
    useful = [place for place, vector in enumerate(costs) if worst is None or _within(vector, worst)]
    if not useful:
        return []
    # Without a baseline: the worst of all, beside which the ends of the front add nothing.
    reference = worst or tuple(map(max, zip(*costs, strict=True)))
    # Only one of these goes first: the front is to be shown in its breadth.
    lowest = costs if least is None else least
    harmless = [place for place in useful if baseline is not None and _within(lowest[place], baseline)]
    first = _adding(harmless, [], costs, reference)[:1]
    order = list(dict.fromkeys([*first, *_ends([costs[place] for place in useful], useful)]))
    return order + _adding([place for place in useful if place not in order], order, costs, reference)


def _within(costs: Costs, most: Costs) -> bool:
    return all(map(le, costs, most))


def _ends(costs: Sequence[Costs], places: Sequence[int]) -> list[int]:
    """Give the best by each objective; of equals the first."""
    return [places[column.index(min(column))] for column in zip(*costs, strict=True)]


def _adding(
    places: Sequence[int], before: Sequence[int], costs: Sequence[Costs], reference: Costs
) -> list[int]:
    """Order places so that each adds the most hypervolume to what is before it."""
    left, order = list(places), list[int]()
    while left:
        held = [costs[place] for place in (*before, *order)]
        # Greedy: hypervolume is submodular, so what is added first comes near the best choice of as many.
        order.append(max(left, key=lambda place: hypervolume([*held, costs[place]], reference)))
        left.remove(order[-1])
    return order
