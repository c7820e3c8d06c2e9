"""`planish runs`."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import PROGRAM, Kept, Planish
from planish.core import PlanishError, StoreError
from planish.store import open_store

USAGE = PlanishError.exit_code


def ids(planish: Planish, *words: object) -> list[str]:
    return [run["id"] for run in json.loads(planish("runs", *words, "--format", "json").out)["runs"]]


def test_runs_are_listed_as_by_show(kept: Kept, planish: Planish) -> None:
    assert planish("runs").out == planish("show").out
    assert ids(planish) == [kept.run]


def test_runs_are_exported_and_merged(kept: Kept, planish: Planish, tmp_path: Path) -> None:
    file, other = tmp_path / "kept.db", tmp_path / "other.db"
    assert planish("runs", "export", file, kept.run[:5]).out == f"exported 1 run: {kept.run}\n"
    planish("tune", PROGRAM, "--trials", 3, "--finalists", 1, "--store", other)
    (own,) = ids(planish, "--store", other)
    assert planish("runs", "merge", file, "--store", other).out == f"merged 1 run: {kept.run}\n"
    assert planish("runs", "merge", file, "--store", other).out == "merged 0 runs\n"
    assert set(ids(planish, "--store", other)) == {own, kept.run}
    assert planish("show", kept.run, "--store", other).out == planish("show", kept.run).out
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_a_merged_run_goes_on_where_it_was(kept: Kept, planish: Planish, tmp_path: Path) -> None:
    planish("runs", "merge", kept.place, "--store", tmp_path / "other.db")
    words = "--trials", 42, "--finalists", 1, "--format", "json", "--store", tmp_path / "other.db"
    found = json.loads(planish("tune", PROGRAM, *words).out)
    assert (found["run"]["id"], found["trials"]) == (kept.run, 42)


def test_deleting_asks_first(kept: Kept, planish: Planish) -> None:
    said = planish("runs", "delete", kept.run)
    error = "deleting needs a confirmation, and standard input is not a terminal. Add --yes."
    assert (said.code, said.error) == (USAGE, error)
    assert planish("runs", "delete", kept.run, "--yes").out == f"deleted 1 run: {kept.run}\n"
    assert ids(planish) == []


def test_all_runs_are_found_before_the_first_is_deleted(kept: Kept, planish: Planish) -> None:
    assert planish("runs", "delete", kept.run, "zzzz", "--yes").code == StoreError.exit_code
    assert ids(planish) == [kept.run]
    assert planish("runs", "delete", kept.run, kept.run[:6], "--yes").out == f"deleted 1 run: {kept.run}\n"


@pytest.mark.parametrize("answer", [b"n\n", b"\x04"])
def test_a_run_stays_where_the_user_does_not_agree(kept: Kept, answer: bytes) -> None:
    terminal, window = pty.openpty()
    command = [
        sys.executable,
        "-c",
        "from planish.cli.script import main; main()",
        "runs",
        "delete",
        kept.run,
    ]
    with subprocess.Popen(command, stdin=window, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        os.write(terminal, answer)
        out, err = process.communicate()
    os.close(window)
    os.close(terminal)
    assert (process.returncode, out.strip()) == (0, b"deleted 0 runs"), err
    with open_store(kept.place, read_only=True) as store:
        assert [run.id for run in store.runs()] == [kept.run]


@pytest.mark.parametrize("group", ["runs", "models", "policy"])
def test_options_before_a_groups_command_are_refused(planish: Planish, group: str) -> None:
    """`planish runs --store a.db delete ID` would delete from the user's own store."""
    command = "delete" if group == "runs" else "remove"
    error = planish(group, "--format", "json", command, "zzzz").error
    assert error == f"'{command}' does not read --format. Write it after '{command}'."


def test_what_cannot_be_exported_or_merged_is_one_line(kept: Kept, planish: Planish, tmp_path: Path) -> None:
    (tmp_path / "diary").write_text("a diary, and no database" * 100)
    before = sorted(path.name for path in tmp_path.iterdir())
    for words, code, text in (
        (["export", kept.place], USAGE, "exists. Name a new file"),
        (["export", tmp_path / "x.db", "zzzz"], StoreError.exit_code, "no run 'zzzz'"),
        (["export", tmp_path / "diary" / "x.db"], USAGE, "cannot write"),
        (["merge", tmp_path / "absent.db"], StoreError.exit_code, "there is no store"),
        (["merge", tmp_path / "diary"], StoreError.exit_code, "is not an SQLite database"),
        (["delete", "zzzz", "--yes"], StoreError.exit_code, "no run 'zzzz'"),
    ):
        said = planish("runs", *words)
        assert said.code == code, said.err
        assert text in said.error
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    with open_store(kept.place, read_only=True) as store:
        assert [run.id for run in store.runs()] == [kept.run]
