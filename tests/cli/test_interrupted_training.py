"""`planish policy train` and Ctrl-C, in processes of their own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Planish
from cli.test_policies import labeled
from planish.core import StoppedError
from planish.models.policy_files import load_policy
from planish.train.corpus.reader import SAMPLE
from store.mounts import grow, small_disk

pytest.importorskip("torch")
SMALL = 600
"""Kilobytes: room for one checkpoint, and not for two."""
TRAIN = [
    sys.executable,
    "-c",
    "from planish.cli.script import main; main()",
    "policy",
    "train",
    "--level",
    "llvm",
]


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Return a command that trains for hours."""
    labeled(tmp_path / "costs.npz")
    given = ["--corpus", str(SAMPLE), "--labels", str(tmp_path / "costs.npz"), "--epochs", "100000"]
    return [*TRAIN, *given, "--width", "16", "--depth", "1", "-o", str(tmp_path / "lists.safetensors")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_best_so_far_is_kept(command: list[str], tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            if line.startswith("epoch 2 "):
                process.send_signal(number)
                break
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert err.splitlines()[-1].startswith("stopped: the best so far is kept")
    assert "wrote" in out
    assert load_policy(tmp_path / "lists.safetensors").programs == 12
    assert (tmp_path / "lists.checkpoint").exists()


def test_before_the_first_step_nothing_is_written_and_that_is_said(
    command: list[str], tmp_path: Path
) -> None:
    # A pipe as the labels: opening it shows that the command reads them now.
    labels = tmp_path / "pipe"
    os.mkfifo(labels)
    waiting = [str(labels) if word.endswith("costs.npz") else word for word in command]
    before = sorted(tmp_path.iterdir())
    with (
        subprocess.Popen(waiting, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        labels.open("wb"),
    ):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out) == (128 + signal.SIGINT, "")
    assert err == "planish: error: stopped before there was a policy to keep. Nothing was written.\n"
    assert sorted(tmp_path.iterdir()) == before


def test_a_full_disk_tells_which_checkpoint_and_the_same_command_goes_on(
    command: list[str], planish: Planish, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    words = ["3" if word == "100000" else word for word in command[3:-1]]
    with small_disk(disk, SMALL):
        full = planish(*words, disk / "lists.safetensors")
        assert (full.code, full.out) == (2, "")
        assert full.err.splitlines()[-1] == (
            f"planish: error: cannot write the checkpoint {disk / 'lists.checkpoint'}: "
            "No space left on device. Make room there: the same command resumes from the last whole one."
        )
        assert [path.name for path in disk.iterdir()] == ["lists.checkpoint"]
        grow(disk)
        again = planish(*words, disk / "lists.safetensors")
        assert again.code == 0, again.err
        assert [line.split()[1] for line in again.err.splitlines() if line.startswith("epoch ")] == ["2", "3"]


def test_before_anything_was_learnt_there_is_nothing_to_keep() -> None:
    from planish.train.optimization import arrays_of

    with pytest.raises(StoppedError, match="stopped before its first checkpoint") as stopped:
        arrays_of({})
    assert stopped.value.exit_code == 128 + signal.SIGINT
