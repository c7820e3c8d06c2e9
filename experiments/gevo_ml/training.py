"""GEVO-ML, 6.2: evolve the training step of two fully connected layers on MNIST, for time and for error.

    python experiments/gevo_ml/training.py --data FOLDER_WITH_MNIST [--seconds 3600] [--seeds 3]

Prints the front of each seed, and random search with as many evaluations; the error reached at no more
time than the original's, by the member with the least error on the validation data after whole trainings; its
mean and spread over the seeds; and beside the paper's what the plain change of the learning rate gives, with
which the paper explains its own (section 6.2).
"""

import math
from collections.abc import Mapping
from functools import partial

from study import best, options, show, spread, studies

from planish.core import Candidate, Measured, Task
from planish.levels.hlo.edits import ReplaceConstant
from planish.levels.hlo.edits.operations import splat_value
from planish.levels.hlo.evaluator import scores_at_the_end
from planish.levels.hlo.patch import original
from planish.measure.executors import LocalExecutor
from planish.tuning.result import Result

PAPER = (0.0862, 0.0374)
"""The error of the original, and of what evolution found at no more time (figure 4b)."""
RATE, PLAIN = 0.01, 0.3
"""The learning rate, and the one that section 6.2 puts in its place."""
PARTS = ("validation", "final")


def main() -> None:
    """Run the experiment."""
    errors: dict[str, list[float]] = {part: [] for part in PARTS}
    result: Result | None = None
    for found in studies(options(__doc__, "2fcnet.mlir")):
        show(found)
        result = found.evolved
        for part, error in least(result).items():
            errors[part].append(error)
    assert result is not None
    assert result.baseline is not None
    spread({f"evolved, at no more time: error on the {part} data": errors[part] for part in PARTS}, ".2%")
    print("\n| error | validation | final |\n|---|---|---|")
    print(f"| the paper's original, and what it found at no more time | | {PAPER[0]:.2%}, {PAPER[1]:.2%} |")
    row("original", {part: result.baseline.scores[f"error_{part}"] for part in PARTS})
    row(f"its learning rate of {RATE} set to {PLAIN}", scored(result.task, with_rate(result.task, PLAIN)))


def row(name: str, errors: Mapping[str, float]) -> None:
    """Print the errors of a module."""
    print("|", " | ".join((name, *(f"{errors[part]:.2%}" for part in PARTS))), "|")


def least(result: Result) -> Mapping[str, float]:
    """Give the errors of the member that is no slower and has the least; none where there is none."""
    found = best(
        result,
        lambda m: "error_validation" in m.scores and m.measured["time_s"].verdict != "worse",
        lambda m: m.scores["error_validation"],
    )
    return {} if found is None else {part: found.scores[f"error_{part}"] for part in PARTS}


def with_rate(task: Task, rate: float) -> Candidate:
    """Give the patch that sets the learning rate, which the step has in a constant for each parameter."""
    module = original(task.program.module)
    constants = [uid for uid in module.blocks[""] if module.op(uid).name == "stablehlo.constant"]
    known = {uid: splat_value(module.op(uid)) for uid in constants}
    rates = [uid for uid, value in known.items() if value and math.isclose(value, RATE, rel_tol=1e-6)]
    return Candidate(tuple(ReplaceConstant(uid, rate) for uid in rates))


def scored(task: Task, candidate: Candidate) -> Mapping[str, float]:
    """Train a patched module whole, and give its errors."""
    (found,) = scores_at_the_end(task, [candidate], partial(LocalExecutor, workers=1))
    assert isinstance(found, Measured), found
    return {part: found.values[f"error_{part}"] for part in PARTS}


if __name__ == "__main__":
    main()
