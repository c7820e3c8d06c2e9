"""Signals that stop a run."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planish.core.process import stoppable

INTERRUPTED_IMPORT = """
import signal, time
signal.raise_signal(signal.SIGINT)
done = True
"""
RUN_BY_AN_IMPORT = """
import signal
from planish.core.process import stoppable
caught = False
try:
    with stoppable():
        signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    caught = True
"""


def test_a_signal_waits_until_an_import_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An extension module like NumPy's, whose first import was cut short, can never be imported again."""
    (tmp_path / "interrupted_import.py").write_text(INTERRUPTED_IMPORT)
    monkeypatch.syspath_prepend(tmp_path)
    with stoppable() as stops:
        import interrupted_import  # type: ignore[import-not-found]

        with pytest.raises(KeyboardInterrupt) as raised:
            time.sleep(1000)  # the signal ends the wait
    assert interrupted_import.done
    assert raised.value.args == (signal.SIGINT,)
    assert stops.count == 1


def test_a_run_that_an_import_begins_is_stopped_at_once(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(RUN_BY_AN_IMPORT)
    code = "import script; assert script.caught"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=240)
