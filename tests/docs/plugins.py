"""Installing the plug-ins of the examples without a network, as pip does it."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

EXAMPLES = Path(__file__).parents[2] / "examples"


def install(name: str, into: Path) -> None:
    """Build one of the examples' packages and unpack its wheel."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(into)]
    subprocess.run(build, cwd=EXAMPLES / name, check=True, capture_output=True)
    for wheel in into.glob("*.whl"):
        with ZipFile(wheel) as archive:
            archive.extractall(into)
        wheel.unlink()
