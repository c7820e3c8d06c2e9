"""The plug-ins of the examples can be installed, are found, and pass the suites that they subclass."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from docs.plugins import EXAMPLES, install


@pytest.mark.parametrize("name", ["plugin_searcher", "plugin_level", "plugin_backend"])
def test_a_plug_in_passes_its_tests(name: str, tmp_path: Path) -> None:
    install(name, tmp_path)
    suite = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(
        [*suite, "--import-mode=importlib", "-c", os.devnull, f"--rootdir={EXAMPLES / name}"],
        cwd=EXAMPLES / name, env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
