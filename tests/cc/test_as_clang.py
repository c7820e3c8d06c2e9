"""Whatever clang does with a command line, `planish cc` does: exit code, output, messages, files."""

import shutil
from pathlib import Path

import pytest

from cc.conftest import CXX, EXPECTED, SMALLER, Place
from planish.levels.llvm.backend.elf import code_bytes
from store.mounts import write_protected

PLUS = "#include <string>\n#include <cstdio>\nint main() { puts(std::string(3, 'x').c_str()); }\n"


def compare(place: Place, *words: str, given: str = "") -> None:
    """Do the same twice; objects may differ, and be no larger."""
    before = set(place.files())
    expected, made = place.as_clang(*words, given=given), place.files()
    for name in set(made) - before:
        (place.folder / name).unlink()
    done, found = place.cc(*words, given=given), place.files()
    assert (done.returncode, done.stdout, done.stderr) == (
        expected.returncode,
        expected.stdout,
        expected.stderr,
    )
    assert set(found) == set(made)
    for name in set(made) - before:
        if made[name].startswith(b"\x7fELF"):
            assert code_bytes(found[name]) <= code_bytes(made[name])
        else:
            assert found[name] == made[name]


@pytest.mark.parametrize(
    "line",
    [
        "--version",
        "-print-search-dirs",
        "-dumpmachine",
        "",
        "-Oz",
        "-Oz -c missing.c",
        "-Oz --nonsense -c mixed.c",
        "-E -Oz -DX=1 main.c",
        "-Oz -S mixed.c -o -",
        "-Oz -S -emit-llvm mixed.c -o out.ll",
        "-Oz -fsyntax-only -Wall mixed.c",
        "-M main.c",
        "-O2 -c mixed.c",
        "-Oz -c -flto=thin mixed.c",
        "-Oz -c asm.s -o asm.o",
        "-Oz -c mixed.c main.c -o both.o",
        "-Oz -Wall -c mixed.c wrong.c main.c",
        "-Oz -Wall mixed.c wrong.c main.c",
    ],
)
def test_it_is_clangs_result(place: Place, line: str) -> None:
    place.write("asm.s", ".globl f\nf: ret\n")
    place.write("wrong.c", "int f( {\n")
    compare(place, *line.split())


@pytest.mark.parametrize(
    "line",
    [
        "-Oz -c mixed.c",
        "-Oz -c mixed.c main.c",
        "-Os -Wall -std=c99 -g -c -o out/x.o -MD mixed.c",
        "-Oz -c -o out/x.o -MMD -MF out/deps.mk -MP -MT name -MT other main.c",
        "-Oz -ffunction-sections -fPIC -c -x c text.txt -o text.o",
        "-Oz -Wall -c warns.c",
        "--target=armv7m-none-eabi -mcpu=cortex-m4 -Oz -ffreestanding -c mixed.c",
        "-Oz @words",
        "-Oz -Wp,-MD,out/x.d -c -o out/x.o main.c",
        "-Os -Wp,-MMD,x.d -MT name -c main.c",
    ],
)
def test_objects_are_no_larger_and_all_else_is_the_same(place: Place, line: str) -> None:
    (place.folder / "out").mkdir()
    place.write("text.txt", SMALLER)
    place.write("warns.c", "int f(void) { int unused; char c = 300; return c; }\n")
    place.write("words", "-c 'mixed.c'\n -o \"a b.o\"")
    compare(place, *line.split())
    # What is known by now is the same again, with the same messages and dependencies.
    for made in place.folder.glob("**/*.[od]"):
        made.unlink()
    compare(place, *line.split())


def test_bad_sources_have_clangs_messages_and_exit_code(place: Place) -> None:
    place.write("bad.c", "int f( { return undeclared; }\n#include <not/there.h>\n")
    compare(place, "-Oz", "-c", "bad.c")
    compare(place, "-Oz", "-c", "mixed.c", "bad.c")
    compare(place, "-Oz", "bad.c", "main.c", "-o", "program")


def test_a_source_may_come_by_standard_input(place: Place) -> None:
    compare(place, "-Oz", "-c", "-x", "c", "-", "-o", "x.o", given=SMALLER)


def test_response_files_may_have_options_of_planishs(place: Place) -> None:
    place.write("inner", "--planish-report")
    place.write("words", "-Oz -c mixed.c @inner")
    done = place.cc("@words")
    assert done.returncode == 0
    assert done.stderr.startswith("planish: mixed.c: ")
    asked = place.cc("@inner", "-E", "mixed.c")
    assert (asked.returncode, asked.stderr) == (0, "")


def test_an_object_may_go_to_standard_output(place: Place) -> None:
    done = place.cc("-Oz", "-c", "mixed.c", "-o", "-")
    assert done.stdout.startswith("\x7fELF")


def test_programs_are_linked(place: Place) -> None:
    place.write("asm.s", '.globl answer\nanswer: ret\n.section .note.GNU-stack,"",@progbits\n')
    done = place.cc("-Oz", "mixed.c", "main.c", "asm.s", "-o", "program", "-lm", "-Wl,--as-needed")
    assert (done.returncode, done.stderr) == (0, "")
    assert place.run(["./program"]).stdout == EXPECTED
    assert set(place.files()) == {"mixed.c", "main.c", "asm.s", "program"}


def test_a_link_that_fails_says_what_clang_says(place: Place) -> None:
    compare(place, "-Oz", "-c", "main.c", "-o", "main.o")
    expected, done = place.as_clang("main.o", "-o", "p"), place.cc("-Oz", "main.o", "-o", "p")
    assert (done.returncode, done.stderr) == (expected.returncode, expected.stderr)


def test_names_may_have_spaces_and_be_in_any_script(place: Place) -> None:
    folder = place.folder / "with space" / "ünïcode 源"
    folder.mkdir(parents=True)
    shutil.copy(place.folder / "mixed.c", folder / "a b é.c")
    name = "with space/ünïcode 源/a b é"
    compare(place, "-Oz", "-MD", "-c", f"{name}.c", "-o", f"{name}.o")
    assert place.cc("-Oz", f"{name}.c", "main.c", "-o", "with space/prógram").returncode == 0
    assert place.run(["with space/prógram"]).stdout == EXPECTED


def test_builds_out_of_the_tree_leave_it_alone(place: Place, tmp_path: Path) -> None:
    before = place.files()
    place.folder.chmod(0o555)
    elsewhere = Place(tmp_path / "elsewhere", place.clang)
    elsewhere.folder.mkdir()
    done = elsewhere.cc("-Oz", "-MD", "-c", f"{place.folder}/mixed.c")
    assert (done.returncode, done.stderr) == (0, "")
    assert set(elsewhere.files()) == {"mixed.o", "mixed.d"}
    assert place.files() == before


def test_a_source_tree_that_is_read_only_is_built_elsewhere(place: Place, tmp_path: Path) -> None:
    elsewhere = Place(tmp_path / "elsewhere", place.clang)
    elsewhere.folder.mkdir()
    with write_protected(place.folder):
        done = elsewhere.cc("-Oz", "-MD", "-c", f"{place.folder}/mixed.c")
        assert (done.returncode, done.stderr) == (0, "")
        assert set(elsewhere.files()) == {"mixed.o", "mixed.d"}
        inside, expected = place.cc("-Oz", "-c", "mixed.c"), place.as_clang("-Oz", "-c", "mixed.c")
        assert inside.returncode == expected.returncode == 1
        assert "unable to open output file" in inside.stderr


def test_clang_may_have_spaces_in_its_path_and_arguments(place: Place, tmp_path: Path) -> None:
    spaced = tmp_path / "my clang"
    spaced.symlink_to(place.clang.path)
    for named in (str(spaced), f"{place.clang.path} -DANSWER=42"):
        done = place.cc("-Oz", "-c", "mixed.c", PLANISH_CLANG=named)
        assert (done.returncode, done.stderr) == (0, "")
        asked = place.cc("-dM", "-E", "mixed.c", PLANISH_CLANG=named)
        assert ("ANSWER 42" in asked.stdout) == ("ANSWER" in named)


def test_c_plus_plus_is_compiled_and_linked(place: Place) -> None:
    place.write("main.cpp", PLUS)
    done = place.run([*CXX, "-Oz", "main.cpp", "-o", "program"])
    assert (done.returncode, done.stderr) == (0, "")
    assert place.run(["./program"]).stdout == "xxx\n"
