"""Counting, and what a failure leaves behind."""

import subprocess
from pathlib import Path
from typing import cast

import pytest

from planish.levels.llvm.backend import Backend
from planish.levels.llvm.execution import find_linker
from planish.levels.llvm.passes import elements
from soundness.broken import BrokenBackend
from soundness.campaign import Tally, try_cases
from soundness.cases import Case, in_contexts
from soundness.report import write_table
from soundness.subject import Subject

GUILTY = "flatten-cfg"
LISTS = (("dce", "sccp", GUILTY, "adce"), ("gvn", "dce"), ("dce", GUILTY))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def tally(typed: Subject, backend: Backend, out: Path) -> Tally:
    """Give the tally over a back end where one pass is made unsound."""
    broken = cast("Backend", BrokenBackend(backend, GUILTY))
    return try_cases(typed, map(Case, LISTS), broken, out)


def test_each_failure_is_counted_and_one_pass_is_blamed(tally: Tally) -> None:
    assert tally.kinds == {"right": 1, "wrong": 2}
    assert [failure.short for failure in tally.unsound] == [(GUILTY,), (GUILTY,)]
    assert (tally.lists["dce", "lists"], tally.lists[GUILTY, "lists"]) == (3, 2)


def test_a_failure_of_the_same_cause_leaves_nothing_more_behind(tally: Tally, out: Path) -> None:
    assert {failure.folder for failure in tally.failures} == set(out.iterdir())
    assert len(list(out.iterdir())) == 1


def test_what_is_left_behind_shows_the_failure_again(tally: Tally, typed: Subject, tmp_path: Path) -> None:
    folder = tally.failures[0].folder
    lists = (folder / "list.txt").read_text().splitlines()
    assert lists == ["function(dce,sccp,flatten-cfg,adce)", "function(flatten-cfg)"]
    expected = (folder / "expected.txt").read_bytes()
    assert (folder / "got.txt").read_bytes() != expected
    assert [(folder / f"program{n}.ll").read_text() for n in range(len(typed.modules))] == list(typed.modules)
    assert "opt -passes='function(flatten-cfg)'" in (folder / "README.txt").read_text()
    assert "fails: program" in (folder / "README.txt").read_text()
    assert expected == _answer(typed, folder, tmp_path)


def _answer(subject: Subject, folder: Path, place: Path) -> bytes:
    """Run what lies in the folder, compiled without any pass."""
    from planish.levels.llvm.backend import open_backend

    objects = [place / f"{number}.o" for number in range(len(subject.modules))]
    for number, path in enumerate(objects):
        module = open_backend().parse((folder / f"program{number}.ll").read_text())
        path.write_bytes(module.object_code())
        module.close()
    subprocess.run([*find_linker(), *map(str, objects), "-o", str(place / "run"), "-lm"], check=True)
    return subprocess.run([place / "run"], check=True, capture_output=True).stdout


def test_a_pass_is_counted_in_its_contexts_and_where_it_changes_the_code(
    typed: Subject, backend: Backend, tmp_path: Path
) -> None:
    cases = [
        case for text in ("dce", "lower-expect") for case in in_contexts(elements()[text], "default<O2>")
    ]
    tally = try_cases(typed, cases[4:7], backend, tmp_path)
    assert tally.kinds == {"right": 3}
    assert tally.lists == {
        ("dce", "after default<O2>"): 1,
        ("lower-expect", "alone"): 1,
        ("lower-expect", "after sroa"): 1,
    }
    assert tally.changed["dce"] == 0  # -O2 leaves nothing to it
    assert tally.changed["lower-expect"] == 2
    assert tally.executed == 5  # these three, and what the last two are compared with


def test_the_table_names_each_pass_and_each_failure_once(tally: Tally) -> None:
    lines = list(write_table(tally))
    assert [line.split() for line in lines if line.startswith(("dce ", "flatten-cfg "))] == [
        ["dce", "1", "0", "0", "3", "0", "0"],
        ["flatten-cfg", "2", "0", "0", "2", "0", "2"],
    ]
    assert any(line.startswith("3 lists: 2 wrong, 1 right; ") for line in lines)
    assert sum(line.startswith("wrong: samples-typed: flatten-cfg: ") for line in lines) == 1


def test_tallies_add_up(tally: Tally) -> None:
    total = Tally()
    total.add(tally)
    total.add(tally)
    assert total.kinds.total() == 6
    assert total.executed == 2 * tally.executed
    assert total.failures == tally.failures * 2
