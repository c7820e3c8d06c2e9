"""Verification and the oracle asked about the same mutants, each in a child, which a wrong kernel may end."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Literal, NamedTuple, get_args

from fuzz.case import points
from fuzz.mutant import Mutant, Mutants
from fuzz.oracle import Judged, Oracle
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.verifying import Verifier, final_verifier, search_verifier

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


class Confronting:
    """Tries mutants of one program with one candidate.

    Args:
        one: any of them.
        seed: of the oracle's inputs.

    Raises:
        PlanishError: there is no right kernel, or no inputs to verify it on.
    """

    def __init__(self, one: Mutant, seed: int) -> None:
        self.mutants = Mutants(one)
        self._many = max(2 * FEW, min(MANY, MOST_POINTS // points(self.mutants.program)))
        self._oracle = Oracle(self.mutants.program, (self.mutants.tree, self.mutants.right), seed)
        self._verifiers = search_verifier(self.mutants.program), final_verifier(self.mutants.program)

    def confront(self, mutant: Mutant) -> Confronted:
        """Ask both."""
        verdict: Verdict = "not made"
        message = ""
        for count in (FEW, self._many):
            self._oracle.sets(count)
            verdict, message = _verdict(_told_by_child(partial(self._child, mutant, count)))
            if verdict not in ("equal", "beside", "doubted"):
                break
        return Confronted(mutant, verdict, message)

    def _child(self, mutant: Mutant, count: int) -> Iterator[tuple[str, str]]:
        tree, code = self.mutants.code(mutant.mistake, mutant.number)
        yield "made", ""
        kernel = Kernel(self.mutants.program, tree, code)
        refusal = _refusal(kernel, self._verifiers[0])
        yield "search", refusal
        if not refusal:
            yield "end", _refusal(kernel, self._verifiers[1])
        found = Judged(tree, code).on(self._oracle.sets(count))
        yield "answers", found.message
        yield "beside", "x" * found.beside


def _refusal(kernel: Kernel, verifier: Verifier) -> str:
    """Ask verification as the evaluator does."""
    return verifier.wrong(kernel.bind(verifier.inputs, verifier.outputs)) or ""


def _told_by_child(what: Callable[[], Iterator[tuple[str, str]]]) -> dict[str, str]:
    """Return what a child of this process tells until it ends, by itself or by a signal."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        signal.alarm(PATIENCE_S)
        # What the system says of a ruined heap tells nothing new.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            for name, text in what():
                os.write(writing, json.dumps([name, text]).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        told = dict(json.loads(line) for line in lines)
    os.waitpid(child, 0)
    return told


def _verdict(told: Mapping[str, str]) -> tuple[Verdict, str]:
    """Tell what came of it from what the child told; one that ended too early was ended by the kernel."""
    if "made" not in told:
        return "not made", ""
    message = told.get("answers", "it ends its process")
    if told.get("search", "it ends its process"):
        return ("refused" if message else "doubted"), message
    if message:
        return ("accepted" if told.get("end", "it ends its process") else "kept"), message
    return ("beside" if told["beside"] else "equal"), ""
