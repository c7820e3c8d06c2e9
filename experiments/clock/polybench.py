"""PolyBench's kernels, tuned for the time beside clang -O3, both for this processor.

    python experiments/clock/polybench.py DIR [--seconds 15] [--size MEDIUM] [--only 2mm,gemm]
        [--processor native]

DIR holds PolyBench/C 4.2 as published, which is no part of this repository. Each kernel and PolyBench's own
code become one file. Instead of being printed, a kernel's results are added up and the sum is printed, so
that answers are compared and printing takes no time. What the table tells are the comparisons at the ends
of the runs: winner and -O3 measured alternately, in fresh processes.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from telling import HEAD, tuned

from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.source import compiler_of, flag_of

_PROGRAM = """\
#define POLYBENCH_DUMP_ARRAYS
#include <polybench.h>
#include <stdio.h>
static double planish_sum;
static void planish_add(double value) {{ planish_sum = planish_sum * 0.75 + value; }}
static void planish_skip(const char *text) {{ (void)text; }}
#define fprintf(stream, ...) \\
  _Generic((__VA_ARGS__), char *: planish_skip, const char *: planish_skip, default: planish_add) \\
  ((__VA_ARGS__))
#define main kernel_main
#include "{kernel}"
#undef main
#undef fprintf
#include "{library}"
int main(int count, char **words) {{
  int code = kernel_main(count, words);
  printf("%.9g\\n", planish_sum);
  return code;
}}
"""


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("folder", type=Path)
    given.add_argument("--seconds", type=float, default=15.0, help="of search for each program")
    given.add_argument("--size", default="MEDIUM")
    given.add_argument("--only", default="", help="names of kernels, with commas")
    given.add_argument("--processor", default="native")
    asked = given.parse_args()
    print(HEAD)
    gains: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        for kernel in kernels(asked.folder):
            if asked.only and kernel.stem not in asked.only.split(","):
                continue
            source = one_file(asked.folder, kernel, asked.size, asked.processor, Path(name))
            gains += tuned(kernel.stem, source, asked.seconds, {"processor": asked.processor})
    if gains:
        mean = math.exp(sum(map(math.log, gains)) / len(gains))
        print(f"| geometric mean of {len(gains)} | | {mean:.3f} | | | | |")


def kernels(folder: Path) -> Iterator[Path]:
    """List the kernels in PolyBench's order."""
    for line in (folder / "utilities" / "benchmark_list").read_text().split():
        yield folder / line


def one_file(folder: Path, kernel: Path, size: str, processor: str, place: Path) -> Path:
    """Put a kernel and PolyBench's code into one file without includes."""
    compiler = compiler_of(open_bindings())
    utilities = (folder / "utilities").resolve()
    text = _PROGRAM.format(kernel=kernel.resolve(), library=utilities / "polybench.c")
    flags = [
        flag_of(processor, compiler),
        f"-I{utilities}",
        f"-I{kernel.resolve().parent}",
        f"-D{size}_DATASET",
    ]
    made = subprocess.run(
        [*compiler.command, "-E", "-P", *flags, "-x", "c", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    path = place / f"{kernel.stem}.c"
    path.write_text(made.stdout)
    return path


if __name__ == "__main__":
    main()
