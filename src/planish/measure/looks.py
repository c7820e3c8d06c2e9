"""Measuring in turns until it is known who is better, while there is time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from planish.core import Start
from planish.measure.interleave import in_turns
from planish.measure.measuring_plan import Plan, Round, Variant

Table = list[list[Round]]
"""Outcomes by variant, process and round. A variant that is settled early has only the first processes."""


def until_settled(
    everybody: Sequence[Variant], plan: Plan, start: Start, unsettled: Callable[[Table], Sequence[int]]
) -> Table:
    """Measure all in turns, then those again of whom too little is known, in as many fresh processes.

    The number of processes doubles each time, so that there are few looks at what was found: each is an
    occasion to be fooled (see `planish.measure.interval`).

    Args:
        everybody: the baseline, then the variants, the most telling first.
        plan: how much is measured.
        start: starts an executor with fresh processes.
        unsettled: gives the places of those of whom too little is known; the baseline's, 0, is none.

    Returns:
        The outcomes; none of those for whom there was no time.
    """
    began = time.monotonic()
    table: Table = [*in_turns(everybody, plan, start)]
    table += [[] for _ in everybody[len(table) :]]
    while True:
        done = len(table[0])
        # Who is settled stays so: to look again would be one more occasion to be fooled.
        places = [place for place in unsettled(table) if len(table[place]) == done]
        left = plan.seconds - (time.monotonic() - began)
        # As many again as there were: doubling keeps the looks few (see `planish.measure.interval`).
        more = min(done, plan.most - done, _fitting(left, (time.monotonic() - began) / done))
        if not places or more <= 0:
            return table
        # Processes are counted from 0 again: another seed gives them other orders.
        further = replace(plan, processes=more, seed=plan.seed + done, seconds=left)
        # The baseline each time: ratios are of the same processes and rounds.
        again = [0, *places]
        found = in_turns([everybody[p] for p in again], further, start, least=0)
        if not any(found):
            return table
        for place, rows in zip(again, found, strict=False):
            table[place] += rows


def _fitting(seconds: float, each: float) -> int:
    """Give how many processes fit into the time that is left."""
    return 1 << 30 if math.isinf(seconds) or each == 0 else math.floor(seconds / each)
