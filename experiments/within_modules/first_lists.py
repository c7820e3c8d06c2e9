"""Which lists the search within modules should try first on each function, at equal evaluations.

    python experiments/within_modules/first_lists.py [--only bzip2]

Compiles Debian packages that nothing has learnt from (lua5.4, zlib, bzip2), as `label.py` does. Each of the
24 lists of the search within modules, and of the 40 of the coreset of single functions, is run on each
function after the initial pipeline; pipelines of whole modules in the coreset become what they run on
functions. The table has what is saved over the usual list after each number of lists: in the order of the
search, with the 8 lists first that the shipped policy finds most probable, and with the coreset's lists and
those of the search by turns. Both coreset and policy are of training packages alone.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from label import compiled
from numpy.typing import NDArray

from planish.levels.llvm.ir.features import CutWarning, observe_module
from planish.levels.llvm.modules.function_costs import FunctionCosts, keep_only
from planish.levels.llvm.modules.space import groups_of, shipped_lists
from planish.levels.llvm.modules.transform import (
    begin,
    initial_pipeline,
    single,
    whole_bindings,
)
from planish.levels.llvm.passes.catalogue import drop_unsafe_passes
from planish.levels.llvm.passes.pipeline import print_pipeline
from planish.models.networks import HEADS, ReaderShape, predict_lists
from planish.models.policy_files import SavedPolicy, load_policy, policy_paths

PACKAGES = (("lua5.4", "src/*.c", "-Isrc"), ("zlib", "*.c", "-I."), ("bzip2", "*.c", "-I."))
OBJECTIVES = ("instructions", "text_bytes")
COUNTS = 1, 2, 3, 4, 6, 8, 12, 16, 24
FIRST = 8
Passes = Sequence[str]
Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Functions:
    """Functions of a module.

    Args:
        usual: (functions,), what they cost by the usual list.
        costs: (functions, lists), never more than that.
        chances: (functions, lists of the policy).
    """

    usual: Floats
    costs: Floats
    chances: Floats


def of_functions(passes: Passes) -> list[str]:
    """Return a list in which pipelines of whole modules are what they run on functions."""
    return ["function-simplification<Oz>" if text.startswith("default<") else text for text in passes]


def measured(code: bytes, objective: str, lists: Sequence[Passes], policy: SavedPolicy) -> Functions | None:
    """Run lists on the functions of a module; None where it has none that are worth it."""
    bindings = whole_bindings()
    with closing(single(bindings.parse(code))) as module:
        ir = module.text()
        begin(module, (), initial_pipeline(bindings))
        begun, costs = module.bitcode(), FunctionCosts(objective)
    usual_text, *texts = (print_pipeline(drop_unsafe_passes(passes, ir)) for passes in lists)
    with closing(single(bindings.parse(begun))) as module:
        usual = costs.try_list(module, usual_text) or {}
        names = [name for group in groups_of(usual, objective) for name in group.parts]
        if not names:
            return None
        keep_only(module, names)
        found = [costs.try_list(module, text) or {} for text in texts]
    rows = [[min(usual[name], each.get(name, usual[name])) for each in found] for name in names]
    observed = np.stack([_observed(begun, name, usual_text) for name in names])
    assert isinstance(policy.shape, ReaderShape)
    chances = predict_lists(policy.shape, policy.parameters, observed)[:, HEADS.index("choice")]
    return Functions(np.array([usual[name] for name in names], float), np.array(rows, float), chances)


def _observed(begun: bytes, name: str, usual: str) -> NDArray[np.int64]:
    with closing(single(whole_bindings().parse(begun))) as module:
        keep_only(module, [name])
        before = module.text()
        module.run(usual)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CutWarning)
            return observe_module(before, module.text())


def saved(functions: Functions, order: NDArray[np.integer]) -> Iterator[float]:
    """Yield the share that is saved after each number of lists, with an order for each function."""
    costs = np.take_along_axis(functions.costs, order, axis=1)
    best = np.minimum.accumulate(costs, axis=1).sum(axis=0)
    for count in COUNTS:
        yield 1 - float(best[min(count, len(best)) - 1] / functions.usual.sum())


def main() -> None:
    """Print the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--only", nargs="+", choices=[name for name, *_ in PACKAGES])
    asked = given.parse_args()
    policy, first = load_policy(policy_paths()["llvm"]), [passes for passes, _ in shipped_lists().first]
    lists = [*first, *(of_functions(text.split(",")) for text in policy.actions)]
    chosen = [each for each in PACKAGES if asked.only is None or each[0] in asked.only]
    files: list[Path] = list(chain.from_iterable(compiled(*each) for each in chosen))
    print(f"| counted | functions | order | {' | '.join(map(str, COUNTS))} |")
    print(f"|---|--:|---{'|--:' * len(COUNTS)}|")
    for objective in OBJECTIVES:
        found = [measured(path.read_bytes(), objective, lists, policy) for path in files]
        parts = [each for each in found if each]
        whole = Functions(
            *(
                np.concatenate([getattr(each, name) for each in parts])
                for name in ("usual", "costs", "chances")
            )
        )
        count, shipped = len(whole.usual), len(first) - 1
        ours = np.tile(np.arange(shipped), (count, 1))
        asked_first = shipped + np.argsort(-whole.chances, axis=1, kind="stable")[:, :FIRST]
        turns = [
            each for pair in zip(range(shipped, 2 * shipped), range(shipped), strict=True) for each in pair
        ]
        for name, order in (
            ("as it is", ours),
            (f"{FIRST} of the policy first", np.hstack([asked_first, ours])),
            ("the coreset by turns", np.tile(turns, (count, 1))),
        ):
            cells = " | ".join(f"{value:.2%}" for value in saved(whole, order))
            print(f"| {objective} | {count} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
