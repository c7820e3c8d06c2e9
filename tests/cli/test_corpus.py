"""`planish corpus`, with IR files: they need no compiler."""

import json
from pathlib import Path

import pytest

from cli.conftest import Planish
from planish.train.corpus.reader import SAMPLE
from planish.train.cost_tables import read_costs

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
    assert planish("corpus", "card", tmp_path).error.startswith(f"{tmp_path} is not a corpus")
    assert planish("corpus").error.startswith("Missing command")
    (files / "bad.ll").write_text("define i32 @f(")
    said = planish("corpus", "build", tmp_path / "bad", "--ir", files / "bad.ll", "--jobs", "1")
    assert said.code == 6
    note, error = said.err.splitlines()
    assert note.startswith("files: no functions (")
    assert error.startswith(f"planish: error: {tmp_path / 'bad'} has no functions")


def test_a_damaged_corpus_is_an_error_of_one_line(planish: Planish, files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    label = ["corpus", "label", out, tmp_path / "labels", "--evaluations", "2", "--lists", "0"]
    assert planish("corpus", "build", out, "--ir", files, "--jobs", "1").code == 0
    assert planish("corpus", "coreset", out, out, "-o", tmp_path / "c.json").error.startswith(
        f"{out} holds no finished labels"
    )
    (shard,) = out.glob("data/*/*.parquet")
    shard.write_text("nothing")
    assert planish(*label).error.startswith(f"{shard} is damaged: ")
    (out / "card.json").write_text("{")
    assert planish(*label).error.startswith(f"{out} is an unfinished corpus")


def test_costs_are_shown_by_split(planish: Planish, tmp_path: Path) -> None:
    table = tmp_path / "t.npz"
    ask = ["corpus", "costs", SAMPLE, table, "--split", "test", "--functions", "2", "--jobs", "1"]
    said = planish(*ask)
    assert said.code == 0, said.err
    assert "instructions saved" in said.out
    (row,) = json.loads(planish(*ask, "--format", "json").out)["splits"]
    assert (row["split"], row["functions"]) == ("test", 2)
    assert 0 <= row["text_bytes saved"] < 1
    assert planish("corpus", "costs", table, tmp_path / "other").error.startswith(f"{table} is not a corpus")


def test_tables_are_widened_for_one_objective(planish: Planish, tmp_path: Path) -> None:
    ask = [
        "corpus",
        "costs",
        SAMPLE,
        tmp_path / "t.npz",
        "--split",
        "test",
        "--functions",
        "2",
        "--jobs",
        "1",
    ]
    assert planish(*ask, "--objective", "instructions").code == 0
    wider = [*ask[:3], tmp_path / "u.npz", *ask[4:], "--widen", tmp_path / "t.npz"]
    assert planish(*wider).error == ("tables are widened for one objective. Name it: --objective NAME.")
    assert planish(*wider, "--objective", "instructions").code == 0
    made, known = (read_costs(tmp_path / name) for name in ("u.npz", "t.npz"))
    assert made.identities.tolist() == known.identities.tolist()
    assert set(made.columns.lists) == set(known.columns.lists)


def test_labels_that_are_no_better_than_oz_make_no_coreset(planish: Planish, tmp_path: Path) -> None:
    out = tmp_path / "labels"
    words = ["corpus", "label", SAMPLE, out, "--functions", "8", "--evaluations", "2", "--lists", "0"]
    said = planish(*words, "--split", "train", "--split", "train")
    assert said.code == 0, said.err
    assert said.out.strip() == (out / "card.md").read_text().strip()
    held = json.loads((out / "card.json").read_text())
    assert held["plan"]["splits"] == ["train"]
    assert 0 < held["functions"] < 20
    assert planish(*words, "--split", "test").error.startswith(f"the labels in {out} began with ")
    assert planish("corpus", "card", out).error.startswith(f"{out} is not a corpus")

    file = tmp_path / "coreset.json"
    assert held["different_lists"] == 0
    said = planish("corpus", "coreset", SAMPLE, out, "-o", file)
    assert said.error.startswith(f"no training function in {out} has a list that is better than -Oz.")
