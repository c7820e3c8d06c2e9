"""Figures 4 to 9 of AutoTVM on recorded spaces: searches beside each other, at equal measurements.

    python experiments/autotvm/figures.py 5 [--seeds 10] [--budget 600]
    python experiments/autotvm/figures.py 5 --table          # and figures/5.svg

Searches go to build/autotvm-figures.jsonl, each once: a later call goes on. After `--budget` seconds no other
is begun. Where PyTorch is missing, what needs it is left out. What is measured is read from `recordings/`,
which `record.py` made, so no machine is needed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from curves import draw
from plans import FIGURES, Figure, Variant
from recorded import Recorded, RecordedSpace, curve_of, path_of, recorded
from searching import TIME, Setting
from tables import Curves, show
from transferring import transferred

from planish.search import make_searcher

HERE = Path(__file__).parent
SEEDS = 10
LEAST_ROWS = 250
DOUBLED = ("random", "genetic")


@dataclass(frozen=True)
class Line:
    """A search that was made.

    Args:
        figure: of the paper.
        program: name of the setting.
        variant: how.
        seed: of the search.
        curve: after each trial the best speed so far as a share of the best of the space; 0 for nothing yet.
    """

    figure: str
    program: str
    variant: str
    seed: int
    curve: Sequence[float]


def run(figure: str, path: Path, seeds: int, budget: float) -> None:
    """Make the searches that the file lacks."""
    plan, end = FIGURES[figure], time.monotonic() + budget
    done = {(line.program, line.variant, line.seed) for line in read(path) if line.figure == figure}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(seeds):
            for setting in filter(_large, plan.settings):
                for name, variant in plan.variants.items():
                    skipped = not variant.can_run or seed >= (variant.seeds or seeds)
                    if skipped or (setting.text, name, seed) in done:
                        continue
                    if time.monotonic() > end:
                        return
                    curve = _search(recorded(setting), plan, variant, seed, Path(folder))
                    _append(path, Line(figure, setting.text, name, seed, curve))
            print(figure, "seed", seed, flush=True)


def _large(setting: Setting) -> bool:
    """Whether a program has rows enough that a search cannot see most of them."""
    return path_of(setting).exists() and len(recorded(setting).candidates) >= LEAST_ROWS


def _search(space: Recorded, plan: Figure, variant: Variant, seed: int, folder: Path) -> Sequence[float]:
    options = dict(variant.options)
    if variant.sources:
        path = folder / f"{variant.representation}-{variant.rows}.npz"
        if not path.exists():
            transferred(variant.sources, variant.representation, variant.rows, path)
        options["model"] = str(path)
    described = RecordedSpace(space, variant.representation)
    made = make_searcher(variant.searcher, described, [TIME], seed, options)
    return [round(share, 4) for share in curve_of(made, space, variant.trials or plan.trials)]


def _with_doubled(curves: Curves) -> Curves:
    """Add the paper's x2: what is measured at random, or by the genetic searcher, with twice the trials."""
    shown = dict[str, Mapping[str, Sequence[Sequence[float]]]]()
    for name, found in curves.items():
        shown[name] = found
        if name in DOUBLED:
            shown[f"{name} x2"] = {p: [curve[1::2] for curve in each] for p, each in found.items()}
    return shown


def read(path: Path) -> list[Line]:
    """Read what was made."""
    if not path.exists():
        return []
    return [Line(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _append(path: Path, line: Line) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(vars(line)) + "\n")


def _is_whole(found: Curves, plan: Figure) -> bool:
    """Return whether all searches of a figure are there; else it is drawn beside them, not published."""
    wanted = {name: variant.seeds or SEEDS for name, variant in plan.variants.items() if variant.can_run}
    settings = [setting for setting in plan.settings if _large(setting)]
    return all(
        len(found.get(name, {}).get(setting.text, ())) >= seeds
        for name, seeds in wanted.items()
        for setting in settings
    )


def main() -> None:
    """Read the command line."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("figure", choices=list(FIGURES))
    given.add_argument("--file", type=Path, default=Path("build/autotvm-figures.jsonl"))
    given.add_argument("--budget", type=float, default=600.0, help="seconds")
    given.add_argument("--seeds", type=int, default=SEEDS)
    given.add_argument("--table", action="store_true", help="search nothing, and show what the file has")
    asked = given.parse_args()
    asked.file.parent.mkdir(parents=True, exist_ok=True)
    if not asked.table:
        run(asked.figure, asked.file, asked.seeds, asked.budget)
    plan = FIGURES[asked.figure]
    curves: dict[str, dict[str, list[Sequence[float]]]] = {}
    for line in read(asked.file):
        if line.figure == asked.figure:
            curves.setdefault(line.variant, {}).setdefault(line.program, []).append(line.curve)
    found = {name: curves[name] for name in plan.variants if name in curves}
    if asked.figure.startswith("4"):
        found = _with_doubled(found)
    show(found, plan.trials)
    folder = HERE if _is_whole(found, plan) else asked.file.parent
    draw(found, plan, folder / "figures" / f"{asked.figure}.svg")


if __name__ == "__main__":
    main()
