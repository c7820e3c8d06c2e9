"""Builds with `planish cc` in place of clang: the same answers, and never broken by its failures."""

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from cc.conftest import CC, CXX, EXPECTED, SMALLER, Place, text
from planish.cc import driver
from planish.cc.command import main
from planish.levels.llvm.bindings.elf import code_bytes
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
        "-Oz -c -flto=full mixed.c",
        "-Oz -c asm.s -o asm.o",
        "-Oz -c mixed.c main.c -o both.o",
        "-Oz -c wrong.c",
        "-Oz -Wall -c mixed.c wrong.c main.c",
        "-Oz -Wall mixed.c wrong.c main.c",
    ],
)
def test_it_is_clangs_result(place: Place, line: str) -> None:
    place.write("asm.s", ".globl f\nf: ret\n")
    place.write("wrong.c", "int f( { return undeclared; }\n#include <not/there.h>\n")
    compare(place, *line.split())


@pytest.mark.slow(after=5)
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


def test_a_source_tree_that_is_read_only_is_built_elsewhere(place: Place, tmp_path: Path) -> None:
    elsewhere = Place(tmp_path / "elsewhere", place.clang, place.prepared)
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


SCRIPTS = Path(sys.executable).parent
SAYS = """
#include <cstdio>
extern "C" int mixed(const unsigned char *, int);
extern "C" int answer(void);
int main() { std::printf("%d\\n", mixed((const unsigned char *)"iaeou", answer())); }
"""
ANSWER = '.globl answer\nanswer: movl $5, %eax\n ret\n.section .note.GNU-stack,"",@progbits\n'
CMAKE = """
cmake_minimum_required(VERSION 3.13)
project(trial C CXX ASM)
add_library(mixed STATIC mixed.c answer.S)
add_executable(says says.cpp)
target_link_libraries(says mixed)
"""
MAKEFILE = """
program: mixed.o says.o answer.o
\t$(CXX) $^ -o $@
%.o: $(SOURCES)/%.c
\t$(CC) $(CFLAGS) -MD -c '$<' -o $@
%.o: $(SOURCES)/%.cpp
\t$(CXX) $(CFLAGS) -c '$<' -o $@
%.o: $(SOURCES)/%.S
\t$(CC) -c '$<' -o $@
"""


WORDCOUNT = Path(__file__).parents[2] / "examples" / "wordcount"
WORDS_OF_TEXT = {"und": 27, "äpfel": 18, "birnen": 9}


@pytest.fixture
def sources(place: Place, tmp_path: Path) -> Path:
    """Have a tree that no user may write to, beside the folder that is built in, and our scripts on PATH."""
    if not (SCRIPTS / "planish-cc").exists():
        pytest.skip("planish is not installed")
    place.environment["PATH"] = f"{SCRIPTS}:{os.environ['PATH']}"
    tree = tmp_path / "the source 源 ü"
    tree.mkdir()
    written = {"mixed.c": SMALLER, "says.cpp": SAYS, "answer.S": ANSWER, "CMakeLists.txt": CMAKE}
    for name, content in written.items():
        (tree / name).write_text(content)
    tree.chmod(0o555)
    return tree


def test_cmake(place: Place, sources: Path) -> None:
    if shutil.which("cmake") is None or shutil.which("make") is None:
        pytest.skip("no cmake")
    compilers = ("-DCMAKE_C_COMPILER=planish-cc", "-DCMAKE_CXX_COMPILER=planish-c++")
    begun = place.run(["cmake", "-S", str(sources), *compilers, "-DCMAKE_BUILD_TYPE=MinSizeRel"])
    assert begun.returncode == 0, begun.stdout + begun.stderr
    assert "compiler identification is Clang" in begun.stdout
    built = place.run(["cmake", "--build", "."])
    assert built.returncode == 0, built.stdout + built.stderr
    assert "planish" not in built.stderr
    assert place.run(["./says"]).stdout == EXPECTED
    assert len(list(sources.iterdir())) == 4
    reported = place.run(["planish", "report", ".", "--format", "json"])
    assert {name for name in ("mixed.c", "says.cpp", "answer.S") if name in reported.stdout} == {
        *("mixed.c", "says.cpp")
    }


def test_make(place: Place, sources: Path) -> None:
    place.write("Makefile", MAKEFILE)
    (place.folder.parent / "sources").symlink_to(sources)  # make takes no spaces in what it depends on
    compilers = ("CC=planish cc", "CXX=planish c++")
    built = place.run(["make", "-j2", *compilers, "CFLAGS=-Oz", "SOURCES=../sources"])
    assert (built.returncode, built.stderr) == (0, "")
    assert place.run(["./program"]).stdout == EXPECTED
    place.as_clang("-Oz", "-c", "../sources/mixed.c", "-o", "clang.o")
    assert text(place.folder / "mixed.o") <= text(place.folder / "clang.o")
    assert "mixed.c" in (place.folder / "mixed.d").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("sources")  # for our scripts on PATH
def test_the_example_is_smaller_and_counts_the_words(place: Place) -> None:
    shutil.copytree(WORDCOUNT, place.folder, dirs_exist_ok=True)
    place.write("text", "Äpfel und Birnen, und ÄPFEL; und\n" * 9)
    sizes: list[int] = []
    for compiler in (shlex.join(place.clang.command), "planish cc"):
        built = place.run(["make", "-B", f"CC={compiler}"])
        assert (built.returncode, built.stderr) == (0, "")
        counted = place.run(["./wordcount", "text"]).stdout.split()
        assert dict(zip(counted[1::2], map(int, counted[::2]), strict=True)) == WORDS_OF_TEXT
        sizes.append(sum(text(place.folder / f"{name}.o") for name in ("main", "table", "text", "order")))
    assert sizes[1] < sizes[0]


def test_without_clang_the_error_says_how_to_fix_it(place: Place) -> None:
    done = place.cc("-Oz", "-c", "mixed.c", PATH="/nowhere")
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert "no clang is on PATH" in done.stderr
    done = place.cc("--version", PLANISH_CLANG="/nowhere/clang")
    assert (done.returncode, "names no program" in done.stderr) == (5, True)


def test_a_clang_of_another_version_compiles_alone(words: Place) -> None:
    words.wrap_clang('[ "$1" = --version ] && exec echo "clang version 19.1.7"')
    done = words.cc("-Oz", "-c", "words.c")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "LLVM 19" in done.stderr
    words.as_clang("-Oz", "-c", "words.c", "-o", "clang.o")
    assert text(words.folder / "words.o") == text(words.folder / "clang.o")
    done = words.cc("-Oz", "-c", "words.c", "--planish-strict")
    assert done.returncode == 2
    assert "error: " in done.stderr
    assert not (words.folder / "words.o").exists()


def test_another_compiler_compiles_alone(place: Place, tmp_path: Path) -> None:
    """Named by mistake: it takes most of clang's options."""
    other = tmp_path / "gcc"
    other.write_text("#!/bin/sh\necho gcc version 12 >&2\nfor out; do :; done\necho made > $out\n")
    other.chmod(0o755)
    words = ("-Oz", "-c", "mixed.c", "-o", "mixed.o")
    strict = place.cc(*words, "--planish-strict", PLANISH_CLANG=str(other))
    assert (strict.returncode, strict.stderr.count("\n")) == (2, 1)
    assert f"{other} is not clang" in strict.stderr
    assert not (place.folder / "mixed.o").exists()
    done = place.cc(*words, PLANISH_CLANG=str(other))
    assert (done.returncode, done.stderr.count("\n")) == (0, 2)
    assert f"{other} is not clang; its own result is kept" in done.stderr
    assert (place.folder / "mixed.o").read_text() == "made\n"
    fast = place.cc("-O2", "-c", "mixed.c", "-o", "f.o", "--planish-report", PLANISH_CLANG=str(other))
    assert fast.stderr.startswith("planish: left to clang: -O2. Use -Oz or -Os, ")


def closed(place: Place, redirections: str, *words: str) -> int:
    """Run `planish cc` with what a shell is told of its standard files; give its exit code."""
    command = f"{shlex.join([*CC, *words])} {redirections}"
    return place.run(["sh", "-c", command]).returncode


@pytest.mark.parametrize("redirections", ["2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_standard_files_may_be_closed_or_full(place: Place, redirections: str) -> None:
    place.write("warns.c", "int f(void) { int unused; return 1; }\n")
    for source in ("mixed", "warns"):
        for _ in range(2):  # searched, and known
            assert closed(place, redirections, "-Oz", "-Wall", "-c", f"{source}.c") == 0
            assert text(place.folder / f"{source}.o")


def test_a_command_that_is_too_long_without_its_response_file_is_clangs(place: Place) -> None:
    place.write("many", f"-DX={'x' * 300_000}\n")
    done = place.cc("-Oz", "-c", "mixed.c", "@many")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "warning: mixed.c: " in done.stderr
    assert "Argument list too long" in done.stderr
    assert text(place.folder / "mixed.o")
    strict = place.cc("-Oz", "-c", "mixed.c", "-o", "strict.o", "@many", "--planish-strict")
    assert (strict.returncode, (place.folder / "strict.o").exists()) == (2, False)


def test_a_defect_of_planishs_own_is_reported_and_clang_compiles(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> bool:
        raise ZeroDivisionError("not thought of")

    monkeypatch.setattr(driver, "make", fail)
    monkeypatch.setenv("PLANISH_CACHE", str(place.cache))
    monkeypatch.chdir(place.folder)
    said = tmp_path / "said"
    child = os.fork()  # for it becomes clang
    if not child:
        try:
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)
            main(["-Oz", "-c", "mixed.c"], plus=False)
        finally:
            os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert text(place.folder / "mixed.o")
    assert said.read_text() == (
        "planish: warning: mixed.c: ZeroDivisionError: not thought of; clang's result is kept\n"
    )
