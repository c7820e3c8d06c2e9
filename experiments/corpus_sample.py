"""Makes the corpus that comes with planish: functions of programs whose licenses ask for a notice only.

    python experiments/corpus_sample.py

It needs apt, csmith, a C compiler and pyarrow, takes two minutes of one core, and writes
src/planish/train/corpus/sample/.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.clang import find_compiler
from planish.train.corpus.build import BuildPlan, CorpusRequest, build_corpus, packages_of
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.shards import Row
from planish.train.corpus.unit import CorpusRecipe
from planish.tuning.progress import ProgressDisplay

PACKAGES = (
    "lua5.4",
    "zlib",
    "bzip2",
    "sqlite3",
    "libuv1",
    "duktape",
    "libzstd",
    "redis",
    "mbedtls",
    "lz4",
    "mujs",
)
LICENSES = (
    *("Expat", "expat", "MIT", "Zlib", "zlib", "ISC", "BSD-variant", "BSD-2-clause", "BSD-3-clause"),
    *("BSD-3-clause or GPL-2", "public-domain", "CC0", "Apache-2.0"),
)
EACH = 50
RANDOM = 6  # programs
MOST_CHARS = 8_000
OUT = Path(__file__).parents[1] / "src" / "planish" / "corpus" / "sample"
NOTICE = """# Where the functions are from

`functions.jsonl.gz` holds functions of the programs below, compiled to LLVM IR by {compiler} from Debian's
source packages and normalized. `experiments/corpus_sample.py` made it. What follows is what the packages say
of their copyright and licenses, word for word; each function names its file and the license that holds for
it. Functions of random programs (csmith) belong to nobody.
"""


def main() -> None:
    llvm = open_bindings().version
    compiler = find_compiler(int(llvm.partition(".")[0]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "corpus"
        packages = packages_of(CorpusRequest(debian=PACKAGES, csmith=RANDOM), print)
        plan = BuildPlan(packages, CorpusRecipe(compiler, MOST_CHARS), llvm, keep_sources=True)
        with ProgressDisplay() as display:
            build_corpus(folder, plan, display)
        rows = chosen(read_corpus(folder))
        notices = {name: copyright_of(folder, name) for name in PACKAGES}
    OUT.mkdir(exist_ok=True)
    write(rows, OUT / "functions.jsonl.gz")
    texts = [f"## {name}\n\n```\n{text.strip()}\n```\n" for name, text in notices.items()]
    head = NOTICE.format(compiler=f"{compiler.name} {compiler.version}")
    (OUT / "ATTRIBUTION.md").write_text("\n".join([head, *texts]))
    print(f"{len(rows)} functions, {(OUT / 'functions.jsonl.gz').stat().st_size:,} bytes")


def chosen(rows: Iterable[Row]) -> list[Row]:
    """Take some functions of each package, by their hashes: neither by size nor by name."""
    by_package: dict[str, list[Row]] = {}
    for row in rows:
        if row.kind == "csmith" or row.license in LICENSES:
            by_package.setdefault(row.package, []).append(row)
    return [row for some in by_package.values() for row in sorted(some, key=lambda r: r.identity)[:EACH]]


def copyright_of(folder: Path, package: str) -> str:
    """Read what a package says of its copyright."""
    return (folder / "sources" / f"debian-{package}" / "tree" / "debian" / "copyright").read_text()


def write(rows: Iterable[Row], path: Path) -> None:
    """Write JSON lines, compressed; the same rows give the same bytes."""
    lines: Iterable[Mapping[str, object]] = map(asdict, rows)
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
