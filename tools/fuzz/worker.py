"""A process that tries the cases of some programs; its parent sees where it was, if a kernel ends it."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from typing import NamedTuple

from fuzz.candidates import cases
from fuzz.case import Case, Verdict, judge

PATIENCE_S = 120
"""Of one case; the system ends a process that takes longer."""


class Place(NamedTuple):
    """Which case: the number of its program, and its own number among that program's."""

    program: int
    case: int


class Tried(NamedTuple):
    """A case and what came of it."""

    case: Case
    verdict: Verdict
    message: str


class Plan(NamedTuple):
    """What a run tries.

    Args:
        seed: of programs, candidates and inputs.
        jobs: worker processes; each takes every so-manieth program.
        backends: those to try.
        inputs: "plain", "special" or "both".
        programs: the kind of all programs; empty for any.
    """

    seed: int
    jobs: int
    backends: Sequence[str]
    inputs: str = "both"
    programs: str = ""

    def takes(self, case: Case) -> bool:
        """Whether a case is to be tried."""
        kind = "special" if case.special else "plain"
        return case.backend in self.backends and self.inputs in ("both", kind)


def work(plan: Plan, start: Place) -> None:
    """Try programs from a place on, for ever; a line is written before and after each case."""
    first = start.case
    number = start.program
    while True:
        for i, case in enumerate(cases(plan.seed, number, plan.programs)):
            if i >= first and plan.takes(case):
                _say("begin", number, i, vars(case))
                signal.alarm(PATIENCE_S)
                verdict, message = judge(case)
                signal.alarm(0)
                _say("end", verdict, message)
        number, first = number + plan.jobs, 0


def _say(*words: object) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()
