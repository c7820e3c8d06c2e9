"""Programs built by `clang -Oz` and by `planish cc -Oz`, tested, and compared.

    python experiments/cc/build.py [--evaluations 100] [--only lua5.4 ...] [--jobs 1]
    python experiments/cc/build.py --lto [--evaluations 5000] [--only lua5.4 ...]
    python experiments/cc/build.py --seconds 2 [--rounds 3] [--jobs 2]

Fetches Debian's sources into build/cc, where all else happens too; needs clang, make, cmake, tclsh,
patch, dpkg-dev and libgmock-dev. Each program is built by clang and by planish cc, and its own tests run
on what planish cc made. The table has the `.text` of what is linked, and all bytes that are loaded. The
budget of each file is a number of evaluations, so a busy machine does not change the table, and an
interrupted search is continued.

With --lto, whole programs are built, without unused and equal code, by `gcc -Os`, too. What counts is all
that is loaded (--planish-objective flash), and the budget is that of a program.

With --seconds, the budget of each file is processor time, and the table has seconds of the processor, too:
planish cc builds with an empty cache (first), then clang and planish cc build again, alternately (second).
`By the clock` is what the second build takes over clang's, with --jobs of make at once.

Each row is stored as JSON in build/cc/rows-BUDGET.jsonl: a program that has a row there is not built again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import TypeVar

from programs import PROGRAMS, Program

from planish.core import cache_folder
from planish.levels.llvm.bindings.elf import code_bytes, loaded_bytes
from planish.train.corpus.programs import open_apt

ROOT = Path("build/cc").absolute()
BIN = Path(sys.executable).parent
BY_FILE = (
    *("lua5.4", "zlib", "bzip2", "cjson", "sqlite3", "redis", "libjsoncpp", "pugixml", "lz4", "fribidi"),
)
"""Programs that are built without --lto where none is named."""
_LTO = "-flto -fuse-ld=lld -Wl,--gc-sections,--icf=all -Qunused-arguments"
_GCC_LTO = "-flto=1 -ffunction-sections -fdata-sections -Wl,--gc-sections"


@dataclass(frozen=True)
class Built:
    """What a build took and gave: seconds by the clock and of the processor, `.text`, and loaded bytes."""

    wall_s: float
    cpu_s: float
    text: int
    loaded: int


@dataclass(frozen=True)
class Budget:
    """What the search for a file (with --lto, a program) may take: seconds if given, else evaluations."""

    evaluations: int
    seconds: float | None
    lto: bool

    def __str__(self) -> str:
        spent = f"{self.seconds:g} s" if self.seconds else f"{self.evaluations:,} evaluations"
        return f"{spent} a {'program' if self.lto else 'file'}"


@dataclass(frozen=True)
class Row:
    """A program's row."""

    title: str
    clang: int
    planish: int
    sources: int
    clang_s: float
    first_s: float
    second_s: float
    first_wall_s: float
    clang_wall_s: float
    second_wall_s: float
    tests: str


@dataclass(frozen=True)
class SizeRow:
    """The row of a program without times: `.text` and loaded bytes by each compiler."""

    title: str
    sizes: dict[str, tuple[int, int]]
    tests: str


_AnyRow = TypeVar("_AnyRow", Row, SizeRow)


class Bench:
    """Builds one program by different compilers."""

    def __init__(self, program: Program, budget: Budget, jobs: int) -> None:
        self.program, self.jobs, self.lto = program, jobs, budget.lto
        self.cache = ROOT / f"cache-{budget}" / program.name
        self.environment = {
            **os.environ,
            "PLANISH_SECONDS": f"{budget.seconds:g}" if budget.seconds else "",
            "PLANISH_EVALUATIONS": "" if budget.seconds else str(budget.evaluations),
            "PLANISH_CACHE": str(self.cache),
            "MAKEFLAGS": f"-j{jobs}",
            "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs),
        }

    def row(self, rounds: int) -> Row:
        """Build alternately, test, and compare."""
        shutil.rmtree(self.cache, ignore_errors=True)
        self.build("clang")  # files of the system are read before anything is timed
        first = self.build("planish")
        pairs = [(self.build("clang"), self.build("planish")) for _ in range(rounds)]
        clang, second = zip(*pairs, strict=True)
        assert {built.text for built in second} == {first.text}, "what is known is something else"
        return Row(
            self.program.title,
            clang[0].text,
            first.text,
            sum(1 for _ in self.cache.glob("objects/*/*")),
            median(built.cpu_s for built in clang),
            first.cpu_s,
            median(built.cpu_s for built in second),
            first.wall_s,
            median(built.wall_s for built in clang),
            median(built.wall_s for built in second),
            self.tests(),
        )

    def size_row(self) -> SizeRow:
        """Build, test, and compare; an interrupted search is continued."""
        compilers = ("clang", "planish", "gcc") if self.lto else ("clang", "planish")
        built = {by: self.build(by) for by in compilers}
        sizes = {by: (each.text, each.loaded) for by, each in built.items()}
        return SizeRow(self.program.title, sizes, tests=self.tests())

    def build(self, by: str) -> Built:
        """Build from nothing."""
        tree = ROOT / "work" / self.program.name / by
        shutil.rmtree(tree, ignore_errors=True)
        tree.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(fetched(self.program), tree, symlinks=True)
        self.run(by, self.program.configure)
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        self.run(by, self.program.build)
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        products = [(tree / product).read_bytes() for product in self.program.products]
        return Built(wall, cpu, sum(map(code_bytes, products)), sum(map(loaded_bytes, products)))

    def tests(self) -> str:
        """Run the program's own tests on what planish built."""
        try:
            self.run("planish", self.program.test)
        except subprocess.CalledProcessError as error:
            return f"fail: {(error.stdout or '').strip().splitlines()[-1:]}"
        said = {self.run(by, self.program.says) for by in ("clang", "planish")}
        return "pass" if len(said) == 1 else "fail: it says something else than clang's"

    def run(self, by: str, line: str) -> str:
        """Run a line of shell in a build's folder; give what it says."""
        words = {
            "clang": {"cc": "clang-22", "cc1": "clang-22", "cxx": "clang++-22", "flags": "-Oz"},
            "planish": {
                "cc": str(BIN / "planish") + " cc",
                "cc1": str(BIN / "planish-cc"),
                "cxx": str(BIN / "planish-c++"),
                "flags": "-Oz",
            },
            "gcc": {"cc": "gcc", "cc1": "gcc", "cxx": "g++", "flags": "-Os"},
        }[by]
        if self.lto:
            more = _GCC_LTO if by == "gcc" else _LTO
            more += " --planish-objective=flash" if by == "planish" else ""
            # CMake takes one word for a compiler.
            words = {**words, "flags": f"{words['flags']} {more}"}
            words["cc"] += f" {more}"
        done = subprocess.run(
            line.format(**words),
            shell=True,
            cwd=ROOT / "work" / self.program.name / by,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        (ROOT / "log").mkdir(exist_ok=True)
        with (ROOT / "log" / f"{self.program.name}-{by}.txt").open("a") as log:
            log.write(f"$ {line.format(**words)}\n{done.stdout}\n")
        done.check_returncode()
        return done.stdout


def fetched(program: Program) -> Path:
    """Give the folder of a program's sources, downloaded once."""
    folder = ROOT / "sources" / program.name
    tree, ready = folder / "tree", folder / "ready"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        open_apt(cache_folder("apt")).unpack(program.name, folder)
        subprocess.run(program.prepare, shell=True, cwd=tree, check=True)
        ready.touch()
    return tree


def time_table(rows: list[Row], budget: Budget) -> str:
    """Write the table of sizes and times."""
    titles = (
        "sources | .text clang | planish | saved | clang s | first s | second s | second / clang "
        "| by the clock | tests |"
    )
    lines = [f"| {budget} | {titles}", "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"]
    lines += map(_line, rows)
    size = geometric_mean(row.planish / row.clang for row in rows)
    again = geometric_mean(row.second_s / row.clang_s for row in rows)
    clock = geometric_mean(row.second_wall_s / row.clang_wall_s for row in rows)
    lines.append(f"| geometric mean | | | | {100 * (1 - size):.2f} % | | | | {again:.2f} | {clock:.2f} | |")
    return "\n".join(lines)


def size_table(rows: list[SizeRow], budget: Budget) -> str:
    """Write the table of sizes."""
    compilers = list(rows[0].sizes)
    titles = [
        f".text {' | '.join(compilers)}",
        f"loaded {' | '.join(compilers)}",
        "text saved",
        "loaded saved",
    ]
    lines = [f"| {budget} | {' | '.join(titles)} | tests |", f"|---|{'--:|' * (2 * len(compilers) + 2)}---|"]
    for row in rows:
        sizes = [f"{row.sizes[by][kind]:,}" for kind in (0, 1) for by in compilers]
        saved = [f"{100 * (1 - _ratio(row, kind)):.2f} %" for kind in (0, 1)]
        lines.append(f"| {' | '.join([row.title, *sizes, *saved, row.tests])} |")
    means = [f"{100 * (1 - geometric_mean(_ratio(row, kind) for row in rows)):.2f} %" for kind in (0, 1)]
    lines.append(f"| geometric mean |{' |' * 2 * len(compilers)} {' | '.join(means)} | |")
    return "\n".join(lines)


def _ratio(row: SizeRow, kind: int) -> float:
    return row.sizes["planish"][kind] / row.sizes["clang"][kind]


def _line(row: Row) -> str:
    size, again = 100 * (1 - row.planish / row.clang), row.second_s / row.clang_s
    clock = row.second_wall_s / row.clang_wall_s
    return (
        f"| {row.title} | {row.sources} | {row.clang:,} | {row.planish:,} | {size:.2f} % | {row.clang_s:.1f} "
        f"| {row.first_s:.1f} | {row.second_s:.1f} | {again:.2f} | {clock:.2f} "
        f"| {row.tests} |"
    )


def _measure(
    kind: type[_AnyRow],
    budget: Budget,
    programs: Sequence[Program],
    measure: Callable[[Program], _AnyRow],
    write: Callable[[list[_AnyRow], Budget], str],
) -> None:
    """Measure the programs that have no row yet, and print the table of all."""
    ROOT.mkdir(parents=True, exist_ok=True)
    path = ROOT / f"rows-{budget}.jsonl"
    path.touch()
    rows = {row.title: row for line in path.read_text().splitlines() for row in [kind(**json.loads(line))]}
    for program in programs:
        if program.title not in rows:
            row = rows[program.title] = measure(program)
            with path.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
            print(write([row], budget), flush=True)
    print("\n" + write([rows[program.title] for program in programs], budget))


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--evaluations", type=int, help="budget of a file; with --lto, of a program")
    given.add_argument("--seconds", type=float, help="processor time for a file, in place of --evaluations")
    given.add_argument("--rounds", type=int, default=1)
    given.add_argument("--jobs", type=int, default=1)
    given.add_argument("--only", nargs="*")
    given.add_argument("--lto", action="store_true", help="build whole programs, and by gcc, too")
    asked = given.parse_args()
    budget = Budget(asked.evaluations or (5000 if asked.lto else 100), asked.seconds, asked.lto)
    names = asked.only or ([each.name for each in PROGRAMS] if asked.lto else BY_FILE)
    programs = [program for program in PROGRAMS if program.name in names]
    if asked.seconds:
        _measure(
            Row, budget, programs, lambda each: Bench(each, budget, asked.jobs).row(asked.rounds), time_table
        )
    else:
        _measure(
            SizeRow, budget, programs, lambda each: Bench(each, budget, asked.jobs).size_row(), size_table
        )


if __name__ == "__main__":
    main()
