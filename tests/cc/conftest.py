"""Command lines of clang, tried with clang and with `planish cc`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from planish.cc.clang import Compiler, find_compiler
from planish.levels.llvm.bindings.elf import code_bytes
from prepared_workers import Command, PreparedWorkers

WORDS = Path(__file__).parents[2] / "examples" / "llvm" / "words.c"
APPLY_LOCK = Path(__file__).parents[2] / "examples" / "llvm" / "apply_lock.py"
CC = [sys.executable, "-c", "from planish.cc.command import cc; cc()"]
CXX = [sys.executable, "-c", "from planish.cc.command import cxx; cxx()"]
SMALLER = """
int state[16];
static int step(int a, int b) { return a * 31 + b; }
int mixed(const unsigned char *s, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        if (s[i] == 'a' || s[i] == 'e') sum = step(sum, s[i]) + state[i & 15];
        else if (s[i] == 'i' || s[i] == 'o') sum = step(sum, s[i] + 1) + state[i & 15];
        else { state[i & 15] = sum; sum ^= s[i]; }
    }
    return sum;
}
int chosen(int k, int *out) {
    switch (k) {
    case 0: out[0] = 1; out[1] = 7; return 3;
    case 1: out[0] = 2; out[1] = 7; return 3;
    case 2: out[0] = 3; out[1] = 7; return 3;
    default: out[1] = 7; return 4;
    }
}
"""
MAIN = """
#include <stdio.h>
int mixed(const unsigned char *, int);
int main(void) { printf("%d\\n", mixed((const unsigned char *)"iaeou", 5)); return 0; }
"""
REPEATED = """
#include <stdio.h>
#define BODY(n) __attribute__((noinline)) void f##n(int *t, int x) { t[x] = n; \\
    t[1] = 71; t[5] = 72; t[11] = 73; t[17] = 74; t[23] = 75; t[31] = 76; t[40] = x; \\
    t[41] = 77; t[47] = 78; t[53] = 79; t[61] = 80; t[67] = 81; t[71] = 82; t[20] = x; }
BODY(2) BODY(3) BODY(4) BODY(6) BODY(7) BODY(8)
int table[99], *volatile where = table;
int main(int n, char **v) {
    int sum = 0, *t = where;
    f2(t, n); f3(t, n); f4(t, n); f6(t, n); f7(t, n); f8(t, n);
    for (int i = 0; i < 99; i++) sum = sum * 31 + t[i];
    return printf("%d\\n", sum) < 0;
}
"""
EXPECTED = "3254359\n"


@pytest.fixture(scope="session")
def clang() -> Compiler:
    found = find_compiler(plus=False)
    if found is None:
        pytest.fail("no clang") if os.environ.get("CI") else pytest.skip("no clang is here")
    return found


class Place:
    """A folder with sources, a cache of its own, and how both compilers are run in it."""

    def __init__(self, folder: Path, clang: Compiler, prepared: PreparedWorkers) -> None:
        self.folder, self.clang, self.prepared = folder, clang, prepared
        self.cache = folder.parent / "cache"
        self.environment = {
            **os.environ,
            "PLANISH_CACHE": str(self.cache),
            "PLANISH_SECONDS": "0.1",
            "PYTHONWARNINGS": "error",
            "LC_ALL": "C.UTF-8",
        }
        self.environment.pop("PLANISH_CLANG", None)

    def write(self, name: str, text: str) -> Path:
        """Write a file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(self, command: Sequence[str], given: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        """Run a program in the folder."""
        return subprocess.run(
            command,
            cwd=self.folder,
            input=given,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            env={**self.environment, **more},
            check=False,
        )

    def cc(self, *words: str, given: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        """Run `planish cc`, which finds its modules loaded where the system allows it."""
        if sys.platform != "linux":
            return self.run([*CC, *words], given, **more)
        command = Command({**self.environment, **more}, str(self.folder), words, plus=False)
        code, *texts = self.prepared.run(command, os.fsencode(given))
        output, messages = (os.fsdecode(text).replace("\r\n", "\n") for text in texts)
        return subprocess.CompletedProcess(words, code, output, messages)

    def as_clang(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run clang."""
        return self.run([*self.clang.command, *words], given)

    def wrap_clang(self, before: str = "") -> None:
        """Have a script in place of clang, which starts it after a line of its own."""
        script = self.folder.parent / "clang"
        script.write_text(f'#!/bin/sh\n{before}\nexec {shlex.join(self.clang.command)} "$@"\n')
        script.chmod(0o755)
        self.environment["PLANISH_CLANG"] = str(script)

    def files(self) -> dict[str, bytes]:
        """Return every file with its content."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def place(tmp_path: Path, clang: Compiler, prepared_workers: PreparedWorkers) -> Place:
    folder = tmp_path / "work"
    folder.mkdir()
    found = Place(folder, clang, prepared_workers)
    found.write("mixed.c", SMALLER)
    found.write("main.c", MAIN)
    return found


@pytest.fixture
def words(place: Place) -> Place:
    """Have a source that can be made smaller."""
    place.write("words.c", WORDS.read_text())
    return place


def text(path: Path) -> int:
    """Return the bytes of an object's code."""
    return code_bytes(path.read_bytes())


def compile_unoptimized(place: Place, *names: str) -> None:
    """Compile sources as `apply_lock.py` needs the objects of a program."""
    for name in names:
        words = ("-Oz", "-flto", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", f"{name}.c")
        assert place.as_clang(*words, "-o", f"{name}.o").returncode == 0


def repeat_without_planish(place: Place, source: str, *words: str) -> None:
    """Make the object `alone` of a source, or a program, from the lock file by clang and opt."""
    if shutil.which("opt-22") is None or "clang-22" not in place.clang.path:
        pytest.skip("opt-22 and clang-22 are needed")
    script = [sys.executable, "-S", str(APPLY_LOCK), "planish.lock", source, "alone", "-Oz", *words]
    done = place.run(script)
    assert done.returncode == 0, done.stderr
