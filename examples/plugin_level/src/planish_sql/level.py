"""The level `sql`: what planish asks for."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from planish.core import (
    Candidate,
    Objective,
    PlanishError,
    Program,
    ProgramError,
    Space,
    Step,
    Target,
    Task,
    processor,
    unknown,
)
from planish.measure import FINAL_TIMING, SEARCH_TIMING
from planish_sql.evaluator import SqlEvaluator
from planish_sql.program import SqlProgram
from planish_sql.space import Index, IndexSpace


class SqlLevel:
    """Queries of SQLite; a candidate is a list of indexes."""

    name = "sql"
    version = "1"
    objectives: Mapping[str, Objective] = {
        "time_s": Objective("time_s", "s"),
        "bytes": Objective("bytes", "B", exact=True),
    }
    spaces = ("indexes",)
    searchers = ("genetic", "exhaustive", "random")
    steps: Mapping[str, type[Step]] = {"Index": Index}

    def accepts(self, source: str) -> bool:
        """Whether it is a file named `*.sql`."""
        return source.endswith(".sql")

    def load(self, source: str, options: Mapping[str, str]) -> SqlProgram:
        """Read a file; the level has no options."""
        for name in options:
            raise unknown("level 'sql' has no option", name, ())
        try:
            program = SqlProgram(Path(source).read_text(encoding="utf-8"))
        except OSError as error:
            raise ProgramError(f"cannot read '{source}': {error.strerror}", "Check the path.") from error
        program.columns()  # what is wrong with the tables is said now, and not by every worker
        return program

    def read(self, text: str, target: Target) -> SqlProgram:  # noqa: ARG002
        """Read what a store has; it is data, so nothing of it is executed here."""
        return SqlProgram(text)

    def target(self, program: Program, cores: int) -> Target:  # noqa: ARG002
        """Describe this machine: another SQLite makes other measurements."""
        if cores != 1:
            raise PlanishError("SQLite runs a query on one core", "Leave --cores out.")
        return Target(processor(), toolchain={"sqlite": sqlite3.sqlite_version})

    def space(self, task: Task[SqlProgram], name: str) -> Space:
        """Make the space of index lists."""
        if name != "indexes":
            raise unknown("level 'sql' has no space", name, self.spaces)
        return IndexSpace(task.program)

    def evaluator(self, task: Task[SqlProgram], *, final: bool = False) -> SqlEvaluator:
        """Make the recipe for the task's evaluator."""
        return SqlEvaluator(task.program, FINAL_TIMING if final else SEARCH_TIMING)

    def baseline(self, task: Task[SqlProgram]) -> Candidate:  # noqa: ARG002
        """Give the database as it is: no index."""
        return Candidate()

    def variants(self, task: Task[SqlProgram], candidate: Candidate) -> Sequence[Candidate]:  # noqa: ARG002
        """Give none: a list of indexes can be built in one way only."""
        return ()

    def describe(self, task: Task[SqlProgram], candidate: Candidate) -> Mapping[str, str]:
        """Show the statements, and how SQLite then goes about the query."""
        database = task.program.database(rows=False)
        database.executescript(_statements(candidate))
        plan = database.execute(f"EXPLAIN QUERY PLAN {task.program.query}")
        return {
            "indexes": _statements(candidate) or "(none)",
            "plan": "\n".join(row[-1] for row in plan),
        }

    def export(self, task: Task[SqlProgram], candidate: Candidate, path: Path) -> Sequence[Path]:  # noqa: ARG002
        """Write the statements."""
        path.mkdir(parents=True, exist_ok=True)
        file = path / "indexes.sql"
        file.write_text(_statements(candidate), encoding="utf-8")
        return [file]


def _statements(candidate: Candidate) -> str:
    return "\n".join(step.sql for step in candidate.steps if isinstance(step, Index))
