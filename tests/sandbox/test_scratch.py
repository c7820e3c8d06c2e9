"""Removal of temporary folders, at the latest when another process starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planish.sandbox.scratch import Scratch, sweep

OWNER = """
from planish.sandbox.scratch import Scratch
scratch = Scratch()
(scratch.path / "model").write_text("large")
print(scratch.path, flush=True)
input()
"""


def test_what_a_killed_process_leaves_is_swept_and_what_lives_stays(temporary: Path) -> None:
    foreign = temporary / "planish-foreign"
    foreign.mkdir()
    mine = Scratch()
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        left = Path(owner.stdout.readline().strip())
        sweep(temporary, young_s=0)
        assert (left / "model").exists()
        owner.kill()
    sweep(temporary)
    assert left.exists(), "it is young"
    sweep(temporary, young_s=0)
    assert not left.exists()
    assert mine.path.exists()
    assert foreign.exists(), "its owner is unknown"
    mine.remove()
    assert not mine.path.exists()


def test_a_new_process_sweeps(temporary: Path) -> None:
    code = OWNER.replace("input()", "import os; os.utime(scratch.path / '.planish-lives', (0, 0))")
    subprocess.run([sys.executable, "-c", code], check=True)
    (left,) = temporary.iterdir()
    subprocess.run([sys.executable, "-c", code], check=True)
    assert not left.exists()
    assert len(list(temporary.iterdir())) == 1


ENDED = {
    "made": """
def mkdtemp(**options):
    made(**options)
    os.kill(os.getpid(), 15)
made, tempfile.mkdtemp = tempfile.mkdtemp, mkdtemp
Scratch()
""",
    "removed": """
scratch = Scratch()
os.rmdir = lambda *_, **__: os.kill(os.getpid(), 15)
scratch.remove()
""",
}


@pytest.mark.parametrize("moment", ENDED)
def test_a_folder_that_is_only_half_made_or_removed_is_swept(temporary: Path, moment: str) -> None:
    """As where the second of two signals ends a process: before the lock is made, or after it is removed."""
    code = f"import os, tempfile\nfrom planish.sandbox.scratch import Scratch\n{ENDED[moment]}"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -15
    (left,) = temporary.iterdir()
    assert not list(left.iterdir())
    sweep(temporary)
    assert left.exists(), "it is young"
    os.utime(left, (0, 0))
    subprocess.run([sys.executable, "-c", OWNER.replace("input()", "")], check=True)
    assert not left.exists()


def test_what_others_put_there_is_no_trap(temporary: Path) -> None:
    """A pipe would hold a process that opens it for ever; a link would have a folder elsewhere removed."""
    trap, elsewhere = temporary / "planish-trap", temporary / "elsewhere"
    trap.mkdir()
    os.mkfifo(trap / ".planish-lives")
    elsewhere.mkdir()
    (elsewhere / ".planish-lives").touch()
    (temporary / "planish-link").symlink_to(elsewhere)
    sweep(temporary, young_s=0)
    assert elsewhere.exists()
    assert trap.exists()
