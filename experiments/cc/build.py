"""Programs built by `clang -Oz` and by `planish cc -Oz`, tested, and compared.

    python experiments/cc/build.py [--evaluations 100] [--rounds 1] [--only lua5.4 ...] [--jobs 1]
    python experiments/cc/build.py --seconds 2 --rounds 3 --jobs 2
    python experiments/cc/build.py --lto [--evaluations 5000] [--only lua5.4 ...]

Fetches Debian's sources into build/cc, where all else happens too; needs clang, make, cmake, tclsh, patch
and dpkg-dev. For each program: clang builds it; planish cc builds it with an empty cache (first); both build
it again, alternately (second). The table has the `.text` of what is linked, and seconds of the processor; `by
the clock` is what the second build takes over clang's, with --jobs of make at once. The tests are the
programs' own, and run on what the second build made. The budget of each file is a number of evaluations, so a
busy machine changes the times alone, or, with --seconds, processor time. The table goes to standard output,
and each row, as JSON, to build/cc/rows-BUDGET.jsonl: a program that has a row there is not built again.

With --lto, whole programs are built, without unused and equal code, by `clang -Oz`, by `planish cc -Oz` and
by `gcc -Os`. What counts is all that is loaded (--planish-objective flash), and the table has no times.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from programs import PROGRAMS, Program

from planish.core import cache_folder
from planish.levels.llvm.bindings.elf import code_bytes, loaded_bytes
from planish.train.corpus.programs import open_apt

ROOT = Path("build/cc").absolute()
BIN = Path(sys.executable).parent
BY_FILE = ("lua5.4", "zlib", "bzip2", "cjson", "sqlite3", "redis", "libjsoncpp", "pugixml")
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
    seconds: float | None = None

    def __str__(self) -> str:
        return f"{self.seconds:g} s" if self.seconds else f"{self.evaluations:,} evaluations"


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
class WholeRow:
    """The row of a program with --lto: `.text` and loaded bytes by each compiler."""

    title: str
    clang: tuple[int, int]
    planish: tuple[int, int]
    gcc: tuple[int, int]
    tests: str


class Bench:
    """Builds one program by different compilers."""

    def __init__(self, program: Program, budget: Budget, jobs: int, *, lto: bool) -> None:
        self.program, self.jobs, self.lto = program, jobs, lto
        self.cache = ROOT / f"cache-{budget}{' lto' if lto else ''}" / program.name
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

    def whole_row(self) -> WholeRow:
        """Build whole programs by three compilers, test, and compare; an interrupted search is continued."""
        clang, planish, gcc = (self.build(by) for by in ("clang", "planish", "gcc"))
        sizes = ((each.text, each.loaded) for each in (clang, planish, gcc))
        return WholeRow(self.program.title, *sizes, tests=self.tests())

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


def table(rows: list[Row], budget: Budget) -> str:
    """Write the table of the results page."""
    titles = (
        "sources | .text clang | planish | saved | clang s | first s | second s | second / clang "
        "| by the clock | tests |"
    )
    lines = [f"| {budget} a file | {titles}", "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"]
    lines += map(_line, rows)
    size = math.exp(sum(math.log(row.planish / row.clang) for row in rows) / len(rows))
    again = math.exp(sum(math.log(row.second_s / row.clang_s) for row in rows) / len(rows))
    clock = math.exp(sum(math.log(row.second_wall_s / row.clang_wall_s) for row in rows) / len(rows))
    lines.append(f"| geometric mean | | | | {100 * (1 - size):.2f} % | | | | {again:.2f} | {clock:.2f} | |")
    return "\n".join(lines)


def whole_table(rows: list[WholeRow], budget: Budget) -> str:
    """Write the table of whole programs."""
    titles = ".text clang | planish | gcc | loaded clang | planish | gcc | text saved | loaded saved | tests"
    lines = [
        f"| {budget} a program | {titles} |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        sizes = [each[kind] for kind in (0, 1) for each in (row.clang, row.planish, row.gcc)]
        saved = [f"{100 * (1 - row.planish[kind] / row.clang[kind]):.2f} %" for kind in (0, 1)]
        lines.append(f"| {' | '.join([row.title, *(f'{size:,}' for size in sizes), *saved, row.tests])} |")
    means = [
        math.exp(sum(math.log(row.planish[kind] / row.clang[kind]) for row in rows) / len(rows))
        for kind in (0, 1)
    ]
    lines.append(
        f"| geometric mean | | | | | | | {' | '.join(f'{100 * (1 - mean):.2f} %' for mean in means)} | |"
    )
    return "\n".join(lines)


def _line(row: Row) -> str:
    size, again = 100 * (1 - row.planish / row.clang), row.second_s / row.clang_s
    clock = row.second_wall_s / row.clang_wall_s
    return (
        f"| {row.title} | {row.sources} | {row.clang:,} | {row.planish:,} | {size:.2f} % | {row.clang_s:.1f} "
        f"| {row.first_s:.1f} | {row.second_s:.1f} | {again:.2f} | {clock:.2f} "
        f"| {row.tests} |"
    )


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--evaluations", type=int, help="budget of a file; with --lto, of a program")
    given.add_argument("--seconds", type=float, help="processor time for a file, in place of --evaluations")
    given.add_argument("--rounds", type=int, default=1)
    given.add_argument("--jobs", type=int, default=1)
    given.add_argument("--only", nargs="*")
    given.add_argument("--lto", action="store_true", help="build whole programs, and by gcc, too")
    asked = given.parse_args()
    budget = Budget(asked.evaluations or (5000 if asked.lto else 100), asked.seconds)
    names = asked.only or ([each.name for each in PROGRAMS] if asked.lto else BY_FILE)
    programs = [program for program in PROGRAMS if program.name in names]
    benches = [Bench(program, budget, asked.jobs, lto=asked.lto) for program in programs]
    if asked.lto:
        whole: list[WholeRow] = []
        for bench in benches:
            whole.append(bench.whole_row())
            print(whole_table(whole[-1:], budget), flush=True)
        print("\n" + whole_table(whole, budget))
        return
    ROOT.mkdir(parents=True, exist_ok=True)
    path = ROOT / f"rows-{budget}.jsonl"
    path.touch()
    rows = {row.title: row for line in path.read_text().splitlines() for row in [Row(**json.loads(line))]}
    for bench in benches:
        if bench.program.title not in rows:
            row = rows[bench.program.title] = bench.row(asked.rounds)
            with path.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
            print(table([row], budget), flush=True)
    print("\n" + table([rows[bench.program.title] for bench in benches], budget))


if __name__ == "__main__":
    main()
