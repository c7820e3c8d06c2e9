"""The program of the level: a database and a query."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass

from planish.core import ProgramError

PARTS = ("tables", "rows", "query")


@dataclass(frozen=True)
class SqlProgram:
    """A database and a query.

    Args:
        text: SQL with the lines `-- tables`, `-- rows` and `-- query`, after each of which that part comes.

    Raises:
        ProgramError: a part is missing.
    """

    text: str
    level = "sql"

    def __post_init__(self) -> None:
        if tuple(re.findall(r"^-- (\w+)$", self.text, re.MULTILINE)) != PARTS:
            raise ProgramError("this is not a program of level 'sql'", "Write -- tables, -- rows, -- query.")

    @property
    def query(self) -> str:
        """The query whose time is measured."""
        return self._part("query")

    def database(self, *, rows: bool = True) -> sqlite3.Connection:
        """Make the database in memory; without rows it is what the names of its columns are read from.

        Raises:
            ProgramError: SQLite refuses the program.
        """
        connection = sqlite3.connect(":memory:", isolation_level=None)
        # A stored program may be anybody's: SQL must not open files.
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        try:
            if not rows:
                connection.set_authorizer(_tables_only)
            connection.executescript(self._part("tables"))
            connection.set_authorizer(None)
            if rows:
                connection.executescript(self._part("rows"))
        except sqlite3.Error as error:
            raise ProgramError(f"SQLite refuses the program: {error}") from error
        return connection

    def columns(self) -> dict[str, tuple[str, ...]]:
        """List the columns of each table."""
        connection = self.database(rows=False)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master ORDER BY name")]
        named = "SELECT name FROM pragma_table_info(?)"
        return {table: tuple(name for (name,) in connection.execute(named, [table])) for table in tables}

    def _part(self, name: str) -> str:
        rest = self.text.partition(f"-- {name}\n")[2]
        return re.split(r"^-- \w+$", rest, maxsplit=1, flags=re.MULTILINE)[0]


def _tables_only(action: int, *_: object) -> int:
    """Allow what makes tables, and nothing that could take long."""
    needed = {sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_READ}
    return sqlite3.SQLITE_OK if action in needed else sqlite3.SQLITE_DENY
