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
import time
from contextlib import closing
from functools import partial
from pathlib import Path

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
from planish.sandbox.fork_pool import in_child
from planish.train.corpus.programs import open_apt
from planish.train.cost_tables import Columns, CostRow, empty_table, read_costs, write_costs

ROOT = Path("build/modules").absolute()
OBJECTIVE = "text_bytes"
_FLAGS = ("-Oz", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", "-w")
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
"""Package, what it is for, its sources, and flags."""
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
    bindings, lists = open_bindings(), tuple(passes for passes, _ in shipped_lists().first[1:])
    columns = Columns(bindings.version, platform.machine(), (OBJECTIVE,), lists, NAMES, VERSION)
    table = read_costs(asked.table) if asked.table.exists() else empty_table(columns)
    done = ROOT / "done"
    done.mkdir(parents=True, exist_ok=True)
    for package, split, patterns, flags in PACKAGES:
        for path in compiled(package, patterns, flags):
            mark = done / f"{package}-{path.stem}"
            enough = np.count_nonzero(table.packages == package) >= asked.functions
            if enough or mark.exists() or time.monotonic() > over:
                continue
            rows = in_child(partial(rows_of, path.read_bytes(), package, split), list[CostRow])
            found = [] if isinstance(rows, ExitStatus) else rows
            known = set(table.identities.tolist())
            new = {row.identity: row for row in found if row.identity not in known}
            table = table.with_rows(list(new.values()))
            write_costs(table, asked.table)
            mark.touch()
            print(f"{package} {path.stem}: {len(new)} more, {len(table):,} in all", flush=True)


def compiled(package: str, patterns: str, flags: str) -> list[Path]:
    """Compile a package's files to unoptimized bitcode, once."""
    folder = ROOT / package
    tree = folder / "tree"
    if not tree.exists():
        folder.mkdir(parents=True, exist_ok=True)
        open_apt(cache_folder("apt")).unpack(package, folder)
    compiler = compiler_of(open_bindings())
    found: list[Path] = []
    for source in sorted(path for pattern in patterns.split() for path in tree.glob(pattern)):
        path = folder / f"{'-'.join(source.relative_to(tree).with_suffix('').parts)}.bc"
        if not path.exists():
            command = [*compiler.command, *_FLAGS, *flags.split(), str(source), "-o", str(path)]
            if subprocess.run(command, cwd=tree, check=False, stderr=subprocess.DEVNULL).returncode:
                continue
        if path.stat().st_size <= _LARGEST:
            found.append(path)
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


def rows_of(code: bytes, package: str, split: str) -> list[CostRow]:
    """Try every list on every function of a module."""
    lists, trier = shipped_lists().first, FunctionCosts(OBJECTIVE)
    usual = ModuleRecipe(initial_pipeline(whole_bindings()), ((print_pipeline(lists[0][0]), ()),), LAST)
    try:
        begun, ended, sizes = made_by(code, usual, trier)
    except (PassError, IRError):
        return []
    with closing(single(whole_bindings().parse(ended))) as module:
        after = module.definitions().texts()
    with closing(single(whole_bindings().parse(begun))) as module:
        before = module.definitions().texts()
        breaking = {MERGES}.difference(drop_unsafe_passes([MERGES], module.text()))
    counts = {name: float(size) for name, size in sizes.items() if name in before and name in after}
    costs = {name: list[tuple[int] | None]() for name in counts}
    prepared = PreparedFunctions(begun, costs=counts)
    with closing(prepared):
        for group in groups_of(counts, OBJECTIVE):
            part = prepared.group(whole_bindings(), group.parts, OBJECTIVE)
            for passes, _ in lists[1:]:
                kept = [text for text in passes if text not in breaking]
                tried = trier.try_list(part, print_pipeline(kept)) or {}
                for name in group.parts:
                    costs[name].append((tried[name],) if name in tried else None)
    names = [name for name in counts if costs[name]]
    features = np.stack([opcode_counts(texts[name] for name in names) for texts in (before, after)], axis=1)
    return [
        CostRow(
            hashlib.sha256(before[name].encode(errors="surrogateescape")).hexdigest()[:32],
            package,
            split,
            (sizes[name],),
            (sizes[name],),
            costs[name],
            features[place],
        )
        for place, name in enumerate(names)
    ]


if __name__ == "__main__":
    main()
