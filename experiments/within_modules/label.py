"""What the lists of the search within modules cost on functions of programs that no table of results has.

    python experiments/within_modules/label.py [--minutes 15] [--table experiments/labels/modules.npz]

Fetches Debian's sources into build/modules and compiles them one file at a time, as `planish cc -Oz` does; of
each module, every list that comes with planish is tried on every function, as the search does it. What the
table has is passed over. `gate.py` says what could be made of it.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
from opcodes import NAMES, VERSION, opcode_counts

from planish.core import cache_folder
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import IRError, PassError
from planish.levels.llvm.modules.evaluator import PreparedFunctions
from planish.levels.llvm.modules.function_costs import FunctionCosts
from planish.levels.llvm.modules.space import groups_of, shipped_lists
from planish.levels.llvm.modules.transform import (
    LAST,
    ModuleRecipe,
    Sizes,
    begin,
    end,
    initial_pipeline,
    single,
    whole_bindings,
)
from planish.levels.llvm.passes.catalogue import MERGES, drop_unsafe_passes
from planish.levels.llvm.passes.pipeline import print_pipeline
from planish.levels.llvm.source import compiler_of
from planish.sandbox import ExitStatus
from planish.sandbox.fork_pool import ForkLimits, in_child
from planish.train.corpus.programs import open_apt
from planish.train.corpus.sources import SourceTree
from planish.train.cost_tables import Columns, CostRow, empty_table, read_costs, write_costs

ROOT = Path("build/modules").absolute()
OBJECTIVE = "text_bytes"
_FLAGS = ("-Oz", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", "-w")
LIMITS = ForkLimits(seconds=120.0)
_LARGEST = 4 << 20
"""Bytes of bitcode: larger modules have more functions than one package should have."""
PACKAGES = (
    ("mbedtls", "train", "library/*.c", "-Iinclude -Ilibrary"),
    ("lz4", "train", "lib/*.c programs/*.c", "-Ilib"),
    ("mujs", "validation", "[!o]*.c", "-I."),
    ("zopfli", "train", "src/zopfli/*.c", ""),
    ("suitesparse", "train", "CSparse/Source/*.c", "-ICSparse/Include"),
    ("erfa", "train", "src/*.c", "-Isrc"),
    (
        "libzstd",
        "validation",
        "lib/common/*.c lib/compress/*.c lib/decompress/*.c lib/dictBuilder/*.c",
        "-Ilib",
    ),
    ("speexdsp", "validation", "libspeexdsp/[!t]*.c", "-Iinclude -Ilibspeexdsp -DFLOATING_POINT -DEXPORT="),
    ("libtomcrypt", "train", "src/**/*.c", "-Isrc/headers -DLTC_SOURCE"),
    ("kissfft", "train", "*.c", "-I."),
    ("duktape", "train", "src/duktape.c", "-Isrc"),
)
"""Package, what it is for, its sources, and flags besides those with which a corpus compiles them."""
_PLUS = "-std=c++17 -fPIC"
PLUS = (
    ("re2", "train", "re2/[!f]*.cc util/rune.cc util/strutil.cc", f"{_PLUS} -I."),
    ("tinyxml2", "train", "tinyxml2.cpp", _PLUS),
    ("yaml-cpp", "train", "src/*.cpp", f"{_PLUS} -Iinclude"),
    ("double-conversion", "train", "double-conversion/*.cc", f"{_PLUS} -I."),
    ("fmtlib", "train", "src/os.cc src/format.cc", f"{_PLUS} -Iinclude"),
)
"""The same of C++, for `starts.py`."""


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--minutes", type=float, default=15.0)
    given.add_argument("--functions", type=int, default=350, help="of each package, about")
    given.add_argument("--table", type=Path, default=Path("experiments/labels/modules.npz"))
    asked = given.parse_args()
    over = time.monotonic() + 60 * asked.minutes
    bindings, (usual, *lists) = open_bindings(), [passes for passes, _ in shipped_lists().first]
    columns = Columns(bindings.version, platform.machine(), (OBJECTIVE,), tuple(lists), NAMES, VERSION)
    table = read_costs(asked.table) if asked.table.exists() else empty_table(columns)
    if table.columns != columns:
        sys.exit(f"{asked.table} has other lists, or is of another LLVM: name another file with --table.")
    done = ROOT / "done"
    done.mkdir(parents=True, exist_ok=True)
    for package, split, patterns, flags in PACKAGES:
        for path in compiled(package, patterns, flags):
            mark = done / f"{package}-{path.stem}"
            enough = np.count_nonzero(table.packages == package) >= asked.functions
            if enough or mark.exists() or time.monotonic() > over:
                continue
            work = partial(rows_of, path.read_bytes(), package, split, usual, lists)
            rows = in_child(work, list[CostRow], LIMITS)
            found = [] if isinstance(rows, ExitStatus) else rows
            known = set(table.identities.tolist())
            new = {row.identity: row for row in found if row.identity not in known}
            table = table.with_rows(list(new.values()))
            write_costs(table, asked.table)
            mark.touch()
            print(f"{package} {path.stem}: {len(new)} more, {len(table):,} in all", flush=True)


def compiled(package: str, patterns: str, flags: str) -> list[Path]:
    """Compile a package's files to unoptimized bitcode, once; those that do not compile are reported."""
    folder = ROOT / package
    tree = folder / "tree"
    if not tree.exists():
        folder.mkdir(parents=True, exist_ok=True)
        open_apt(cache_folder("apt")).unpack(package, folder)
    compiler = compiler_of(open_bindings())
    guessed = SourceTree(tree, compiler.header_folders(), folder / "stubs")
    found, failures = list[Path](), list[str]()
    for source in sorted(path for pattern in patterns.split() for path in tree.glob(pattern)):
        name = source.relative_to(tree)
        path = folder / f"{'-'.join(name.with_suffix('').parts)}.bc"
        if not path.exists():
            others = guessed.flags(name.as_posix()) if source.suffix == ".c" else ()
            command = [*compiler.command, *_FLAGS, *flags.split(), *others, str(source), "-o", str(path)]
            ran = subprocess.run(command, cwd=tree, check=False, capture_output=True, text=True)
            if ran.returncode:
                failures.append(f"{name}: {ran.stderr.splitlines()[0] if ran.stderr else 'no message'}")
                continue
        if path.stat().st_size <= _LARGEST:
            found.append(path)
    if failures:
        print(f"{package}: {len(failures)} files do not compile, first {failures[0]}", flush=True)
    return found


def made_by(code: bytes, recipe: ModuleRecipe, trier: FunctionCosts) -> tuple[bytes, bytes, Sizes]:
    """Make a module; return its bitcode before lists are run and at the end, and what its functions cost.

    Raises:
        PassError, IRError: LLVM refuses it.
    """
    with closing(single(whole_bindings().parse(code))) as module:
        begin(module, recipe.inlining, recipe.passes)
        begun = module.bitcode()
    with closing(single(whole_bindings().parse(begun))) as module:
        end(module, recipe)
        return begun, module.bitcode(), trier.measure(module)[0]


@dataclass(frozen=True)
class Tried:
    """Functions of a module, on each of which every list was tried.

    Args:
        before: text of each by name, before lists are run.
        after: the same, after the usual list.
        sizes: costs by the usual list.
        costs: of each function, after each list; None where LLVM refuses it.
    """

    before: Mapping[str, str]
    after: Mapping[str, str]
    sizes: Mapping[str, int]
    costs: Mapping[str, Sequence[int | None]]


def tried(
    code: bytes, usual: Sequence[str], lists: Sequence[Sequence[str]], objective: str, most: int = 0
) -> Tried | None:
    """Try lists on the functions of a module, a group at a time as the search does.

    Args:
        code: the module's bitcode, unoptimized.
        usual: what all functions have, which have no list of their own.
        lists: what is tried.
        objective: what is counted.
        most: functions that are drawn; 0: all.

    Returns:
        What was found; None where LLVM refuses the module.
    """
    trier = FunctionCosts(objective)
    recipe = ModuleRecipe(initial_pipeline(whole_bindings()), ((print_pipeline(usual), ()),), LAST)
    try:
        begun, ended, sizes = made_by(code, recipe, trier)
    except (PassError, IRError):
        return None
    with closing(single(whole_bindings().parse(ended))) as module:
        after = module.definitions().texts()
    with closing(single(whole_bindings().parse(begun))) as module:
        before = module.definitions().texts()
        breaking = {MERGES}.difference(drop_unsafe_passes([MERGES], module.text()))
    names = [name for name in sizes if name in before and name in after]
    names = Random(0).sample(names, min(most, len(names))) if most else names
    counts = {name: float(sizes[name]) for name in names}
    costs = {name: list[int | None]() for name in counts}
    with closing(PreparedFunctions(begun, costs=counts)) as prepared:
        for group in groups_of(counts, objective):
            part = prepared.group(whole_bindings(), group.parts, objective)
            for passes in lists:
                kept = [text for text in passes if text not in breaking]
                found = trier.try_list(part, print_pipeline(kept)) or {}
                for name in group.parts:
                    costs[name].append(found.get(name))
    return Tried(before, after, sizes, {name: each for name, each in costs.items() if each})


def rows_of(
    code: bytes, package: str, split: str, usual: Sequence[str], lists: Sequence[Sequence[str]]
) -> list[CostRow]:
    """Try every list on every function of a module."""
    found = tried(code, usual, lists, OBJECTIVE)
    if found is None or not found.costs:
        return []
    texts = (found.before, found.after)
    features = np.stack([opcode_counts(each[name] for name in found.costs) for each in texts], axis=1)
    return [
        CostRow(
            hashlib.sha256(found.before[name].encode(errors="surrogateescape")).hexdigest()[:32],
            package,
            split,
            (found.sizes[name],),
            (found.sizes[name],),
            [None if cost is None else (cost,) for cost in costs],
            features[index],
        )
        for index, (name, costs) in enumerate(found.costs.items())
    ]


if __name__ == "__main__":
    main()
