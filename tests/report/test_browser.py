"""The page in a real browser: its code runs under its own policy, and every chart is drawn."""

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from planish.core import Candidate, Measured, Objective, Trial
from planish.report import write_report
from planish.store import open_store
from report.planks import ERROR, TIME, Planks, Saw, compared, failed, finalist, measured, save_run, task_of

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
        run_id = save_run(store, trials, [finalist(2, 0.5, "better")], task=task_of("elm", TIME, ERROR))
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


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here: apt-get install chromium")
def test_nothing_is_wider_than_a_narrow_window(tmp_path: Path) -> None:
    """Names without a blank, of programs, objectives, passes, hosts and failures, wrap."""
    long = "x" * 120
    named = Objective(f"time_{long}")
    trials = [Trial(Candidate((Saw(0),)), Measured({named.name: 2.0}), 0, host=long), failed(1, long, long)]
    with open_store(tmp_path / "planks.db") as store:
        found = replace(compared([finalist(0, 0.5, "better")], [named]), notes=(long,))
        run_id = save_run(store, trials, found, task=task_of(f"{long}\n{long}", named))
        path = write_report(store, run_id, Planks(), tmp_path / "report.html")
    # The page itself says how wide it is; the frame is as narrow as a telephone, whatever the window is.
    told = "<script>parent.postMessage(document.documentElement.scrollWidth, '*')</script></body>"
    path.write_text(path.read_text().replace("</body>", told))
    outer = tmp_path / "outer.html"
    outer.write_text(
        f"<script>onmessage = event => document.title = 'width ' + event.data</script>"
        f'<iframe src="{path.name}" style="width: 400px; height: 800px; border: 0"></iframe>'
    )
    command = [str(BROWSER), *QUIET, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", outer.as_uri()]
    home = {**os.environ, "HOME": str(tmp_path)}
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=home)
    (width,) = re.findall(r"<title>width (\d+)</title>", ended.stdout)
    assert int(width) <= 400
