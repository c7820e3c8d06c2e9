"""Makes the pictures of the site and the README from a real run: a terminal, and the head of a report.

    .venv/bin/python docs/pictures.py

It takes a minute and Chromium. The figures are those of the machine that it runs on.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from rich.console import Console
from rich.text import Text

STATIC = Path(__file__).parent / "_static"
PLANISH = Path(sys.executable).parent / "planish"
TYPED = 'planish tune "C[m,n] += A[m,k] * B[k,n]" --size m=192,n=192,k=192 --seconds 20'
COLUMNS = 110
SHOT = (1060, 1000)


def record(command: list[str], folder: Path) -> str:
    """Run a command on a terminal of its own, and give what it writes there; progress is left out."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL
    ) as running:
        os.close(theirs)
        said = bytearray()
        try:
            while chunk := os.read(ours, 65_536):
                said += chunk
        except OSError:  # the other end is closed: the command is done
            pass
        if running.wait():
            raise SystemExit(f"{command} ended with {running.returncode}")
    os.close(ours)
    return said.decode()


def terminal(said: str, path: Path) -> None:
    """Draw a command and what it said."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print(Text.assemble(("$ ", "bold green"), TYPED))
        console.print(Text.from_ansi(said.strip("\r\n")), soft_wrap=True)
        drawn = console.export_svg(title="planish")
    # No picture of ours asks the network for a font.
    path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL), encoding="utf-8")


def photograph(page: Path, path: Path) -> None:
    """Take a picture of the top of a page, in few colours."""
    with TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             f"--user-data-dir={folder}/profile", f"--window-size={SHOT[0]},{SHOT[1]}",
             "--virtual-time-budget=5000", f"--screenshot={shot}", page.as_uri()],
            check=True, capture_output=True,
        )  # fmt: skip
        Image.open(shot).convert("RGB").quantize(64).save(path, optimize=True)


def main() -> None:
    """Make both."""
    STATIC.mkdir(exist_ok=True)
    with TemporaryDirectory() as name:
        folder = Path(name)
        program, options = "C[m,n] += A[m,k] * B[k,n]", TYPED.rpartition('" ')[2].split()
        store = ["--store", str(folder / "planish.db"), "--report", "report.html"]
        said = record([str(PLANISH), "tune", program, *options, *store], folder)
        shown = [line for line in said.splitlines() if not line.startswith("wrote ")]
        terminal("\n".join(shown), STATIC / "terminal.svg")
        photograph(folder / "report.html", STATIC / "report.png")
    for made in sorted(STATIC.iterdir()):
        print(f"{made}: {made.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
