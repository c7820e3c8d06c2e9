"""Runs of each level as planish 0.1 stored them, in `tests/data/runs-1.db`: with a comparison, and without.

The file was written once by `PYTHONPATH=tests python -m results.old_runs PLACE`, and stays as it is: results
of old versions must be read. A new form of what is stored gets a file of its own.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path

from planish.budget import Budget
from planish.levels import load_program
from planish.measure import Plan
from planish.settings import Settings
from planish.store import Store, open_store
from planish.tuning.api import tune_program
from planish.tuning.final import allowance, compare

DATA = Path(__file__).parents[1] / "data"
FILES = Path("/tmp/old")
"""Where the programs were that are files; a stored program names them by their digests."""
TRAINING = """\
[data]
folder = "data"
[split]
search = 9
validation = 6
train = 25
[training]
epochs = 4
search_steps = 12
"""


@dataclass(frozen=True)
class Old:
    """A run that is stored.

    Args:
        source: a text, or a file of `write_files`.
        trials: how many.
        settings: how it was tuned.
        options: how to read the program.
        compares: whether it was compared.
        killed: whether it was killed before it ended.
    """

    source: str
    trials: int
    settings: Settings
    options: Mapping[str, str]
    compares: bool = True
    killed: bool = False


MATMUL = {"size": "m=12,n=12,k=12"}
PRODUCT = "C[m,n] += A[m,k] * B[k,n]"
_RANDOM = Settings(searcher="random", workers=1, finalists=2)

RUNS: Mapping[str, Old] = {
    "loops": Old(PRODUCT, 6, _RANDOM, MATMUL),
    "loops-alone": Old(PRODUCT, 4, replace(_RANDOM, seed=1), MATMUL, compares=False),
    "loops-killed": Old(PRODUCT, 3, replace(_RANDOM, seed=2), MATMUL, killed=True),
    "llvm": Old("sum.ll", 6, replace(_RANDOM, objectives=("instructions",)), {}),
    "llvm-front": Old("sum.ll", 8, replace(_RANDOM, objectives=("instructions", "text_bytes")), {}),
    "hlo": Old("net.mlir", 4, replace(_RANDOM, objectives=("time",), level="hlo"), {}),
    "hlo-front": Old("net.mlir", 24, replace(_RANDOM, objectives=("time", "error"), finalists=4), {}),
    "graph": Old("net.onnx", 5, replace(_RANDOM, level="graph"), {}),
    "graph-front": Old("net.onnx", 6, replace(_RANDOM, objectives=("throughput", "model_size")), {}),
}
"""In the order in which they began."""


def write_files(folder: Path) -> Mapping[str, Path]:
    """Write the programs that are files, and their data; gives what stored programs refer to, by level."""
    from graph.models import convolutions, write
    from hlo.workloads import STEP, write_all
    from llvm.modules import SUM

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sum.ll").write_text(SUM)
    write_all(folder, STEP, TRAINING)
    return {"hlo": folder / "data", "graph": write(convolutions(), folder / "net.onnx")}


def write_runs(store: Store) -> None:
    """Tune all of `RUNS`, as briefly as can be."""
    for old in RUNS.values():
        source = str(FILES / old.source) if "." in old.source and " " not in old.source else old.source
        level, program = load_program(source, old.settings.level, old.options)
        compares = old.compares and not old.killed
        result = tune_program(
            level,
            program,
            budget=Budget(trials=old.trials),
            settings=old.settings,
            store=store,
            compares=compares,
        )
        if old.killed:
            store.resume_run(result.run_id)


def decide_einsum(place: Path) -> None:
    """Have a call of `einsum` decided, in a store of its own task."""
    import numpy as np

    from planish.einsum import einsum

    a = np.linspace(0.5, 2, 24 * 24).reshape(24, 24).astype(np.float32)
    einsum("ij,jk->ik", a, a, budget_s=1.0, store=place)


def main(place: Path) -> None:
    """Write the file."""
    platform.node = lambda: "anvil"  # type: ignore[reportAttributeAccessIssue]
    import_module("planish.tuning.journal").HOST = "anvil"  # type: ignore[reportAttributeAccessIssue]
    compare.Plan = partial(Plan, rounds=3, processes=2)  # type: ignore[reportAttributeAccessIssue]
    evaluator_spec = import_module("planish.hlo.evaluator_spec")
    evaluator_spec.LAST_TIMING = replace(evaluator_spec.LAST_TIMING, budget_s=0.01, fewest=1)  # type: ignore[reportAttributeAccessIssue]
    allowance.LEAST_S = 60.0
    write_files(FILES)
    with open_store(place) as store:
        write_runs(store)
    decide_einsum(place)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
