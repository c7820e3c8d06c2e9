"""Temporary folders go, at the latest when somebody else starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planish.isolation.scratch import Scratch, sweep

OWNER = """
from planish.isolation.scratch import Scratch
scratch = Scratch()
(scratch.path / "model").write_text("large")
print(scratch.path, flush=True)
input()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def test_what_a_killed_process_leaves_is_swept_and_what_lives_stays(tmp_path: Path) -> None:
    foreign = tmp_path / "planish-foreign"
    foreign.mkdir()
    mine = Scratch()
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        left = Path(owner.stdout.readline().strip())
        sweep(tmp_path, young_s=0)
        assert (left / "model").exists()
        owner.kill()
    sweep(tmp_path)
    assert left.exists(), "it is young"
    sweep(tmp_path, young_s=0)
    assert not left.exists()
    assert mine.path.exists()
    assert foreign.exists(), "nobody knows whose it is"
    mine.remove()
    assert not mine.path.exists()


def test_a_new_process_sweeps(tmp_path: Path) -> None:
    code = OWNER.replace("input()", "import os; os.utime(scratch.path / '.planish-lives', (0, 0))")
    subprocess.run([sys.executable, "-c", code], check=True)
    (left,) = tmp_path.iterdir()
    subprocess.run([sys.executable, "-c", code], check=True)
    assert not left.exists()
    assert len(list(tmp_path.iterdir())) == 1


def test_what_others_put_there_is_no_trap(tmp_path: Path) -> None:
    """A pipe would hold who opens it for ever; a link would have a folder elsewhere removed."""
    trap, elsewhere = tmp_path / "planish-trap", tmp_path / "elsewhere"
    trap.mkdir()
    os.mkfifo(trap / ".planish-lives")
    elsewhere.mkdir()
    (elsewhere / ".planish-lives").touch()
    (tmp_path / "planish-link").symlink_to(elsewhere)
    sweep(tmp_path, young_s=0)
    assert elsewhere.exists()
    assert trap.exists()
