"""Measuring some in turns: in fresh processes one after the other, in rounds, while there is time."""

from __future__ import annotations

import time
from collections.abc import Sequence

from planish.core import Start
from planish.measure.comparison_rounds import CutShortError, Losses, Turns, measured
from planish.measure.measuring_plan import Plan, Round, Variant


def in_turns(everybody: Sequence[Variant], plan: Plan, start: Start, least: int = 2) -> list[list[Round]]:
    """Measure the baseline and variants, interleaved; each process has a share of the time that is left.

    The first has two shares, since evaluators may keep for the others what takes long to make; but it leaves
    them the time for a round each. There are as many rounds as fit in the share of every process, and one at
    least; and as many processes as fit then, `least` at least. In the very first round variants are measured
    in their order, and who does not fit in the share, or in the later processes, is left out of all; in the
    other rounds a seed shuffles them.

    A process that is lost is replaced, and its rounds are done again; that takes longer by as much. Over whom
    three are lost in a row, that one is given up: nothing is known of it.

    Args:
        everybody: the baseline, then the variants, the most telling first.
        plan: how much is measured.
        start: starts an executor with fresh processes. It may end a batch early.
        least: processes that are not left out for want of time.

    Returns:
        Outcomes by variant, then by process, then by round; none of those who were left out.

    Raises:
        CutShortError: the executor ended a batch of one of the least processes early.
        LostError: the baseline is given up, or nobody can be measured for all the losses.
    """
    over, kept, rounds = time.monotonic() + plan.seconds, list(everybody), plan.rounds
    least = min(least, plan.processes)
    table: list[list[Round]] = []
    losses, each_s = Losses(), 0.0
    for process in range(plan.processes):
        # Of the time that is left and not of all: what one process did not use is the others'.
        share = 1 / (plan.processes - process) if process else 2 / (plan.processes + 1)
        now = time.monotonic()
        if process >= least and now + each_s > over:
            break
        turns = Turns(kept, plan, process, rounds, (now + share * (over - now), over))
        try:
            done = measured(turns, start, losses)
        except CutShortError:
            if process < least:
                raise
            break
        table.append(done.rounds)
        # Losses are nobody's fault, so they do not shorten what is measured.
        over, each_s = over + done.lost_s, done.least_s
        # No more rounds than the one before had: ratios are paired by round, so all processes need the same
        # number.
        kept, rounds = kept[: len(table[0][0])], len(done.rounds)
    return [[[each[place] for each in found[:rounds]] for found in table] for place in range(len(kept))]
