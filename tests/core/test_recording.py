"""Files of recordings."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from planish.core import Failed, Measured, Objective, StoreError
from planish.core.recording import Recording, load_recording, save_recording
from planish.testing.synthetic import Lattice

LATTICE = Lattice()
FIRST, SECOND = LATTICE.at([1, 0, 0]), LATTICE.at([2, 0, 0])
RECORDING = Recording(
    "a task",
    "lattice",
    Objective("time_s", "s"),
    {
        FIRST.hash: Measured({"time_s": 0.1}, {"time_s": (0.1, 0.30000000000000004)}),
        SECOND.hash: Failed("run", "x", "y"),
    },
    {FIRST.hash: {"build": 0.5}},
)


def test_a_recording_comes_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl.gz"
    save_recording(RECORDING, path)
    assert load_recording(path) == RECORDING
    written = path.read_bytes()
    save_recording(load_recording(path), path)
    assert path.read_bytes() == written
    assert list(tmp_path.iterdir()) == [path]


def test_best_is_by_the_objectives_direction() -> None:
    outcomes = {FIRST.hash: Measured({"rate": 3.0}), SECOND.hash: Measured({"rate": 5.0})}
    assert Recording("", "", Objective("rate", direction="up"), outcomes).best() == -5.0
    with pytest.raises(StoreError, match="no candidate with a value of 'time_s'"):
        Recording("", "", Objective("time_s"), outcomes).best()


def test_a_value_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl.gz"
    save_recording(RECORDING, path)
    broken = Recording("", "", Objective("time_s"), {FIRST.hash: Measured({"time_s": float("nan")})})
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_recording(broken, path)
    assert load_recording(path) == RECORDING


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot write the recording .*No such file"):
        save_recording(RECORDING, tmp_path / "absent" / "table.jsonl.gz")
    with pytest.raises(StoreError, match=r"cannot read the recording .*No such file"):
        load_recording(tmp_path / "absent.jsonl.gz")


HEADER = {
    "format": "planish recording",
    "version": 1,
    "task": "a task",
    "space": "lattice",
    "objective": ["time_s", "s", "down"],
    "rows": 2,
}
ROW = {"candidate": "aa", "outcome": {"values": {"time_s": 0.1}}, "seconds": {}}
OTHER = {**ROW, "candidate": "bb"}
NAN = {"values": {"time_s": float("nan")}}

MALFORMED: dict[str, tuple[list[Any], str]] = {
    "empty": ([], "line 1: no header"),
    "no header": ([ROW, OTHER], "line 1: no header"),
    "a list for a header": ([["planish recording", 1], ROW, OTHER], "line 1: no header"),
    "another format": ([{**HEADER, "format": "shopping list"}, ROW, OTHER], "holds a 'shopping list'"),
    "a newer version": ([{**HEADER, "version": 2}, ROW, OTHER], "of version 2, and this .* reads version 1"),
    "no objective": (
        [{**HEADER, "objective": ["a", "b", "down", False, "e"]}, ROW, OTHER],
        "line 1: no header",
    ),
    "no count": ([{**HEADER, "rows": None}, ROW, OTHER], "line 1: no header"),
    "a row less": ([HEADER, ROW], "1 rows of 1 candidates where its header promises 2"),
    "a row more": ([HEADER, ROW, OTHER, OTHER], "3 rows of 2 candidates where its header promises 2"),
    "a row twice": ([HEADER, ROW, ROW], "2 rows of 1 candidates where its header promises 2"),
    "a number for a row": ([HEADER, ROW, 7], "line 3: malformed row"),
    "a number for an outcome": ([HEADER, ROW, {**OTHER, "outcome": 7}], "line 3: malformed row"),
    "an empty outcome": ([HEADER, ROW, {**OTHER, "outcome": {}}], "line 3: malformed row"),
    "an unknown stage": (
        [HEADER, {**ROW, "outcome": {"stage": "lunch", "reason": ""}}, OTHER],
        "line 2: malformed row.*lunch",
    ),
    "a text for a value": (
        [HEADER, {**ROW, "outcome": {"values": {"time_s": "fast"}}}, OTHER],
        "line 2: malformed row.*fast",
    ),
    "not a number": ([HEADER, {**ROW, "outcome": NAN}, OTHER], "line 2: malformed row.*NaN"),
    "a list for seconds": ([HEADER, {**ROW, "seconds": [1]}, OTHER], "line 2: malformed row"),
    "no candidate": ([HEADER, {"outcome": ROW["outcome"], "seconds": {}}, OTHER], "line 2: malformed row"),
}


def _write(path: Path, lines: list[Any]) -> None:
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_file_is_refused(tmp_path: Path, case: str) -> None:
    lines, problem = MALFORMED[case]
    _write(tmp_path / "table.jsonl.gz", lines)
    with pytest.raises(StoreError, match=problem):
        load_recording(tmp_path / "table.jsonl.gz")


def test_what_the_malformed_files_are_made_from_is_sound(tmp_path: Path) -> None:
    _write(tmp_path / "table.jsonl.gz", [HEADER, ROW, OTHER])
    assert set(load_recording(tmp_path / "table.jsonl.gz").outcomes) == {"aa", "bb"}


@pytest.mark.parametrize("cut", [0, 5, 40, -1])
def test_a_file_cut_short_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "table.jsonl.gz"
    save_recording(RECORDING, path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(StoreError, match=r"not a whole gzip file|no header"):
        load_recording(path)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not compressed")
    with pytest.raises(StoreError, match="not a whole gzip file"):
        load_recording(path)
