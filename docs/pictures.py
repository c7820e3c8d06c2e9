"""Pictures of the site and the README, from real runs: a terminal, the head of a report, and every plot.

    .venv/bin/python docs/pictures.py [report] [plots]

It takes five minutes, XGBoost and Chromium. The figures are those of the machine that it runs on.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image
from rich.console import Console
from rich.text import Text

import planish
from planish import plot

STATIC = Path(__file__).parent / "_static"
PLANISH = Path(sys.executable).parent / "planish"
ROOT = Path(__file__).parents[1]
MATMUL = "C[m,n] += A[m,k] * B[k,n]"
TYPED = f'planish tune "{MATMUL}" --size m=192,n=192,k=192 --seconds 20'
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


def photograph(page: Path, path: Path, size: tuple[int, int] = SHOT) -> None:
    """Take a picture of the top of a page, in few colors."""
    with TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             f"--user-data-dir={folder}/profile", f"--window-size={size[0]},{size[1]}",
             "--virtual-time-budget=5000", f"--screenshot={shot}", page.as_uri()],
            check=True, capture_output=True,
        )  # fmt: skip
        Image.open(shot).convert("RGB").quantize(64).save(path, optimize=True)


def draw_report(folder: Path) -> None:
    """Tune a program in a terminal; draw the terminal and the head of the report."""
    program, options = MATMUL, TYPED.rpartition('" ')[2].split()
    store = ["--store", str(folder / "planish.db"), "--report", "report.html"]
    said = record([str(PLANISH), "tune", program, *options, *store], folder)
    shown = [line for line in said.splitlines() if not line.startswith("wrote ")]
    terminal("\n".join(shown), STATIC / "terminal.svg")
    photograph(folder / "report.html", STATIC / "report.png")


def draw_plots(folder: Path) -> None:
    """Tune by several searchers, and draw every figure of `planish.plot`."""
    (STATIC / "plots").mkdir(exist_ok=True)
    store = folder / "plots.db"
    size = "m=192,n=192,k=192"
    by_model, by_genes, by_chance = (
        planish.tune(MATMUL, size=size, seconds=20, searcher=name, store=store, show_progress=False)
        for name in ("model-guided", "genetic", "random")
    )
    front = planish.tune(ROOT / "examples/hlo/2fcnet.mlir", seconds=90, store=store, show_progress=False)
    runs = [by_model, by_genes, by_chance]
    figures: dict[str, Any] = {
        "history": plot.history(by_genes),
        "histories": plot.history(runs),
        "distribution": plot.distribution(by_genes),
        "stages": plot.stages(by_genes),
        "comparison": plot.comparison(by_genes),
        "compare_runs": plot.compare_runs(runs),
        "samples": plot.samples(by_genes),
        "parallel_coordinates": plot.parallel_coordinates(by_genes),
        "importances": plot.importances(by_genes),
        "pareto_front": plot.pareto_front(front),
        "hypervolume": plot.hypervolume(front),
        "predictions": plot.predictions(by_model),
        "rank_correlation": plot.rank_correlation(by_model),
    }
    for name, figure in figures.items():
        page = folder / f"{name}.html"
        figure.write_html(page, config={"displayModeBar": False}, default_width="760px")
        photograph(page, STATIC / "plots" / f"{name}.png", (776, figure.layout.height + 16))


PICTURES = {"report": draw_report, "plots": draw_plots}


def main() -> None:
    """Make the pictures that are named, or all."""
    STATIC.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        with TemporaryDirectory() as folder:
            PICTURES[name](Path(folder))
    for made in sorted(STATIC.rglob("*.*")):
        print(f"{made}: {made.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
