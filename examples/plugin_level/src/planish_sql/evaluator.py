"""Builds, verifies and measures index lists of one program; lives in a worker process."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass

from planish.core import Candidate, Failed, Measured, Outcome, StageClock
from planish.measure import SEARCH_TIMING, Timing, repeated, time_call
from planish_sql.program import SqlProgram
from planish_sql.space import Index, IndexSpace


@dataclass(frozen=True)
class SqlEvaluator:
    """Makes an evaluator in a worker; it is pickled to get there.

    Args:
        program: whose candidates are evaluated.
        timing: how long each is timed.
    """

    program: SqlProgram
    timing: Timing = SEARCH_TIMING

    def __call__(self) -> _Evaluator:
        return _Evaluator(self)


class _Evaluator:
    def __init__(self, spec: SqlEvaluator) -> None:
        self._timing = spec.timing
        self._query = spec.program.query
        self._space = IndexSpace(spec.program)
        self._plain = spec.program.database()
        # Rows come in any order, and the same row may come twice.
        self._expected = Counter(self._plain.execute(self._query))

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Build the indexes, compare the answer, and only then time the query."""
        with clock("transform"):
            self._space.check(candidate)
        with clock("build"):
            database = sqlite3.connect(":memory:")
            self._plain.backup(database)
            database.executescript("".join(step.sql for step in candidate.steps if isinstance(step, Index)))
        with clock("verify"):
            if Counter(database.execute(self._query)) != self._expected:
                return Failed("verify", "wrong answer", "the query gives other rows than without indexes")
        with clock("run"):
            timed = time_call(repeated(lambda: database.execute(self._query).fetchall()), self._timing)
        (size,) = database.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        database.close()
        return Measured({"time_s": timed.median, "bytes": float(size[0])}, {"time_s": timed.seconds})
