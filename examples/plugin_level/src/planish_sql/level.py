"""The level `sql`: what planish asks for."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from planish.core import (
    NO_ANALYSIS,
    Candidate,
    Level,
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


class SqlLevel(Level[SqlProgram]):
    """Queries of SQLite; a candidate is a list of indexes."""

    name = "sql"
    version = "1"
    objectives: Mapping[str, Objective] = {
        "time_s": Objective("time_s", "s"),
        "bytes": Objective("bytes", "B", exact=True),
    }
    spaces = ("indexes",)
    searchers = ("genetic", "exhaustive", "random")

    @property
    def steps(self) -> Mapping[str, type[Step]]:
        """Return the only step: its name to its class."""
        return {"Index": Index}

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

    def runs_user_code(self, task: Task[SqlProgram]) -> bool:  # noqa: ARG002
        """Whether candidates may do anything: never, SQLite only computes."""
        return False

    def space(self, task: Task[SqlProgram], name: str) -> Space:
        """Make the space of index lists."""
        if name != "indexes":
            raise unknown("level 'sql' has no space", name, self.spaces)
        return IndexSpace(task.program)

    def evaluator(self, task: Task[SqlProgram], *, final: bool = False) -> SqlEvaluator:
        """Make the spec of the task's evaluator."""
        return SqlEvaluator(task.program, FINAL_TIMING if final else SEARCH_TIMING)

    def describe(
        self,
        task: Task[SqlProgram],
        candidate: Candidate,
        analysis: Mapping[str, Any] = NO_ANALYSIS,  # noqa: ARG002
    ) -> Mapping[str, str]:
        """Show the statements, and how SQLite then goes about the query."""
        return {
            "indexes": _statements(candidate) or "(none)",
            "plan": _plan(task.program, candidate),
        }

    def export(self, task: Task[SqlProgram], candidate: Candidate, path: Path) -> Sequence[Path]:  # noqa: ARG002
        """Write the statements."""
        path.mkdir(parents=True, exist_ok=True)
        file = path / "indexes.sql"
        file.write_text(_statements(candidate), encoding="utf-8")
        return [file]

    @contextmanager
    def identities(self, task: Task[SqlProgram]) -> Generator[Callable[[Candidate], str]]:
        """Name candidates by SQLite's plan where only time counts: what is out of use takes none."""
        timed = [objective.name for objective in task.objectives] == ["time_s"]
        yield lambda candidate: _plan(task.program, candidate) if timed else candidate.hash

    def function(self, task: Task[SqlProgram], candidate: Candidate) -> Callable[[], list[tuple[Any, ...]]]:
        """Make what runs the query on the database with its indexes, and gives the rows."""
        database = task.program.database()
        database.executescript(_statements(candidate))
        return lambda: database.execute(task.program.query).fetchall()


def _statements(candidate: Candidate) -> str:
    return "\n".join(step.sql for step in candidate.steps if isinstance(step, Index))


def _plan(program: SqlProgram, candidate: Candidate) -> str:
    """Tell how SQLite goes about the query; it looks at no row for that."""
    database = program.database(rows=False)
    database.executescript(_statements(candidate))
    plan = database.execute(f"EXPLAIN QUERY PLAN {program.query}")
    return "\n".join(row[-1] for row in plan)
