"""What `planish tune` leaves in the folder where it is run, on a level whose winners are files."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from cli import lattices
from cli.conftest import PROGRAM, Offer, Planish
from planish.core import Candidate, Task

SHORT = "--trials", 20, "--finalists", 1


class Delivering(lattices.LatticeLevel):
    """A level whose winners are files."""

    def write_artifacts(self, task: Task, candidate: Candidate, path: Path) -> Sequence[Path]:
        del task
        file = path / "place.tuned"
        file.write_text(candidate.text)
        return [file]


@pytest.fixture(autouse=True)
def delivering(offer: Offer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty folder, with that level."""
    offer(Delivering)
    monkeypatch.chdir(tmp_path)


def test_the_winner_is_written_where_one_works(planish: Planish, tmp_path: Path) -> None:
    said = planish("tune", PROGRAM, *SHORT)
    assert said.out.count("wrote place.tuned\n") == 1
    assert "Set" in (tmp_path / "place.tuned").read_text()
    said = planish("tune", PROGRAM, *SHORT, "--format", "json")
    assert json.loads(said.out)["files"] == ["place.tuned"]


def test_what_is_exported_elsewhere_is_not_written_here(planish: Planish, tmp_path: Path) -> None:
    said = planish("tune", PROGRAM, *SHORT, "--export", "out")
    assert "wrote out/place.json\n" in said.out
    assert not (tmp_path / "place.tuned").exists()


def test_a_folder_that_cannot_be_written_is_reported_after_the_result(
    planish: Planish, tmp_path: Path
) -> None:
    (tmp_path / "place.tuned").mkdir()
    said = planish("tune", PROGRAM, *SHORT)
    assert said.code == 2
    assert "faster than the baseline." in said.out
    told = f"planish: error: cannot write {tmp_path}: Is a directory. The result is stored: 'planish export "
    assert said.err.splitlines()[-1].startswith(told)
