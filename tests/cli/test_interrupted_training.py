"""`planish policy train` and Ctrl-C, in processes of their own."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.test_policies import labelled
from planish.core import StoppedError
from planish.corpus.corpus_reader import SAMPLE
from planish.learn.policy import load_policy

pytest.importorskip("torch")
TRAIN = [sys.executable, "-c", "from planish.cli import main; main()", "policy", "train", "--level", "llvm"]


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Give a command that trains for hours."""
    labelled(tmp_path / "costs.npz")
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


def test_before_anything_was_learnt_there_is_nothing_to_keep() -> None:
    from planish.learn.language.optimisation import arrays_of

    with pytest.raises(StoppedError, match="stopped before its first checkpoint") as stopped:
        arrays_of({})
    assert stopped.value.exit_code == 128 + signal.SIGINT
