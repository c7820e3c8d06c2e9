"""Measuring some in turns: in fresh processes one after the other, in rounds, while there is time."""

from __future__ import annotations

import time
from collections.abc import Sequence

from planish.measure.plan import Entrant, Plan, Round, Start
from planish.measure.rounds import Losses, Turns, measured


def in_turns(everybody: Sequence[Entrant], plan: Plan, start: Start) -> list[list[Round]]:
    """Measure the baseline and entrants, interleaved; each process has a share of the time that is left.

    The first has two shares, since evaluators may keep for the others what takes long to make; but it leaves
    them the time for a round each. There are as many rounds as fit in the share of every process, and one at
    least. In the very first round entrants are measured in their order, and who does not fit in the share is
    left out of all; in the other rounds a seed shuffles them.

    A process that is lost is replaced, and its rounds are done again; that takes longer by as much. Over whom
    three are lost in a row, that one is given up, and has failed.

    Args:
        everybody: the baseline, then the entrants, the most telling first.
        plan: how much is measured.
        start: starts an executor with fresh processes.

    Returns:
        Outcomes by entrant, then by process, then by round; none of those who were left out.

    Raises:
        LostError: the baseline is given up, or nobody can be measured for all the losses.
    """
    over, kept, rounds = time.monotonic() + plan.seconds, list(everybody), plan.rounds
    table: list[list[Round]] = []
    losses = Losses()
    for process in range(plan.processes):
        share = 1 / (plan.processes - process) if process else 2 / (plan.processes + 1)
        now = time.monotonic()
        turns = Turns(kept, plan, process, rounds, (now + share * (over - now), over))
        found, lost_s = measured(turns, start, losses)
        table.append(found)
        over += lost_s
        kept, rounds = kept[: len(table[0][0])], len(table[-1])
    return [[[each[place] for each in found[:rounds]] for found in table] for place in range(len(kept))]
