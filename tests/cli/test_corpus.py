"""`planish corpus`, with IR files: they need no compiler."""

import json
from pathlib import Path

import pytest

from cli.conftest import Planish
from planish.cli.corpus_watching import Lines
from planish.corpus import Tally

IR = "define i32 @f{0}(i32 %x) {{\n  %y = add i32 %x, {0}\n  ret i32 %y\n}}\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(3):
        (folder / f"f{number}.ll").write_text(IR.format(number))
    (folder / "same.ll").write_text(IR.format(1).replace("@f1", "@other"))
    return folder


def test_build_and_card(planish: Planish, files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = planish("corpus", "build", out, "--ir", files, "--jobs", "1")
    assert said.code == 0, said.err
    assert said.out.startswith("3 different functions of 1 packages (train ")
    assert "1 of 4 were duplicates; 4 files compiled, 0 did not" in said.out
    page = planish("corpus", "card", out)
    assert page.out.strip() == (out / "card.md").read_text().strip()
    held = json.loads(planish("corpus", "card", out, "--format", "json").out)
    assert held["all"]["instructions"]["total"] == 6
    assert held == json.loads(planish("corpus", "build", out, "--ir", files, "--format", "json").out) | {
        "command": held["command"]
    }


def test_errors_are_one_line(planish: Planish, files: Path, tmp_path: Path) -> None:
    assert planish("corpus", "build", tmp_path / "out").error.startswith("nothing to make a corpus of")
    assert planish("corpus", "card", tmp_path).error.startswith(f"{tmp_path} is no corpus")
    assert planish("corpus").error.startswith("Missing command")
    (files / "bad.ll").write_text("define i32 @f(")
    said = planish("corpus", "build", tmp_path / "bad", "--ir", files / "bad.ll", "--jobs", "1")
    assert said.code == 6
    note, error = said.err.splitlines()
    assert note.startswith("files: no functions (")
    assert error.startswith(f"planish: error: {tmp_path / 'bad'} has no functions")


def test_lines_tell_the_pace(capsys: pytest.CaptureFixture[str]) -> None:
    clock = [100.0]
    lines = Lines(10.0, lambda: clock[0])
    lines.progress(Tally(packages=5, done=1, known=1, functions=500))
    clock[0] = 110.0
    lines.progress(Tally(packages=5, done=3, known=1, functions=700, failed=1))
    clock[0] = 111.0
    lines.progress(Tally(packages=5, done=4, known=1, functions=800))
    assert capsys.readouterr().err.splitlines() == [
        "3 of 5 packages; 700 functions, 20/s; 1 packages failed; 10.0 s left"
    ]
