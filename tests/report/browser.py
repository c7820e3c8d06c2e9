"""Pages as Chromium shows them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

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
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium here: apt-get install chromium")


def shown(page: Path) -> str:
    """Return the elements of a page once its scripts have run.

    Raises:
        AssertionError: something was written to the console, such as an error.
    """
    folder = page.parent
    command = [str(BROWSER), *QUIET, f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.as_uri()]
    home = {**os.environ, "HOME": str(folder)}
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240, env=home)
    assert not re.findall(r"CONSOLE.*", ended.stderr)
    return ended.stdout


def charts(elements: str) -> list[str]:
    """Return the elements of each chart.

    Raises:
        AssertionError: a chart is not drawn.
    """
    found = elements.split('<div class="chart ')[1:]
    assert all('class="main-svg"' in chart for chart in found)
    return found


def width_in_narrow_window(page: Path) -> int:
    """Return how wide a page is in a frame of 400 pixels, as of a telephone; the page is changed."""
    message = "<script>parent.postMessage(document.documentElement.scrollWidth, '*')</script></body>"
    page.write_text(page.read_text().replace("</body>", message))
    outer = page.parent / "outer.html"
    outer.write_text(
        f"<script>onmessage = event => document.title = 'width ' + event.data</script>"
        f'<iframe src="{page.name}" style="width: 400px; height: 800px; border: 0"></iframe>'
    )
    (width,) = re.findall(r"<title>width (\d+)</title>", shown(outer))
    return int(width)
