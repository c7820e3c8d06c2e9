"""Five programs made faster where they spend their time, beside what -O3 makes of them.

    python experiments/clock/programs.py [--seconds 40] [--only bzip2,lua5.4] [--processor native]

Fetches Debian's sources into build/clock, where all else happens too; needs clang, llvm-link and dpkg-dev.
Each program's files are compiled as clang -O3 does before its passes, and linked to one module: so the
baseline is -O3 on the whole program, which inlines across files. Inputs are made here.
"""

from __future__ import annotations

import argparse
import math
import random
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from telling import HEAD, tuned

from planish.core import PlanishError, cache_folder
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.source import compiler_of, flag_of
from planish.train.corpus.programs import open_apt

ROOT = Path("build/clock").absolute()
LZ4 = r"""
#include <stdio.h>
#include <stdlib.h>
#include "lz4.h"
#include "lz4hc.h"
static char text[1 << 22], packed[LZ4_COMPRESSBOUND(1 << 22)], again[1 << 22];
int main(int count, char **words) {
  int rounds = count > 1 ? atoi(words[1]) : 1, size = fread(text, 1, sizeof text, stdin), sum = 0;
  for (int i = 0; i < rounds; i++) {
    int bytes = i % 4 ? LZ4_compress_default(text, packed, size, sizeof packed)
                      : LZ4_compress_HC(text, packed, size, sizeof packed, 4);
    sum = sum * 31 + bytes + LZ4_decompress_safe(packed, again, bytes, sizeof again);
    for (int at = 0; at < size; at += 997) sum = sum * 31 + again[at];
  }
  printf("%d\n", sum);
  return 0;
}
"""
CJSON = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cJSON.h"
static char text[1 << 20];
int main(int count, char **words) {
  int rounds = count > 1 ? atoi(words[1]) : 1;
  text[fread(text, 1, sizeof text - 1, stdin)] = 0;
  size_t sum = 0;
  for (int i = 0; i < rounds; i++) {
    cJSON *read = cJSON_Parse(text);
    char *said = i % 2 ? cJSON_Print(read) : cJSON_PrintUnformatted(read);
    sum = sum * 31 + strlen(said);
    free(said);
    cJSON_Delete(read);
  }
  printf("%zu\n", sum);
  return 0;
}
"""
SCRIPT = r"""
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local t = {}
for i = 1, 60000 do t[i] = (i * 7919) % 100003 end
table.sort(t)
local words = {}
for i = 1, 20000 do words[#words + 1] = ("w%d"):format(t[i] % 977):upper() end
local text, count = table.concat(words, " "), 0
for w in text:gmatch("%a%d+") do count = count + #w end
local m = {}
for i = 1, 200000 do local k = i % 511 m[k] = (m[k] or 0) + i * 0.5 end
print(fib(24), t[1], t[30000], count, m[7], #text)
"""


LUA = {"src/lua5.4-deb-multiarch.h": '#define DEB_HOST_MULTIARCH "none"\n'}


@dataclass(frozen=True)
class Program:
    """A program.

    Args:
        package: Debian's source package.
        files: its sources, as patterns in its folder; those with "!" are left out.
        run: how it is run, with the names of inputs.
        made: files that are added, by name.
        flags: for the compiler.
    """

    package: str
    files: str
    run: str
    made: Mapping[str, str] = field(default_factory=dict[str, str])
    flags: str = ""


PROGRAMS = (
    Program(
        "bzip2",
        "blocksort.c huffman.c crctable.c randtable.c compress.c decompress.c bzlib.c bzip2.c",
        "./bzip2 -9 < {text}",
        flags="-D_FILE_OFFSET_BITS=64",
    ),
    Program(
        "zlib",
        "*.c test/minigzip.c",
        "./minigzip -9 < {text}",
        flags="-I. -DHAVE_UNISTD_H -DHAVE_STDARG_H",
    ),
    Program("lua5.4", "src/*.c !src/luac.c", "./lua - < {script}", LUA, "-DLUA_USE_POSIX"),
    Program("cjson", "cJSON.c planish_main.c", "./cjson 60 < {json}", {"planish_main.c": CJSON}, "-I."),
    Program(
        "lz4",
        "lib/lz4.c lib/lz4hc.c planish_main.c",
        "./lz4 12 < {text}",
        {"planish_main.c": LZ4},
        "-Ilib",
    ),
)


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--seconds", type=float, default=40.0, help="of search for each program")
    given.add_argument("--only", default="", help="names of packages, with commas")
    given.add_argument("--processor", default="native")
    asked = given.parse_args()
    print(HEAD)
    gains: list[float] = []
    inputs = made_inputs()
    for program in PROGRAMS:
        if asked.only and program.package not in asked.only.split(","):
            continue
        try:
            module = linked(program, asked.processor)
        except (PlanishError, OSError, subprocess.CalledProcessError) as error:
            print(f"| {program.package} | | | | cannot be built: {error} | | |", flush=True)
            continue
        options = {"run": program.run.format(**inputs)}
        gains += tuned(program.package, module, asked.seconds, options)
    if gains:
        mean = math.exp(sum(map(math.log, gains)) / len(gains))
        print(f"| geometric mean of {len(gains)} | | {mean:.3f} | | | | |")


def made_inputs() -> Mapping[str, Path]:
    """Write the inputs: words that come again as in a text, a script, and a document."""
    ROOT.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    known = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(3000)]
    words = [known[min(int(rng.expovariate(0.004)), 2999)] for _ in range(250_000)]
    text = " ".join(words)
    rows = (f'{{"id":{i},"{words[i]}":[{i / 7:.4f},"{words[i + 1]}",null,true]}}' for i in range(4000))
    found = {"text": text, "small": text[:60_000], "script": SCRIPT, "json": f"[{','.join(rows)}]"}
    for name, content in found.items():
        (ROOT / name).write_text(content)
    return {name: ROOT / name for name in found}


def linked(program: Program, processor: str) -> Path:
    """Compile a program's files, and link them to one module."""
    compiler = compiler_of(open_bindings())
    folder = ROOT / program.package
    tree = folder / "tree"
    if not tree.exists():
        folder.mkdir(parents=True, exist_ok=True)
        open_apt(cache_folder("apt")).unpack(program.package, folder)
    for name, text in program.made.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    flags = ["-O3", flag_of(processor, compiler), "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", "-w"]
    objects: list[str] = []
    for path in _files(program, tree):
        objects.append(str(folder / f"{path.stem}.bc"))
        command = [*compiler.command, *flags, *program.flags.split(), str(path), "-o", objects[-1]]
        subprocess.run(command, check=True, cwd=tree)
    module = folder / f"{program.package}.bc"
    major = open_bindings().version.partition(".")[0]
    subprocess.run([f"/usr/lib/llvm-{major}/bin/llvm-link", *objects, "-o", str(module)], check=True)
    return module


def _files(program: Program, tree: Path) -> list[Path]:
    words = program.files.split()
    without = {tree / word[1:] for word in words if word.startswith("!")}
    found = [path for word in words if not word.startswith("!") for path in sorted(tree.glob(word))]
    return [path for path in found if path not in without]


if __name__ == "__main__":
    main()
