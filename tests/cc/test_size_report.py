"""What `planish size` shows of objects and programs."""

from __future__ import annotations

import json
import sys

import pytest

from cc.conftest import Place
from planish.levels.llvm.bindings.elf import function_bytes, loaded_bytes

SIZE = [sys.executable, "-c", "from planish.cli.script import main; main()", "size"]


@pytest.fixture
def built(words: Place) -> Place:
    words.as_clang("-Oz", "-c", "words.c", "-o", "small.o")
    words.as_clang("-O2", "-c", "words.c", "-o", "fast.o")
    texts = ", ".join(f'"{number}"' for number in range(40))
    words.write("table.c", f"const char *const texts[] = {{{texts}}};\n")
    words.as_clang("-Oz", "words.c", "table.c", "-o", "program")
    return words


def test_files_sections_and_functions_are_compared(built: Place) -> None:
    done = built.run([*SIZE, "small.o", "--before", "fast.o"])
    assert (done.returncode, done.stderr) == (0, "")
    files = built.files()
    small, fast = files["small.o"], files["fast.o"]
    assert f"small.o {loaded_bytes(fast):>10,} {loaded_bytes(small):>10,}" in done.stdout
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line}
    before, after = function_bytes(fast)["main"], function_bytes(small)["main"]
    assert rows["main"][:2] == [f"{before:,}", f"{after:,}"]
    assert ".text" in rows


def test_flags_that_are_free_are_named(built: Place) -> None:
    objects = built.run([*SIZE, "small.o"]).stdout
    assert "-ffunction-sections" in objects
    assert "-flto" in objects
    built.as_clang("-Oz", "-ffunction-sections", "-c", "words.c", "-o", "apart.o")
    assert "-ffunction-sections" not in built.run([*SIZE, "apart.o"]).stdout
    program = json.loads(built.run([*SIZE, "program", "--format", "json"]).stdout)
    flags = [each["flags"] for each in program["suggestions"]]
    assert "-flto -fuse-ld=lld -Wl,--gc-sections,--icf=all" in flags
    assert "-Wl,-z,pack-relative-relocs" in flags
    assert program["files"][0]["loaded"] == loaded_bytes(built.files()["program"])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("words.c",), "words.c is not an ELF file"),
        (("small.o", "--before", "fast.o", "--before", "fast.o"), "--before names 2"),
    ],
)
def test_what_cannot_be_measured_is_an_error(built: Place, given: tuple[str, ...], why: str) -> None:
    done = built.run([*SIZE, *given])
    assert (done.returncode != 0, done.stderr.count("\n"), why in done.stderr) == (True, 1, True), done.stderr
