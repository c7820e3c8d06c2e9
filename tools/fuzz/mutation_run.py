"""Runs of mutants: verification and the oracle asked about each, in a child that a wrong kernel may end."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from typing import Literal, NamedTuple, get_args

from fuzz.candidates import cases
from fuzz.case import Case, points
from fuzz.draw import pick
from fuzz.mutant import NONE, Mutant, Mutants
from fuzz.oracle import Judged, Oracle
from fuzz.shrink import legal, smaller_ones
from fuzz.worker import Plan
from planish.core import PlanishError, rng
from planish.levels.loops.evaluator import Verifier, final_verifier, search_verifier
from planish.levels.loops.runtime.kernels import Kernel

PATIENCE_S = 30
FEW, MANY = 4, 64
"""Sets of inputs that show most wrong kernels, and those that must show nothing where one is as good."""
MOST_POINTS = 1 << 21
"""Of all sets together; there are fewer of large programs."""

Verdict = Literal["refused", "accepted", "kept", "doubted", "equal", "beside", "not made"]
"""What came of a mutant: verification refused a wrong one; the search accepted it; what comes at the end did
too; it refused what the oracle found right; answers are right; they are, and it writes beside its arrays; no
code was made of it."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
WRONG, ACCEPTED = VERDICTS[:3], VERDICTS[1:3]


class Confronted(NamedTuple):
    """A mutant and what came of it.

    Args:
        mutant: which.
        verdict: see there.
        message: what is wrong with its answers.
    """

    mutant: Mutant
    verdict: Verdict
    message: str = ""


def refusal(kernel: Kernel, verifier: Verifier) -> str:
    """Ask verification as the evaluator does; empty where it accepts."""
    return verifier.wrong(kernel.bind(verifier.inputs, verifier.outputs)) or ""


Refuse = Callable[[Kernel, Verifier], str]
"""Returns why a verifier refuses a kernel."""


class Confronting:
    """Tries mutants of one program with one candidate.

    Args:
        one: any of them.
        seed: of the oracle's inputs.
        refuse: asks verification.

    Raises:
        PlanishError: there is no right kernel, or no inputs to verify it on.
    """

    def __init__(self, one: Mutant, seed: int, refuse: Refuse = refusal) -> None:
        self.mutants, self._refuse = Mutants(one), refuse
        self._many = max(2 * FEW, min(MANY, MOST_POINTS // points(self.mutants.program)))
        self._oracle = Oracle(self.mutants.program, (self.mutants.tree, self.mutants.right), seed)
        self._verifiers = search_verifier(self.mutants.program), final_verifier(self.mutants.program)

    def confront(self, mutant: Mutant) -> Confronted:
        """Ask both."""
        verdict: Verdict = "not made"
        message = ""
        for count in (FEW, self._many):
            self._oracle.sets(count)
            verdict, message = _verdict(_reports_of_child(partial(self._child, mutant, count)))
            if verdict not in ("equal", "beside", "doubted"):
                break
        return Confronted(mutant, verdict, message)

    def _child(self, mutant: Mutant, count: int) -> Iterator[tuple[str, str]]:
        tree, code = self.mutants.code(mutant.mistake, mutant.number)
        yield "made", ""
        kernel = Kernel(self.mutants.program, tree, code)
        refusal = self._refuse(kernel, self._verifiers[0])
        yield "search", refusal
        if not refusal:
            yield "end", self._refuse(kernel, self._verifiers[1])
        found = Judged(tree, code).on(self._oracle.sets(count))
        yield "answers", found.message
        yield "beside", "x" * found.beside


def _reports_of_child(what: Callable[[], Iterator[tuple[str, str]]]) -> dict[str, str]:
    """Return what a child of this process reports until it ends, by itself or by a signal."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        signal.alarm(PATIENCE_S)
        # What the system says of a ruined heap is nothing new.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            for name, text in what():
                os.write(writing, json.dumps([name, text]).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        reported = dict(json.loads(line) for line in lines)
    os.waitpid(child, 0)
    return reported


def _verdict(reported: Mapping[str, str]) -> tuple[Verdict, str]:
    """Return the verdict by what the child reported; one that ended too early was ended by the kernel."""
    if "made" not in reported:
        return "not made", ""
    message = reported.get("answers", "it ends its process")
    if reported.get("search", "it ends its process"):
        return ("refused" if message else "doubted"), message
    if message:
        return ("accepted" if reported.get("end", "it ends its process") else "kept"), message
    return ("beside" if reported["beside"] else "equal"), ""


OF_EACH = 12
"""Mutants of a program with a candidate, beside the right kernel."""
SHRINKING_S = 60
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


def shrunk(mutant: Mutant, seed: int, refuse: Refuse = refusal) -> Confronted | None:
    """Make an accepted mutant smaller as long as one of its kind is accepted; None if it is no longer."""
    best = accepted(mutant, seed, refuse)
    end, better = time.monotonic() + SHRINKING_S, best is not None
    while better and best:
        better = False
        m = best.mutant
        for case in smaller_ones(Case(m.program, m.steps, m.backend)):
            if time.monotonic() > end:
                break
            small = replace(m, program=case.program, steps=case.steps, number=-1)
            if legal(case) and (found := accepted(small, seed, refuse)):
                best, better = found, True
                break
    return best


def accepted(mutant: Mutant, seed: int, refuse: Refuse = refusal) -> Confronted | None:
    """Return a mutant if verification accepts it; of number -1, any of its kind."""
    try:
        confronting = Confronting(mutant, seed, refuse)
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
