"""The page in a real browser: its code runs under its own policy, and every chart is drawn."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from planish.report import write_report
from planish.store import open_store
from report.planks import ERROR, TIME, Planks, failed, finalist, measured, save_run, task_of

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=1000",
    "--enable-logging=stderr",
]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here: apt-get install chromium")
def test_every_chart_is_drawn(tmp_path: Path) -> None:
    trials = [measured(0, 2e-3, error=0.1), failed(1), measured(2, 1e-3, error=0.3)]
    with open_store(tmp_path / "planks.db") as store:
        run_id = save_run(store, trials, [finalist(2, 0.5, "faster")], task=task_of("elm", TIME, ERROR))
        path = write_report(store, run_id, Planks(), tmp_path / "report.html")
    command = [str(BROWSER), *QUIET, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]
    home = {**os.environ, "HOME": str(tmp_path)}
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=home)
    assert not re.findall(r"CONSOLE.*", ended.stderr)
    places = ended.stdout.split('<div class="chart ')[1:]
    assert len(places) == 6
    assert all('class="main-svg"' in place for place in places)
    for text in ("best so far", "baseline 1.000 ms", "front", "time of the run"):
        assert f">{text}" in ended.stdout
