"""Comparison of -Oz with the initial pipeline as the start of the search within modules.

    python experiments/within_modules/starts.py [--minutes 15]

Compiles programs that no table of results has, of C and of C++, one file at a time. Each module is begun both
ways, and lists are run on its functions in their order; each function keeps the best. After -Oz one may stay
as it is. The table has the geometric mean over modules of what is left of -Oz's bytes, and in how many
modules the initial pipeline has come to no more than the other.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial

from label import LIMITS, PACKAGES, PLUS, compiled, made_by

from planish.levels.llvm.bindings.protocol import IRError, PassError
from planish.levels.llvm.modules.function_costs import FunctionCosts
from planish.levels.llvm.modules.space import shipped_lists
from planish.levels.llvm.modules.transform import (
    LAST,
    OZ,
    ModuleRecipe,
    Sizes,
    initial_pipeline,
    single,
    whole_bindings,
)
from planish.levels.llvm.passes.pipeline import print_pipeline
from planish.sandbox.fork_pool import in_child

COUNTS = 1, 2, 3, 5, 8, 12, 25
_LARGEST = 700_000
"""Bytes of bitcode."""


@dataclass(frozen=True)
class Module:
    """Bytes of the functions of a module: after -Oz, and from each start after each number of lists."""

    oz: int
    initial: Sequence[int]
    other: Sequence[int]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--minutes", type=float, default=15.0, help="for each language")
    given.add_argument("--modules", type=int, default=8, help="of each package, at most")
    asked = given.parse_args()
    print("| language, modules | lists | initial pipeline | -Oz | better of both | initial is no larger |")
    print("|---|--:|--:|--:|--:|--:|")
    for language, packages in (("C", PACKAGES), ("C++", PLUS)):
        found = list(modules(packages, asked.modules, time.monotonic() + 60 * asked.minutes))
        for place, count in enumerate(COUNTS):
            pairs = [(m.initial[place] / m.oz, m.other[place] / m.oz) for m in found]
            better = sum(1 for initial, other in pairs if initial <= other)
            means = [mean(column) for column in (*zip(*pairs, strict=True), map(min, pairs))]
            row = " | ".join(f"{each:.4f}" for each in means)
            print(f"| {language}, {len(found)} | {count} | {row} | {better} |", flush=True)


def modules(packages: Sequence[tuple[str, str, str, str]], most: int, over: float) -> Iterator[Module]:
    """Measure modules of packages until the time is over."""
    for package, _, patterns, flags in packages:
        paths = [path for path in compiled(package, patterns, flags) if path.stat().st_size < _LARGEST]
        for path in sorted(paths, key=lambda path: -path.stat().st_size)[:most]:
            if time.monotonic() < over:
                found = in_child(partial(measured, path.read_bytes()), LIMITS)
                if isinstance(found, Module):
                    yield found


def measured(code: bytes) -> Module | None:
    """Run lists on the functions of a module from both starts."""
    oz = sizes_of(code, ModuleRecipe(OZ, (), LAST))
    if not oz:
        return None
    return Module(
        sum(oz.values()), best_of(code, initial_pipeline(whole_bindings()), {}), best_of(code, OZ, oz)
    )


def sizes_of(code: bytes, recipe: ModuleRecipe) -> Sizes:
    """Make a module."""
    with suppress(PassError, IRError):
        return made_by(code, recipe, FunctionCosts("text_bytes"))[2]
    return {}


def best_of(code: bytes, start: str, kept: Sizes) -> list[int]:
    """Give the bytes after each number of lists, of which each function has its best."""
    lists, trier = (
        [print_pipeline(passes) for passes, _ in shipped_lists().first],
        FunctionCosts("text_bytes"),
    )
    # Some functions of a module that was begun are called no more in the end.
    alive, best, totals = sizes_of(code, ModuleRecipe(start, ((lists[0], ()),), LAST)), {**kept}, list[int]()
    with closing(single(whole_bindings().parse(code))) as module:
        module.run(start)
        begun = module.bitcode()
    with closing(single(whole_bindings().parse(begun))) as module:
        for count, pipeline in enumerate(lists, 1):
            tried = trier.try_list(module, pipeline)
            for name, size in tried.items() if tried else ():
                if name in alive:
                    best[name] = min(size, best.get(name, size))
            if count in COUNTS:
                totals.append(sum(best.values()))
    return totals


def mean(ratios: Iterable[float]) -> float:
    """Give the geometric mean."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs))


if __name__ == "__main__":
    main()
