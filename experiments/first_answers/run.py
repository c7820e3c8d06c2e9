"""What a user has in hand after a short search: the first answer for each of six modules of JAX.

    python experiments/first_answers/run.py --folder build/first_answers [--seconds 60]

Steps of training learn made pictures; the others are compared with their own outputs on random inputs, with
their own weights. Prints of each first answer the time beside the unchanged module's, and the error on
examples that the search did not see beside the unchanged module's, which is none where outputs are compared.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from modules import CLASSES, SIDE, Made, modules

from planish import tune
from planish.store import open_store
from planish.tuning.result import Result
from planish.tuning.settings import Budget, Settings

SPLIT = "train = 1600\nsearch = 500\nvalidation = 500\nfinal = 400\n"
TRAINING = (
    f'weights = "weights.npz"\n[data]\nfolder = "../pictures"\n[split]\n{SPLIT}[training]\nepochs = 4\n'
)
ANSWERING = 'weights = "weights.npz"\n[inputs]\n'


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--folder", type=Path, required=True, help="of modules, data and results")
    given.add_argument("--seconds", type=float, default=60.0, help="of each search")
    given.add_argument("--only", default="", help="modules whose names begin so")
    asked = given.parse_args()
    write_pictures(asked.folder / "pictures")
    print("| module | trials | edits | times faster | verdict | error: unchanged | first answer |")
    print("|---|--:|--:|--:|---|--:|--:|")
    with open_store(str(asked.folder / "store.db")) as store:
        for name, make in modules().items():
            if not name.startswith(asked.only):
                continue
            path = write(make(), asked.folder / name.replace(" ", "-"))
            settings = Settings(objectives=("time_s", "error"))
            print(
                row(
                    name,
                    tune(str(path), budget=Budget(seconds=asked.seconds), settings=settings, store=store),
                ),
                flush=True,
            )


def write_pictures(folder: Path) -> None:
    """Write noisy pictures of ten kinds."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, CLASSES, 3000)
    kinds = rng.uniform(0, 1, (CLASSES, SIDE, SIDE, 1))
    pictures = kinds[labels] + rng.normal(0, 0.6, (3000, SIDE, SIDE, 1))
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "pictures.npz", images=(255 * pictures.clip(0, 1)).astype("uint8"), labels=labels)


def write(made: Made, folder: Path) -> Path:
    """Write a module, its workload and its weights; gives the module's path."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "weights.npz", **made.weights)  # pyright: ignore[reportArgumentType]
    (folder / "net.toml").write_text(TRAINING if made.trains else ANSWERING, encoding="utf-8")
    module = folder / "net.mlir"
    module.write_text(made.program.text, encoding="utf-8")
    return module


def row(name: str, result: Result) -> str:
    """Tell of the first answer; where nothing was compared, what the search measured."""
    best, base = result.finalist, result.baseline
    if best is None or base is None:
        return f"| {name} | {result.run.trials} | {len(result.candidate.steps)} | not compared | | | |"
    verdict = ", ".join(f"{key} {each.verdict}" for key, each in best.measured.items())
    errors = [
        f"{each.heldout_value('error') or 0:.2%}" if each.scores else "not scored" for each in (base, best)
    ]
    cells = [
        name,
        str(result.run.trials),
        str(len(best.candidate.steps)),
        f"{best.lead.gain.value:.2f}",
        verdict,
        *errors,
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
