"""An object follows from all that clang reads for it: files, environment, and configuration."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cc.conftest import CC, Place
from planish.cc import driver, job
from planish.cc.arguments import Invocation
from planish.cc.driver import compile_all
from planish.levels.llvm.bindings.elf import sections

INCBIN = r"""
#define INCBIN(n, f) __asm__(".section .rodata\n.globl " #n "\n" #n ": .inc" "bin \"" f "\"\n.text")
"""
MACRO = r'asm(".macro get what\n.inc\\what \"data\"\n.endm\n.section .rodata\nget bin\n.text");'
OPERAND = r'void bin(void); void f(void) { asm volatile("jmp 1f\n.inc%c0 \"data\"\n1:" :: "i"(bin)); }'
RANDOM = """
struct s { int a; char b; long c; short d; int e; char f; long g; int h; } __attribute__((randomize_layout));
const int at[] = { __builtin_offsetof(struct s, a), __builtin_offsetof(struct s, c),
    __builtin_offsetof(struct s, e), __builtin_offsetof(struct s, g), __builtin_offsetof(struct s, h) };
"""
VALUE = '#include "value.h"\nconst char at[] = VALUE;\n'
ASKS = (
    '#if __has_include("later.h")\nconst char at[] = "there";\n#else\nconst char at[] = "absent";\n#endif\n'
)


@dataclass(frozen=True)
class Case:
    """A compilation, and what is written between the first time and the second."""

    source: str
    change: dict[str, str]
    words: str = ""
    files: dict[str, str] = field(default_factory=dict[str, str])
    name: str = "x.c"


ONE, TWO = '#define VALUE "one"\n', '#define VALUE "two"\n'
CASES = {
    "incbin": Case(
        '#include "bin.h"\nINCBIN(blob, "data");\n', {"data": "two"}, files={"data": "one", "bin.h": INCBIN}
    ),
    "incbin by a macro of assembly": Case(MACRO, {"data": "two"}, files={"data": "one"}),
    "incbin by an operand": Case(OPERAND, {"data": "two"}, "-fno-pie", files={"data": "one"}),
    "include of assembly": Case(
        'asm(".INCLUDE \\"part.s\\"");\n',
        {"part.s": ".data\n.byte 2\n"},
        files={"part.s": ".data\n.byte 1\n"},
    ),
    "assembly": Case(
        '.include "part.s"\n',
        {"part.s": ".byte 2\n"},
        "-Wno-unused-command-line-argument",
        {"part.s": ".byte 1\n"},
        "x.s",
    ),
    "assembly with cpp": Case(
        '#include "part.h"\n.byte VALUE\n',
        {"part.h": "#define VALUE 2\n"},
        "-x assembler-with-cpp",
        {"part.h": "#define VALUE 1\n"},
    ),
    "embed": Case(
        'const char at[] = {\n#embed "data"\n};\n', {"data": "two"}, "-std=c23", files={"data": "one"}
    ),
    "a seed file": Case(
        RANDOM, {"seed": "bbbbcccc"}, "-frandomize-layout-seed-file=seed", files={"seed": "aaaa"}
    ),
    "a header": Case(VALUE, {"value.h": TWO}, files={"value.h": ONE}),
    "a header that comes first": Case(
        VALUE, {"first/value.h": TWO}, "-Ifirst -Isecond", {"second/value.h": ONE, "first/x": ""}
    ),
    "a folder that was not there": Case(
        VALUE, {"first/value.h": TWO}, "-isystem first -Isecond -iquote first", {"second/value.h": ONE}
    ),
    "a header in a folder within": Case(
        VALUE.replace("value.h", "in/value.h"),
        {"first/in/value.h": TWO},
        "-Ifirst -Isecond",
        {"second/in/value.h": ONE, "first/in/x.h": ""},
    ),
    "a header that is asked for": Case(ASKS, {"later.h": ""}),
    "a header that a macro asks for": Case(
        '#define LATER "later.h"\n' + ASKS.replace('"later.h"', "LATER"), {"later.h": ""}
    ),
    "what -imacros names": Case("const char at[] = VALUE;\n", {"m.h": TWO}, "-imacros m.h", {"m.h": ONE}),
    "an overlay of files": Case(
        VALUE,
        {"two.h": TWO},
        "-ivfsoverlay map.yaml",
        {
            "two.h": ONE,
            "map.yaml": "{'version': 0, 'roots': [{'type': 'file', 'name': '%/value.h',"
            " 'external-contents': '%/two.h'}]}",
        },
    ),
    "options in a response file": Case(
        VALUE, {"words": "-DVALUE='\"two\"'"}, "@words", {"value.h": "", "words": "-DVALUE='\"one\"'"}
    ),
    "options in a configuration file": Case(
        VALUE,
        {"c.cfg": '-DVALUE=\\"two\\"'},
        "--config=./c.cfg",
        {"value.h": "", "c.cfg": '-DVALUE=\\"one\\"'},
    ),
}


def compiled(place: Place, case: Case, cache: str) -> bytes:
    """Compile with a cache; return the object."""
    words = ("-Oz", *case.words.split(), "-c", case.name, "-o", "x.o")
    (place.folder / "x.o").unlink(missing_ok=True)
    done = place.cc(*words, PLANISH_CACHE=str(place.folder.parent / cache), PLANISH_EVALUATIONS="1")
    assert (done.returncode, done.stderr) == (0, "")
    return (place.folder / "x.o").read_bytes()


@pytest.mark.slow(after=9)
@pytest.mark.parametrize("name", CASES)
def test_what_an_object_is_made_of_changes(place: Place, name: str) -> None:
    case = CASES[name]
    for path, content in {**case.files, case.name: case.source}.items():
        place.write(path, content.replace("%", str(place.folder)) if path == "map.yaml" else content)
    before = compiled(place, case, "cache")
    for path, content in case.change.items():
        place.write(path, content)
    assert compiled(place, case, "cache") != before


def test_what_is_said_changes_with_a_map_of_warnings(place: Place) -> None:
    place.write("x.c", "int f(void) { int unused; return 3; }\n")
    words = ("-Oz", "-Wunused", "--warning-suppression-mappings=map", "-c", "x.c")
    place.write("map", "[unused]\nsrc:*\n")
    assert place.cc(*words).stderr == ""
    place.write("map", "")
    assert "unused variable" in place.cc(*words).stderr


def test_variables_that_add_options_are_clangs(place: Place) -> None:
    place.cc("-Oz", "-c", "mixed.c")
    done = place.cc("-Oz", "-c", "mixed.c", CCC_OVERRIDE_OPTIONS="#+-ffunction-sections")
    assert (done.returncode, done.stderr) == (0, "")
    names = {section.name for section in sections((place.folder / "mixed.o").read_bytes())}
    assert ".text.mixed" in names


def test_what_is_changed_while_clang_works_is_not_kept(place: Place) -> None:
    """The front end reads one header, and clang another one for its own object."""
    place.write("x.c", VALUE)
    header = place.write("value.h", ONE)
    times = (header.stat().st_atime - 60, header.stat().st_mtime - 60)
    changed = (
        f'case " $* " in *" -emit-llvm "*) ;; *" -o x.o "*) printf %s {shlex.quote(TWO)} > value.h;; esac'
    )
    quiet = place.folder.parent / "quiet"
    place.wrap_clang(f'[ -e "{quiet}" ] || {changed}')
    case = Case(VALUE, {})
    assert b"two" in compiled(place, case, "cache")
    header.write_text(ONE)
    os.utime(header, times)
    quiet.touch()
    assert b"one" in compiled(place, case, "cache")


WATCH = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
static char *find(const char *name) {
    size_t n = strlen(name);
    dprintf(9, "%s\n", name);
    for (char **each = environ; *each; each++)
        if (!strncmp(*each, name, n) && (*each)[n] == '=') return *each + n + 1;
    return 0;
}
char *getenv(const char *name) { return find(name); }
char *secure_getenv(const char *name) { return find(name); }
"""
HARMLESS = {
    *("NO_COLOR", "TMPDIR", "TMP", "TEMP", "TEMPDIR", "PATH"),  # messages, temporary files, other programs
    *("CLANG_CRASH_DIAGNOSTICS_DIR", "FORCE_CLANG_DIAGNOSTICS_CRASH"),  # without an object
    *("OBJC_INCLUDE_PATH", "OBJCPLUS_INCLUDE_PATH"),  # other languages
    *("CC_PRINT_HEADERS_FORMAT", "CC_PRINT_HEADERS_FILTERING"),  # of CC_PRINT_HEADERS
    *("LLVM_IGNORED_ENV_VAR", "TERM"),
}


def test_every_variable_that_clang_reads_is_in_a_key_or_leaves_the_object_to_clang(place: Place) -> None:
    place.write("watch.c", WATCH)
    watch = place.as_clang("-shared", "-fPIC", "watch.c", "-o", "watch.so")
    if watch.returncode:
        pytest.skip("no linker")
    place.write("x.cpp", "#include <vector>\nint f(std::vector<int> &v) { return v.size(); }\n")
    for words in (
        "-Oz -g -c mixed.c",
        "--driver-mode=g++ -Oz -c x.cpp",
        "--target=arm64-apple-macos -Oz -c mixed.c",
    ):
        command = shlex.join([place.clang.path, *words.split()])
        done = place.run(["sh", "-c", f"exec 9>>names; LD_PRELOAD=./watch.so exec {command}"])
        assert done.returncode == 0, done.stderr
    names = set((place.folder / "names").read_text().split())
    assert "CPATH" in names
    assert names <= {*job.VARIABLES, *driver.INSTALLATION_VARIABLES, *driver.VARIABLES, *HARMLESS}
    assert compile_all  # the module is the one that uses them


def test_a_wrapper_of_clang_stands_for_the_clang_that_it_starts(place: Place) -> None:
    """An upgrade changes the program behind, and not the script."""
    place.wrap_clang()
    place.cc("-Oz", "-c", "mixed.c")
    (record,) = place.cache.glob("installations/*/*")
    assert os.path.realpath(place.clang.path).encode() in record.read_bytes()
    assert b"libc.so" in record.read_bytes()


def test_a_build_goes_on_where_its_folder_is_gone(place: Place) -> None:
    gone = place.folder / "gone"
    gone.mkdir()
    command = shlex.join([*CC, "-Oz", "-c", str(place.folder / "mixed.c"), "-o", str(place.folder / "x.o")])
    own = command.replace(shlex.join(CC), shlex.join(place.clang.command))
    said = [
        place.run(["sh", "-c", f"cd gone; rmdir {gone}; {each}; mkdir {gone}"]) for each in (own, command)
    ]
    assert said[0].stderr == said[1].stderr
    assert (place.folder / "x.o").exists()


@pytest.fixture
def folder(place: Place) -> Path:
    """Have clang look for its configuration in a folder."""
    folder = place.folder.parent / "configuration"
    folder.mkdir()
    clang = " ".join([*place.clang.command, f"--config-user-dir={folder}"])
    place.environment["PLANISH_CLANG"] = clang
    return folder


def has_sections_of_functions(place: Place) -> bool:
    done = place.cc("-Oz", "-c", "mixed.c")
    assert (done.returncode, done.stderr) == (0, "")
    return ".text.mixed" in {section.name for section in sections((place.folder / "mixed.o").read_bytes())}


@pytest.mark.slow
def test_another_configuration_is_another_compilation(place: Place, folder: Path) -> None:
    assert not has_sections_of_functions(place)
    (folder / "clang.cfg").write_text("-ffunction-sections\n")
    assert has_sections_of_functions(place)
    (folder / "clang.cfg").write_text("\n")
    assert not has_sections_of_functions(place)


def test_a_configuration_may_name_files(place: Place, folder: Path) -> None:
    (folder / "clang.cfg").write_text("# what all need\n@more.txt\n")
    (folder / "more.txt").write_text("-g0\n")
    assert not has_sections_of_functions(place)
    (folder / "more.txt").write_text("-ffunction-sections\n")
    assert has_sections_of_functions(place)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("option", ["--config=./given.cfg", "--config ./given.cfg"])
def test_what_the_command_line_names_is_read(place: Place, option: str) -> None:
    for said, expected in (("-fno-function-sections", False), ("# all\n-ffunction-sections", True)):
        place.write("given.cfg", said)
        done = place.cc(*option.split(), "-Oz", "-c", "mixed.c", "--planish-report")
        assert (done.returncode, "left to clang" in done.stderr) == (0, False)
        names = {section.name for section in sections((place.folder / "mixed.o").read_bytes())}
        assert (".text.mixed" in names) == expected


@pytest.mark.parametrize("said", ["-O1", "-save-temps", "@more.cfg", "-DX <CFGDIR>/x.o"])
def test_a_configuration_that_does_more_is_left_to_clang(place: Place, said: str) -> None:
    place.write("given.cfg", f"{said}\n")
    assert (
        Invocation(["--config", str(place.folder / "given.cfg"), "-Oz", "-c", "mixed.c"]).keeps == "--config"
    )
