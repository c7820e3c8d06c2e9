"""Functions of C packages, compiled for a microcontroller.

    python experiments/within_modules/target_functions.py thumb -o FILE [--packages NAME ...]

Debian's source packages are compiled file by file, with picolibc's headers, as `planish corpus build`
compiles them for this machine. `thumb` alternates between a Cortex-M0 and a Cortex-M4 from file to file. The
output is read by `find_lists.py` and `compare_lists.py`. Packages of which no file compiles are skipped.
Firmware projects whose sizes are reported (`experiments/cc/firmware.py`) are not among the packages.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import cycle
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from planish.core import PlanishError, cache_folder
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.clang import find_compiler
from planish.sandbox.fork_pool import Watchdog, forked
from planish.train.background import HELD_OUT
from planish.train.corpus.programs import open_apt
from planish.train.corpus.shards import Row, split_of
from planish.train.corpus.sources import DebianPackage
from planish.train.corpus.unit import CorpusRecipe, Crop, Found, SourceUnit, harvest

_PICOLIBC = "/usr/lib/picolibc/{}/include"
_ARM, _RISCV = _PICOLIBC.format("arm-none-eabi"), _PICOLIBC.format("riscv64-unknown-elf")
_ARM_WORDS = ("-mfloat-abi=soft", "-fshort-enums", "-isystem", _ARM)
TARGETS = {
    "thumb": (
        ("--target=thumbv7em-none-eabi", "-mcpu=cortex-m4", *_ARM_WORDS),
        ("--target=thumbv6m-none-eabi", "-mcpu=cortex-m0", *_ARM_WORDS),
    ),
    "rv32": (("--target=riscv32-unknown-elf", "-march=rv32imac", "-mabi=ilp32", "-isystem", _RISCV),),
}
"""Words of clang for each processor of a target."""
PACKAGES = (
    *("libtomcrypt", "libtommath", "libzstd", "brotli", "libsodium", "zopfli", "expat", "cjson", "wolfssl"),
    *("opus", "speex", "flac", "lame", "libonig", "bearssl", "lcms2", "libyaml", "lzo2", "jbig2dec"),
    *("libpng1.6", "openjpeg2", "lz4", "mujs", "pcre2", "utf8proc", "nanopb", "xxhash", "mruby", "c-blosc"),
    *HELD_OUT,
)
_FILES, _FUNCTIONS = 48, 40
"""Files of a package that are compiled, and functions of it that are kept, drawn at random."""
_LEAST_INSTRUCTIONS, _MOST_CHARS = 25, 16_000


def units_of(package: str, words: Sequence[tuple[str, ...]], folder: Path) -> tuple[str, list[SourceUnit]]:
    """Unpack a package; return its version and some of its files, with the words of a processor each.

    Raises:
        PlanishError: it cannot be had.
    """
    headers = [Path(words[0][-1]), *find_compiler(22).header_folders()[:1]]
    prepared = DebianPackage(package, open_apt(cache_folder("apt")), ()).prepare(folder / package, headers)
    files = sorted(prepared.units, key=lambda unit: unit.name)
    files = Random(package).sample(files, min(_FILES, len(files)))
    # GNU's extensions, which the corpus of this machine is compiled with, are not picolibc's.
    flags = [tuple(each for each in unit.flags if each != "-D_GNU_SOURCE") for unit in files]
    return prepared.version, [
        replace(unit, flags=(*each, *kept))
        for unit, kept, each in zip(files, flags, cycle(words), strict=False)
    ]


def compiled(unit: SourceUnit, watchdog: Watchdog) -> Crop:
    """Return the functions of a file, within a child."""
    del watchdog
    return harvest([unit], CorpusRecipe(find_compiler(22), _MOST_CHARS))


def rows_of(package: str, version: str, units: Sequence[SourceUnit]) -> Iterator[Row]:
    """Yield functions of a package, each text once, those of few instructions left out."""
    crops = [each.answer for each in forked(units, compiled, Crop, 1, at_once=8) if each.answer]
    failed = sum(bool(crop.failures) for crop in crops)
    found = {one.identity: one for crop in crops for one in crop.found}
    large = [one for one in found.values() if one.instructions >= _LEAST_INSTRUCTIONS]
    kept = Random(package).sample(large, min(_FUNCTIONS, len(large)))
    print(
        f"{package} {version}: {len(units)} files, {failed} failed; {len(kept)} of {len(large)} functions",
        flush=True,
    )
    yield from (row_of(one, package, version) for one in kept)


def row_of(found: Found, package: str, version: str) -> Row:
    """Return a function as a row of a corpus."""
    return Row(
        **asdict(found),
        package=package,
        version=version,
        kind="debian",
        split=split_of("debian", package),
        chars=len(found.ir),
        duplicates=0,
    )


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("target", choices=TARGETS)
    given.add_argument("-o", "--output", type=Path, required=True)
    given.add_argument("--packages", nargs="+", default=PACKAGES)
    asked = given.parse_args()
    open_bindings()
    with TemporaryDirectory() as folder, gzip.open(asked.output, "wt", encoding="utf-8") as lines:
        for package in asked.packages:
            try:
                version, units = units_of(package, TARGETS[asked.target], Path(folder))
            except PlanishError as error:
                print(f"{package}: {error.message}", flush=True)
                continue
            for row in rows_of(package, version, units):
                lines.write(json.dumps(asdict(row)) + "\n")


if __name__ == "__main__":
    main()
