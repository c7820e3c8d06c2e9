"""Many mutants, how many of the wrong ones verification accepts, and the smallest of those."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

from fuzz.candidates import cases
from fuzz.case import Case
from fuzz.confronting import ACCEPTED, VERDICTS, WRONG, Confronted, Confronting
from fuzz.draw import pick
from fuzz.mutant import NONE, Mutant
from fuzz.shrink import legal, smaller_ones
from fuzz.worker import Plan
from planish.core import PlanishError, rng

OF_EACH = 12
"""Mutants of a program with a candidate, beside the right kernel."""
PATIENCE_S = 60
"""To make a mutant smaller."""


def try_mutants(plan: Plan, first: int, most: int) -> Generator[Confronted]:
    """Try mutants of random programs with random candidates.

    Args:
        plan: which programs and back ends.
        first: number of the first program.
        most: how many mutants.
    """
    numbers = range(first, first + -(-most // OF_EACH))
    with get_context("spawn").Pool(plan.jobs) as pool:
        for found in pool.imap(partial(of_program, plan), numbers):
            yield from found


def table(found: Sequence[Confronted]) -> str:
    """Write a table: of how many wrong mutants how many were accepted, by mistake."""
    counts = Counter((f.mutant.mistake, f.verdict) for f in found)
    rows = [(kind, [counts[kind, v] for v in VERDICTS]) for kind in sorted({kind for kind, _ in counts})]
    rows.append(("all", [sum(counts[kind, v] for kind, _ in rows) for v in VERDICTS]))
    heads = ("tried", "wrong", "accepted", "kept", *(v for v in VERDICTS if v not in WRONG))
    lines = [f"{'mistake':18}" + "".join(f"{head:>10}" for head in heads)]
    for kind, numbers in rows:
        by = dict(zip(VERDICTS, numbers, strict=True))
        wrong, accepted_ones = (sum(by[v] for v in some) for some in (WRONG, ACCEPTED))
        shown = [
            sum(numbers),
            wrong,
            accepted_ones,
            by["kept"],
            *(n for v, n in by.items() if v not in WRONG),
        ]
        lines.append(f"{kind:18}" + "".join(f"{n:10}" for n in shown))
    return "\n".join(lines)


def shrunk(mutant: Mutant, seed: int) -> Confronted | None:
    """Make an accepted mutant smaller as long as one of its kind is accepted; None if it is no longer."""
    best = accepted(mutant, seed)
    end, better = time.monotonic() + PATIENCE_S, best is not None
    while better and best:
        better = False
        m = best.mutant
        for case in smaller_ones(Case(m.program, m.steps, m.backend)):
            if time.monotonic() > end:
                break
            small = replace(m, program=case.program, steps=case.steps, number=-1)
            if legal(case) and (found := accepted(small, seed)):
                best, better = found, True
                break
    return best


def accepted(mutant: Mutant, seed: int) -> Confronted | None:
    """Return a mutant if verification accepts it; of number -1, any of its kind."""
    try:
        confronting = Confronting(mutant, seed)
    except PlanishError:
        return None
    of_kind = range(len(confronting.mutants.kinds.get(mutant.mistake, ())))
    numbers = list(of_kind)[:OF_EACH] if mutant.number < 0 else [mutant.number]
    for number in numbers:
        found = confronting.confront(replace(mutant, number=number))
        if found.verdict in ACCEPTED:
            return found
    return None


def of_program(plan: Plan, number: int) -> Sequence[Confronted]:
    """Try `OF_EACH` mutants of a program; none where there is nothing to verify, or no kernel."""
    random = rng(plan.seed, number, 1 << 22)
    own = [case for case in cases(plan.seed, number, plan.programs) if case.backend in plan.backends]
    case = pick(random, own)
    try:
        confronting = Confronting(Mutant(case.program, case.steps, case.backend, "", 0), plan.seed)
    except PlanishError:
        return []
    kinds = confronting.mutants.kinds
    drawn = {Mutant(case.program, case.steps, case.backend, NONE, 0): None}
    for _ in range(OF_EACH):
        # By kind first: a tree has many more strides than starts.
        mistake = pick(random, [kind for kind in kinds if kind != NONE])
        which = int(random.integers(len(kinds[mistake])))
        drawn[Mutant(case.program, case.steps, case.backend, mistake, which)] = None
    return [confronting.confront(mutant) for mutant in drawn]
