"""`planish learn`: it is stopped at any moment, and goes on."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from planish.models.trees import can_grow
from planish.store import open_store

pytestmark = pytest.mark.skipif(not can_grow(), reason="XGBoost is not installed")
LEARN = [sys.executable, "-c", "from planish.cli.script import main; main()", "learn"]


@pytest.mark.slow
def test_ctrl_c_loses_nothing_and_the_same_command_goes_on(tmp_path: Path) -> None:
    store = tmp_path / "learned.db"
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
    begun = subprocess.Popen([*LEARN, "--store", str(store)], env=environment, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert begun.stdout is not None
    first = begun.stdout.readline()
    assert first.startswith("1: ")
    assert os.getpriority(os.PRIO_PROCESS, begun.pid) == 19
    begun.send_signal(signal.SIGINT)
    _, said = begun.communicate(timeout=240)
    assert "Run the same command again to continue." in said
    assert "Traceback" not in said
    with open_store(store) as opened:
        before = {run.id: run.trials for run in opened.runs()}
    assert max(before.values()) == 96
    again = subprocess.run(
        [*LEARN, "--store", str(store), "--seconds", "4", "--format", "json"],
        env=environment, text=True, capture_output=True, timeout=240, check=True,
    )  # fmt: skip
    assert json.loads(again.stdout)["stopped"] is False
    with open_store(store) as opened:
        after = {run.id: run.trials for run in opened.runs()}
    assert sum(after.values()) > sum(before.values())
    assert before.keys() <= after.keys()
