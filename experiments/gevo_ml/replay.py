"""GEVO-ML, 6.1: the three edits that the paper found in MobileNet, replayed on ours, alone and together.

    python experiments/gevo_ml/replay.py --data FOLDER_WITH_CIFAR10 [--rounds 5]

They are: one batch normalization takes the gamma of the one before it; the bias of the classifier is left
out; the last convolution is left out. Ours has each gamma with its variance in one scale. The paper does not
say which normalization it is: here it is that of least error on the search's images. What follows the last
convolution takes what that was given, resized as the paper repairs (figure 3).

Prints the times and the errors of each edit, each two and all three, and their epistasis: how many times
faster a patch is than the product of what its edits do alone. By the paper its gain is made of that.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path

from planish.core import Candidate, Measured, Outcome, Task
from planish.levels.hlo.edits import DeleteOp, Edit, EditableModule, ReplaceOperand
from planish.levels.hlo.edits.resize import plan_resize
from planish.levels.hlo.evaluator import scores_at_the_end
from planish.levels.hlo.level import HloLevel
from planish.levels.hlo.patch import original
from planish.levels.hlo.workload.arguments import signature
from planish.measure.comparison import PairedMeasurement
from planish.measure.executors import LocalExecutor
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

MODULE = Path(__file__).parents[2] / "examples" / "hlo" / "mobilenet.mlir"
NAMES = ("gamma", "bias", "last convolution")
START = partial(LocalExecutor, workers=1)


def main() -> None:
    """Replay the edits, and print the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--data", default="", help="the folder of the data set; else PLANISH_DATA")
    given.add_argument("--rounds", type=int, default=5, help="of measuring all patches alternately")
    asked = given.parse_args()
    level = HloLevel()
    named = {"data": asked.data} if asked.data else {}
    task = task_of(level, level.load(str(MODULE), named), Settings())
    module = original(task.program.module)
    gammas = gammas_before(task, module)
    errors = _errors(task, gammas)
    gamma = gammas[errors.index(min(errors))]
    print(f"{len(gammas)} batch normalizations may take the gamma before theirs: ", end="")
    print(f"errors from {min(errors):.2%} to {max(errors):.2%}; {gamma}\n", flush=True)
    edits = (gamma, without_bias(task, module), without_last_convolution(module))
    chosen = [places for count in (1, 2, 3) for places in combinations(range(3), count)]
    show(task, [(), *chosen], edits, asked.rounds)


def gammas_before(task: Task, module: EditableModule) -> list[Edit]:
    """List the edits by which a batch normalization takes the scale of the one before, of its shape."""
    names = signature(task.program.module, module.function).names
    scales = {f"arg{place}" for place, name in enumerate(names) if (name or "").endswith(".scale")}
    found = [
        (uid, value) for uid in module.blocks[""] for value in _operands(module, uid)[:1] if value in scales
    ]
    pairs = pairwise(found)
    return [
        ReplaceOperand(uid, 0, before)
        for (first, before), (uid, _) in pairs
        if module.infos[first].operands == module.infos[uid].operands
    ]


def without_bias(task: Task, module: EditableModule) -> Edit:
    """Leave the classifier's bias out: what uses the sum takes the product."""
    bias = f"arg{signature(task.program.module, module.function).names.index('classifier.bias')}"
    uid = next(uid for uid in module.blocks[""] if bias in _operands(module, uid))
    while module.infos[uid].name != "stablehlo.add":
        ((uid, _),) = module.users(uid)[0]
    product = next(
        value for value in _operands(module, uid) if _name(module, value) == "stablehlo.dot_general"
    )
    return DeleteOp(uid, ((product, ()),))


def without_last_convolution(module: EditableModule) -> Edit:
    """Leave the last convolution out, which here is the last product over pictures."""
    infos = module.infos
    products = [uid for uid in module.blocks[""] if infos[uid].name == "stablehlo.dot_general"]
    uid = [each for each in products if len(_shape(module, each)) == 4][-1]
    source, target = infos[uid].operands[0], infos[uid].results[0]
    assert source is not None
    assert target is not None
    return DeleteOp(uid, ((_operands(module, uid)[0], plan_resize(source, target)),))


def _operands(module: EditableModule, uid: str) -> list[str]:
    return [module.name(value) for value in module.op(uid).operands]


def _name(module: EditableModule, value: str) -> str:
    info = module.infos.get(value.partition("#")[0])
    return info.name if info else ""


def _shape(module: EditableModule, uid: str) -> tuple[int, ...]:
    (result,) = module.infos[uid].results
    return result.shape if result else ()


def _errors(task: Task, edits: Sequence[Edit]) -> list[float]:
    """Give the error on the search's images of each edit alone."""
    found = scores_at_the_end(task, [Candidate((edit,)) for edit in edits], START, ("search",))
    return [each.values["error"] if isinstance(each, Measured) else math.inf for each in found]


def show(task: Task, chosen: Sequence[Sequence[int]], edits: Sequence[Edit], rounds: int) -> None:
    """Measure patches alternately, and print a row for each."""
    patches = [Candidate(tuple(edits[place] for place in places)) for places in chosen]
    with START(HloLevel().evaluator(task, final=True)) as executor:
        found = PairedMeasurement(executor).measure(patches, rounds)
    scores = scores_at_the_end(task, patches, START, ("validation", "final"))
    base = _seconds(found[0])
    times = {tuple(places): base / _seconds(each) for places, each in zip(chosen, found, strict=True)}
    print("| edits | times faster | epistasis | error: validation | final |\n|---|--:|--:|--:|--:|")
    for places, score in zip(chosen, scores, strict=True):
        alone = math.prod(times[(place,)] for place in places)
        epistasis = f"{times[tuple(places)] / alone:.3f}" if len(places) > 1 else ""
        columns = (
            [f"{score.values[f'error_{part}']:.2%}" for part in ("validation", "final")]
            if isinstance(score, Measured)
            else ["failed", ""]
        )
        named = ", ".join(NAMES[place] for place in places) or "none"
        print("|", " | ".join((named, f"{times[tuple(places)]:.3f}", epistasis, *columns)), "|")


def _seconds(rounds: Sequence[Outcome]) -> float:
    return statistics.median(each.values["time_s"] for each in rounds if isinstance(each, Measured))


if __name__ == "__main__":
    main()
