"""What cannot be done is one line that says why, and an exit code."""

import json
import sqlite3
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from cli.conftest import PROGRAM, Kept, Offer, Planish
from cli.lattices import LatticeLevel
from planish.cli.output import guarded
from planish.core import PlanishError, ProgramError, StoreError, TargetError, did_you_mean
from planish.store import open_store
from store.mounts import write_protected

EXAMPLES = Path(__file__).parents[2] / "examples"
USAGE = PlanishError.exit_code
UNEXPECTED = 1

WRONG = {
    "--searcher randon": (USAGE, "unknown searcher 'randon'. Did you mean 'random'?"),
    "--level latice": (USAGE, "unknown level 'latice'. Did you mean 'lattice'?"),
    "--space knob": (USAGE, "level 'lattice' has no space 'knob'. Did you mean 'knobs'?"),
    "--objective tims": (USAGE, "unknown objective 'tims'. Did you mean 'time_s'?"),
    "--option pauses=1": (USAGE, "no option 'pauses'. Did you mean 'pause'?"),
    "--option pause": (USAGE, "option 'pause' is not of the form name=value"),
    "--option store=x": (USAGE, "no level has an option 'store'. Did you mean --store?"),
    "--option finalists=2": (USAGE, "no level has an option 'finalists'. Did you mean --finalists?"),
    "--size m=1": (USAGE, "level 'lattice' has no option 'size'"),
    "--searcher genetic --set popluation=3": (USAGE, "option 'popluation'. Did you mean 'population'?"),
    "--searcher genetic --set population=1": (USAGE, "takes a whole number, at least 2, not '1'"),
    "--searcher genetic --set population=x": (USAGE, "takes a whole number, at least 2, not 'x'"),
    "--cores 99": (TargetError.exit_code, "99 cores requested, there are 2. Use --cores 2 at most."),
    "--trials 0": (USAGE, "--trials takes a whole number of at least 1, not 0"),
    "--seconds 0": (USAGE, "--seconds takes a number above 0, not 0.0"),
    "--seconds nan": (USAGE, "--seconds takes a number above 0, not nan"),
    "--target-value inf": (USAGE, "--target-value takes a finite number, not inf"),
    "--trials many": (USAGE, "Invalid value for '--trials'"),
    "--seed -1": (USAGE, "Invalid value for '--seed'"),
    "--finalists -1": (USAGE, "Invalid value for '--finalists'"),
    "--finalists 0": (USAGE, "Invalid value for '--finalists'"),
    "--format xml": (USAGE, "'xml' is not one of 'text', 'json'. See 'planish tune --help'."),
    "--sedd 1": (USAGE, "No such option: --sedd"),
    "--timeout 5": (USAGE, "No such option: --timeout. Did you mean '--seconds'? See"),
    "--n-trials 5": (USAGE, "No such option: --n-trials. Did you mean '--trials'? See"),
    "--json": (USAGE, "No such option: --json. Did you mean '--format json'? See"),
}


@pytest.mark.usefixtures("lattice")
@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_with_a_command_is_one_line(planish: Planish, words: str) -> None:
    said = planish("tune", PROGRAM, *words.split())
    code, expected = WRONG[words]
    assert expected in said.error
    assert (said.code, said.out) == (code, "")


@pytest.mark.usefixtures("lattice")
def test_a_program_that_no_level_reads_is_an_error(planish: Planish) -> None:
    said = planish("tune", "nonsense")
    assert said.code == ProgramError.exit_code
    assert said.error == "no level reads 'nonsense'. Name one: --level NAME; installed: lattice."
    assert planish("tune", "absent.txt").error == "there is no file 'absent.txt'. Check the path."


@pytest.mark.usefixtures("lattice")
@pytest.mark.parametrize("words", [[], ["--level", "lattice"]])
@pytest.mark.parametrize("program", ["", "  "])
def test_an_empty_program_is_an_error(planish: Planish, words: list[str], program: str) -> None:
    said = planish("tune", program, *words)
    assert said.code == ProgramError.exit_code
    assert said.error == "the program is empty. Give a program's text, or the path of a file."


UNKNOWN = {
    "loops": ("C[m,n] += A[m,k] * B[k,n]", "--size", "m=4,n=4,k=4"),
    "llvm": (str(EXAMPLES / "llvm" / "inflate.ll"),),
    "hlo": (str(EXAMPLES / "hlo" / "2fcnet.mlir"),),
    "graph": (str(EXAMPLES / "graph" / "cnn-small-torchscript.onnx"),),
}


@pytest.mark.parametrize("kind", ["space", "backend", "option"])
@pytest.mark.parametrize("level", UNKNOWN)
def test_names_that_a_level_does_not_have_are_usage_errors(planish: Planish, level: str, kind: str) -> None:
    words = ["--option", "quux=1"] if kind == "option" else [f"--{kind}", "quux"]
    said = planish("tune", *UNKNOWN[level], *words)
    missing = f"{'back end' if kind == 'backend' else kind} 'quux'"
    if (level, kind) == ("graph", "backend"):  # this level has no choice of back ends
        missing = "option 'backend'"
    assert said.code == USAGE
    assert said.error.startswith(f"level '{level}' has no {missing}. Known: ")


def test_an_error_stays_one_line_of_some_length() -> None:
    many = {f"name{number:03}" for number in range(500)}
    assert did_you_mean("quux", many) == f"Known: {', '.join(sorted(many)[:30])} and others."
    assert did_you_mean("name0999", many) == "Did you mean 'name099'?"
    assert str(PlanishError(f"f: {PlanishError('no such file', 'Check the path.')}", "See it.")) == (
        "f: no such file. Check the path. See it."
    )


def test_an_unknown_command_names_the_nearest(planish: Planish) -> None:
    said = planish("tunne")
    assert said.code == USAGE
    assert said.error == "No such command 'tunne'. Did you mean 'tune'? See 'planish --help'."
    said = planish("list")
    assert said.error == "No such command 'list'. Did you mean 'planish runs'? See 'planish --help'."
    assert planish("tune").error == "Missing argument 'PROGRAM'. See 'planish tune --help'."


@pytest.mark.parametrize("words", [["--debug", "show"], ["show", "--debug"]])
def test_debug_shows_the_traceback_wherever_it_stands(planish: Planish, words: list[str]) -> None:
    said = planish(*words)
    assert said.code == StoreError.exit_code
    assert said.err.startswith("Traceback (most recent call last):")
    assert said.err.splitlines()[-1].startswith("planish: error: there is no store")


def test_debug_behind_the_end_of_options_is_a_word(planish: Planish) -> None:
    assert "no store" in planish("show", "--", "--debug").error


class Broken(LatticeLevel):
    """A level that cannot be made."""

    def __init__(self) -> None:
        raise ZeroDivisionError("a\nb")


def test_an_unexpected_error_is_one_line_too(planish: Planish, offer: Offer) -> None:
    offer(Broken)
    said = planish("levels")
    assert said.code == UNEXPECTED
    assert said.error.startswith(
        "ZeroDivisionError: a b. This is an error in planish; report it with the output of --debug"
    )
    assert "in __init__" in planish("--debug", "levels").err


@contextmanager
def held(place: Path) -> Generator[None]:
    """Keep a store locked."""
    connection = sqlite3.connect(place, isolation_level=None)
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    yield
    connection.close()


def test_a_locked_store_is_an_error(kept: Kept, planish: Planish, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planish.store.open_store", partial(open_store, timeout=0.1))
    with held(kept.place):
        for words in (["show"], ["tune", PROGRAM]):
            said = planish(*words)
            assert said.code == StoreError.exit_code
            assert "is locked by another process" in said.error
    assert kept.run in planish("show").out


def test_a_store_that_cannot_be_written_is_an_error(kept: Kept, planish: Planish) -> None:
    with write_protected(kept.place.parent):
        said = planish("tune", PROGRAM)
        assert said.code == StoreError.exit_code
        assert "is read-only" in said.error
        assert kept.run in planish("show").out


def test_a_store_of_a_newer_schema_is_an_error(kept: Kept, planish: Planish) -> None:
    with sqlite3.connect(kept.place) as connection:
        connection.execute("UPDATE planish_version SET version_num = '9999'")
    connection.close()
    for words in (["show"], ["tune", PROGRAM]):
        said = planish(*words)
        assert said.code == StoreError.exit_code
        assert said.error.endswith("Upgrade planish: pip install --upgrade planish.")


def test_what_is_no_store_is_an_error_and_is_left_alone(place: Path, planish: Planish) -> None:
    place.write_text("a diary, and no database" * 100)
    for words in (["show"], ["tune", PROGRAM]):
        said = planish(*words)
        assert said.code == StoreError.exit_code
        assert "is not an SQLite database" in said.error
    assert place.read_text().startswith("a diary")


def test_a_damaged_store_is_an_error(kept: Kept, planish: Planish) -> None:
    with kept.place.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (kept.place.stat().st_size - 4096))
    said = planish("show")
    assert said.code == StoreError.exit_code
    assert "is damaged" in said.error


def test_a_folder_of_the_store_that_cannot_be_made_is_an_error(planish: Planish, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = planish("tune", PROGRAM, "--store", tmp_path / "file" / "x" / "planish.db")
    assert said.code == StoreError.exit_code
    assert "Make the folder" in said.error


def test_a_run_that_another_process_writes_is_left_to_it(kept: Kept, planish: Planish) -> None:
    with open_store(kept.place) as store:
        store.resume_run(kept.run)
        found = json.loads(planish("tune", PROGRAM, "--trials", 3, "--finalists", 1, "--format", "json").out)
    assert found["run"]["id"] != kept.run
    assert found["cached"] == 3


def test_a_warning_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert guarded(lambda: warnings.warn("the first\n256 are read", stacklevel=1), debug=False) == 0
    assert capsys.readouterr().err == "planish: warning: the first 256 are read\n"
