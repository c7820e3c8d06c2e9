"""The level is found, and a query is tuned by it."""

from pathlib import Path

import pytest

import planish
from planish.core import Candidate, Failed, ProgramError, evaluate
from planish.core.registry import level_of
from planish.measure.executors import InlineExecutor
from planish.tuning.api import task_of
from planish.tuning.settings import Budget, Settings
from planish_sql.evaluator import SqlEvaluator
from planish_sql.level import SqlLevel
from planish_sql.program import SqlProgram
from planish_sql.space import Index

ORDERS = str(Path(__file__).parents[1] / "orders.sql")


def test_planish_finds_it_by_the_name_of_a_file() -> None:
    assert isinstance(level_of(ORDERS), SqlLevel)


def test_an_index_is_found_and_taken_home(tmp_path: Path) -> None:
    result = planish.tune(ORDERS, budget=Budget(trials=60), store=tmp_path / "planish.db")
    assert result.failures == {}
    assert result.gain is not None
    assert result.gain > 1
    (file,) = result.export(tmp_path)
    assert "CREATE INDEX" in file.read_text(encoding="utf-8")
    assert "USING" in result.describe()["plan"]


def test_a_result_gives_the_rows(tmp_path: Path) -> None:
    result = planish.tune(ORDERS, budget=Budget(trials=5), store=tmp_path / "planish.db")
    database = SqlLevel().load(ORDERS, {}).database()
    assert result() == database.execute(SqlLevel().load(ORDERS, {}).query).fetchall()


@pytest.mark.parametrize(("objective", "same"), [("time", True), ("bytes", False)])
def test_an_index_out_of_use_is_known_to_do_nothing_for_the_time(objective: str, same: bool) -> None:
    program = SqlProgram(
        "-- tables\nCREATE TABLE t (a, b);\n-- rows\n-- query\nSELECT a FROM t WHERE a = 1;\n"
    )
    task = task_of(SqlLevel(), program, Settings(objectives=(objective,)))
    used, idle = Index("t", ("a",)), Index("t", ("b",))
    with SqlLevel().identities(task) as name:
        assert name(Candidate((used,))) != name(Candidate())
        assert (name(Candidate((used, idle))) == name(Candidate((used,)))) == same


def test_an_index_that_cannot_be_is_a_failure() -> None:
    program = SqlLevel().load(ORDERS, {})
    executor = InlineExecutor(SqlEvaluator(program)())
    (answer,) = evaluate(executor, [Candidate((Index("orders", ("color",)),))])
    assert isinstance(answer.outcome, Failed)
    assert answer.outcome.stage == "transform"


@pytest.mark.parametrize("text", ["", "SELECT 1;", "-- query\n-- rows\n-- tables\n"])
def test_what_is_no_program_is_an_error(text: str) -> None:
    with pytest.raises(ProgramError, match="not a program of level 'sql'"):
        SqlProgram(text)


@pytest.mark.parametrize("part", ["tables", "rows"])
def test_a_program_opens_no_file(part: str, tmp_path: Path) -> None:
    harm = f"VACUUM INTO '{tmp_path / 'harm'}'; ATTACH '{tmp_path / 'harm'}' AS harm;"
    parts = {"tables": "CREATE TABLE t (a);", "rows": "", "query": "SELECT a FROM t;", part: harm}
    with pytest.raises(ProgramError, match="SQLite refuses"):
        SqlProgram("".join(f"-- {name}\n{sql}\n" for name, sql in parts.items())).database()
    assert list(tmp_path.iterdir()) == []
