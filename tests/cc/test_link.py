"""Links with -flto: programs that are smaller than clang's and do the same, with each linker here."""

from __future__ import annotations

import json
import shutil
import string
import sys
from pathlib import Path

import llvmlite.binding
import pytest

from cc.conftest import (
    CXX,
    REPEATED,
    SMALLER,
    Place,
    compile_unoptimized,
    repeat_without_planish,
)
from cc.test_cache import small_disk
from fuzz_cc import TARGETS, clang_link_words, run_program
from planish.cc.clang import Compiler
from planish.levels.llvm.bindings.elf import (
    code_bytes,
    function_bytes,
    interface,
    loaded_bytes,
    needed_libraries,
)
from prepared_workers import PreparedWorkers

FEW = {"PLANISH_EVALUATIONS": "60", "PLANISH_SECONDS": ""}
LINKERS = ("bfd", "lld")

MAIN = r"""
#include <stdio.h>
extern int from_archive(int), from_native(int), from_assembly(int), aliased(int), common_name(int);
extern int mixed(const unsigned char *, int);
extern int __attribute__((weak)) missing(int);
__attribute__((noinline)) int for_assembly(int x) { return x * 7 + 1; }
__attribute__((weak)) int common_name(int x) { return x + 1000; }
__attribute__((section("keepme"), used)) static const char kept[] = "kept by the script";
__attribute__((constructor)) static void begin(void) { puts("begin"); }
static int unused(int x) { return x ^ 99; }
int (*volatile never)(int);
int main(void) {
    if (never) never = unused;
    printf("%d %d %d %d %d %d %d\n", from_archive(3), from_native(4), from_assembly(5), aliased(6),
           common_name(7), missing ? missing(8) : -8, mixed((const unsigned char *)"iaeou", 5));
    return 0;
}
"""
ARCHIVED = """
static int helper(int x) { return x * 13 + 5; }
int from_archive(int x) { return helper(x) ^ helper(x + 1); }
int original(int x) { return helper(x) - 3; }
extern int aliased(int) __attribute__((alias("original")));
"""
NATIVE = """
int from_native(int x) { return x * 1001; }
__attribute__((weak)) int common_name(int x) { return x; }
"""
NEVER_LINKED = "extern int nowhere(int); int unneeded(int x) { return nowhere(x); }\n"
ASSEMBLY = """
.globl from_assembly
from_assembly: sub $8, %rsp
 call for_assembly@PLT
 add $8, %rsp
 ret
.section .note.GNU-stack,"",@progbits
"""
SCRIPT = "SECTIONS { keepme : { KEEP(*(keepme)) } } INSERT AFTER .rodata;\n"
EXPECTED = "begin\n"
MIXED_MAIN = """
#include <stdio.h>
int mixed(const unsigned char *, int), other(int);
int main(void) { return printf("%d\\n", mixed((const unsigned char *)"iaeou", other(3))) < 0; }
"""
TEMPLATES = """
template <class T> __attribute__((always_inline)) inline T least(T a, T b) { return a < b ? a : b; }
template <class T> T twice(T a) { return least(a, T(9)) + a; }
extern "C" int of_int(int a) { return twice(a) + least(a, 3); }
extern "C" long of_long(long a) { return twice(a) * least(a, 4L); }
"""
WIDE = """
int main(int n, char **words) {
    unsigned __int128 much = (unsigned __int128)n << 70 | 63;
    return (int)(much / (unsigned)(n * 9)) + mixed((const unsigned char *)words[0], n);
}
"""


def links(place: Place, linker: str) -> bool:
    """Return whether clang links bitcode by a linker here."""
    place.write("trial.c", "int main(void) { return 0; }\n")
    words = ("-flto", f"-fuse-ld={linker}", "trial.c", "-o", "trial")
    works = place.as_clang(*words).returncode == 0
    for name in ("trial.c", "trial"):
        (place.folder / name).unlink(missing_ok=True)
    return works


@pytest.fixture(params=LINKERS)
def linker(request: pytest.FixtureRequest, place: Place) -> str:
    if not links(place, request.param):
        pytest.skip(f"clang does not link bitcode by {request.param} here")
    return request.param


@pytest.fixture(scope="module")
def parts(
    tmp_path_factory: pytest.TempPathFactory, clang: Compiler, prepared_workers: PreparedWorkers
) -> Place:
    """Have the objects and the archive of a program: bitcode, native code and assembly."""
    folder = tmp_path_factory.mktemp("parts") / "work"
    folder.mkdir()
    place = Place(folder, clang, prepared_workers)
    if "x86_64" not in place.as_clang("-dumpmachine").stdout:
        pytest.skip("the assembly is for x86-64")
    place.write("main.c", MAIN)
    place.write("mixed.c", SMALLER)
    place.write("archived.c", ARCHIVED)
    place.write("native.c", NATIVE)
    place.write("never.c", NEVER_LINKED)
    place.write("asm.s", ASSEMBLY)
    for name, *more in (
        ("main.c", "-flto"),
        ("mixed.c", "-flto"),
        ("archived.c", "-flto=thin"),
        ("never.c", "-flto"),
        ("native.c",),
    ):
        done = place.cc("-Oz", *more, "-c", name)
        assert (done.returncode, done.stderr) == (0, "")
    assert place.as_clang("-c", "asm.s").returncode == 0
    archive(place)
    assert (place.folder / "main.o").read_bytes().startswith(b"BC")
    return place


def archive(place: Place) -> None:
    """Put the objects of the archive into it."""
    archiver = shutil.which("llvm-ar-22") or shutil.which("llvm-ar") or shutil.which("ar")
    assert archiver
    done = place.run([archiver, "rcs", "libparts.a", "archived.o", "never.o", "native.o"])
    assert done.returncode == 0, done.stderr


@pytest.fixture
def program(place: Place, parts: Place) -> Place:
    """Have a copy of the parts of a program, and of the cache that their bitcode is kept in."""
    shutil.copytree(parts.folder, place.folder, dirs_exist_ok=True)
    shutil.copytree(parts.cache, place.cache)
    return place


def compare(place: Place, *words: str, output: str = "program") -> tuple[bytes, bytes]:
    """Link by clang and by `planish cc`, twice; return clang's file and the other."""
    expected = place.as_clang(*words, "-o", output)
    assert expected.returncode == 0, expected.stderr
    own = (place.folder / output).read_bytes()
    made: list[bytes] = []
    for how in ("searched", "known"):
        (place.folder / output).unlink()
        done = place.cc(*words, "-o", output, "--planish-report", "--planish-strict", **FEW)
        assert (done.returncode, how in done.stderr) == (0, True), done.stderr
        made.append((place.folder / output).read_bytes())
    assert made[0] == made[1]
    return own, made[0]


@pytest.mark.slow(after=1)
def test_a_linked_program_is_smaller_and_does_the_same(program: Place, linker: str) -> None:
    program.write("keep.ld", SCRIPT)
    folded = () if linker == "bfd" else ("-Wl,--icf=all",)
    words = (
        *("-Oz", "-flto", f"-fuse-ld={linker}", "-Wl,--gc-sections", *folded, "-Wl,-T,keep.ld"),
        *("main.o", "mixed.o", "asm.o", "-L.", "-lparts"),
    )
    own, made = compare(program, *words)
    (program.folder / "own").write_bytes(own)
    (program.folder / "own").chmod(0o755)
    answers = [program.run([f"./{name}"]) for name in ("own", "program")]
    assert answers[0].stdout.startswith("begin\n")
    assert (answers[1].returncode, answers[1].stdout) == (answers[0].returncode, answers[0].stdout)
    assert code_bytes(made) < code_bytes(own)
    assert b"kept by the script" in made


@pytest.mark.slow
def test_no_level_of_clang_is_smaller_with_the_outliner_or_without(place: Place) -> None:
    if not links(place, "bfd") or "x86_64" not in place.as_clang("-dumpmachine").stdout:
        pytest.skip("clang does not link bitcode here, or not for x86-64")
    place.write("repeated.c", REPEATED)
    outlines = ("", "-Wl,-plugin-opt=-enable-machine-outliner=always")
    answers: list[str] = []
    sizes: list[int] = []
    for level in ("-Oz", "-Os"):
        for more in outlines:
            words = (level, "-flto", "repeated.c", *filter(None, [more]), "-o", "own")
            assert place.as_clang(*words).returncode == 0
            sizes.append(code_bytes((place.folder / "own").read_bytes()))
            answers.append(place.run(["./own"]).stdout)
    lock = ("--planish-lock", "planish.lock")
    done = place.cc("-Oz", "-flto", "repeated.c", "-o", "program", *lock, "--planish-strict", **FEW)
    assert (done.returncode, done.stderr) == (0, "")
    (entry,) = json.loads((place.folder / "planish.lock").read_text())["sources"]["program"]
    assert "-enable-machine-outliner=always" in entry["llvm"]
    assert code_bytes((place.folder / "program").read_bytes()) <= min(sizes) < sizes[0]
    assert {place.run(["./program"]).stdout, *answers} == {answers[0]}
    compile_unoptimized(place, "repeated")
    repeat_without_planish(place, "program", "-flto", "repeated.o")
    assert place.files()["alone"] == place.files()["program"]


@pytest.mark.slow
def test_equal_functions_are_merged_by_passes_after_the_lists(place: Place) -> None:
    if not links(place, "bfd"):
        pytest.skip("clang does not link bitcode here")
    body = "(const int *x, int n) { int s = n; while (n--) s = s * 31 + (x[n] ^ s >> 3); return s; }\n"
    many = "".join(f"__attribute__((noinline)) static int f{number}{body}" for number in range(4))
    calls = " + ".join(f"f{number}(v, n)" for number in range(4))
    place.write("equal.c", f"{many}int v[] = {{4, 5, 6}}; int main(int n, char **w) {{ return {calls}; }}\n")
    words = ("-Oz", "-flto", "equal.c", "-o", "program", "--planish-lock", "planish.lock", "--planish-strict")
    done = place.cc(*words, **FEW)
    assert (done.returncode, done.stderr) == (0, "")
    (entry,) = json.loads((place.folder / "planish.lock").read_text())["sources"]["program"]
    assert "mergefunc" in entry["end"]
    found = (place.folder / "program").read_bytes()
    assert place.as_clang("-Oz", "-flto", "equal.c", "-o", "own").returncode == 0
    assert code_bytes(found) < code_bytes((place.folder / "own").read_bytes())
    answers = {place.run([f"./{name}"]).returncode for name in ("own", "program")}
    again = place.cc(*words, PLANISH_CACHE=str(place.folder.parent / "other"), PLANISH_SECONDS="0")
    assert (again.returncode, again.stderr, len(answers)) == (0, "", 1)
    assert (place.folder / "program").read_bytes() == found
    compile_unoptimized(place, "equal")
    repeat_without_planish(place, "program", "-flto", "equal.o")
    assert place.files()["alone"] == found


@pytest.mark.slow
def test_a_shared_library_exports_what_its_version_script_says(place: Place, linker: str) -> None:
    place.write("api.c", SMALLER + "int hidden_by_script(int x) { return mixed((void *)&x, 4); }\n")
    place.write("api.map", "PARTS_1 { global: mixed; chosen; local: *; };\n")
    assert place.cc("-Oz", "-flto", "-fPIC", "-c", "api.c").returncode == 0
    words = ("-Oz", "-flto", "-shared", f"-fuse-ld={linker}", "-Wl,--version-script=api.map", "api.o")
    own, made = compare(place, *words, "-Wl,-soname,libapi.so.1", output="libapi.so")
    assert interface(own) == interface(made)
    assert code_bytes(made) < code_bytes(own)
    code = "import ctypes; print(ctypes.CDLL('./libapi.so').mixed(b'iaeou', 5))"
    assert place.run(["python3", "-c", code]).stdout == "3254359\n"


@pytest.mark.slow
def test_a_library_exports_no_templates_that_clang_has_inlined(place: Place) -> None:
    if not links(place, "lld"):
        pytest.skip("clang does not link bitcode by lld here")
    place.write("api.cc", TEMPLATES + SMALLER)
    assert place.cc("-Oz", "-flto", "-fPIC", "-c", "api.cc").returncode == 0
    words = ("-flto", "-shared", "-fuse-ld=lld", "api.o")
    lock = ("--planish-lock", "planish.lock", "--planish-strict")
    own = place.as_clang("-Oz", *words, "-o", "own.so")
    done = place.cc("-Oz", *words, "-o", "libapi.so", *lock, **FEW)
    assert (own.returncode, done.returncode, done.stderr) == (0, 0, "")
    files = place.files()
    assert interface(files["own.so"]) == interface(files["libapi.so"])
    # The search starts from the objects themselves, so they are enough to repeat the link.
    repeat_without_planish(place, "libapi.so", *words)
    assert place.files()["alone"] == files["libapi.so"]


@pytest.mark.slow
def test_a_program_may_need_fewer_libraries_than_clangs(place: Place) -> None:
    if not links(place, "lld") or "x86_64" not in place.as_clang("-dumpmachine").stdout:
        pytest.skip("clang does not link bitcode by lld here, or not for x86-64")
    place.write("wide.c", SMALLER + WIDE)
    # clang's program takes the division from libgcc_s, since lld meets the calls late; an object takes it
    # from libgcc.
    words = ("-Oz", "-flto", "-fuse-ld=lld", "wide.c", "-o", "program")
    done = place.cc(*words, "--planish-strict", **FEW)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_known_object_in_a_link_with_other_libraries_is_compared_with_clangs_program(place: Place) -> None:
    if not links(place, "bfd"):
        pytest.skip("clang does not link bitcode here")
    place.write("api.c", SMALLER)
    assert place.cc("-Oz", "-flto", "-fPIC", "-c", "api.c").returncode == 0
    words = ("-Oz", "-flto", "-shared", "api.o")
    compare(place, *words, output="libapi.so")
    for more in (("-Wl,--no-as-needed", "-lm"), ("-Wl,-soname,libapi.so.2",), ("-Wl,--defsym=also=mixed",)):
        own, made = compare(place, *words, *more, output="libapi.so")
        assert interface(own) == interface(made)
        assert needed_libraries(own) == needed_libraries(made)


@pytest.mark.slow
def test_sources_are_compiled_and_linked_at_once(place: Place) -> None:
    if not links(place, "bfd"):
        pytest.skip("clang does not link bitcode here")
    done = place.cc("-Oz", "-flto", "mixed.c", "main.c", "-o", "program", "-Wl,-Map=program.map", **FEW)
    assert (done.returncode, done.stderr) == (0, "")
    assert place.run(["./program"]).stdout == "3254359\n"
    assert set(place.files()) == {"mixed.c", "main.c", "program", "program.map"}
    assert "merged.o" in (place.folder / "program.map").read_text()


@pytest.mark.slow
def test_a_lock_file_has_programs_too(program: Place) -> None:
    if not links(program, "bfd"):
        pytest.skip("clang does not link bitcode here")
    linked = ("-flto", "main.o", "mixed.o", "asm.o", "-L.", "-lparts")
    words = ("-Oz", *linked, "--planish-lock", "planish.lock")
    assert program.cc(*words, "-o", "program", **FEW).returncode == 0
    first = program.files()
    assert json.loads(first["planish.lock"])["sources"].keys() == {"program"}
    elsewhere = {"PLANISH_CACHE": str(program.folder.parent / "other"), "PLANISH_SECONDS": "0"}
    for name in ("main", "mixed", "archived"):
        done = program.cc("-Oz", "-flto", "-c", f"{name}.c", "--planish-lock", "planish.lock", **elsewhere)
        assert (done.returncode, done.stderr) == (0, "")
    done = program.cc(*words, "-o", "program", "--planish-strict", **elsewhere)
    assert (done.returncode, done.stderr) == (0, "")
    assert program.files() == first
    compile_unoptimized(program, "main", "mixed", "archived")
    archive(program)
    repeat_without_planish(program, "program", *linked)
    # The archive is linked as it is, and not the members of it that are needed: only padding may differ.
    made = [program.folder / name for name in ("alone", "program")]
    assert len({json.dumps(function_bytes(path.read_bytes())) for path in made}) == 1
    assert len({program.run([str(path)]).stdout for path in made}) == 1


def test_what_a_link_with_an_object_may_do_otherwise_is_clangs(program: Place) -> None:
    if not links(program, "bfd"):
        pytest.skip("clang does not link bitcode here")
    program.write("wrap.c", "int __real_from_native(int); int __wrap_from_native(int x) { return 5; }\n")
    program.as_clang("-Oz", "-c", "wrap.c")
    wrapped = ("-Wl,--wrap=from_native", "main.o", "mixed.o", "asm.o", "wrap.o")
    words = ("-Oz", "-flto", *wrapped, "-L.", "-lparts")
    program.as_clang(*words, "-o", "own")
    done = program.cc(*words, "-o", "program", **FEW)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
    assert "a link with --wrap=from_native" in done.stderr
    files = program.files()
    assert files["own"] == files["program"]


def test_a_linker_that_does_not_list_its_bitcode_is_one_warning(place: Place) -> None:
    if not links(place, "gold"):
        pytest.skip("clang does not link bitcode by gold here")
    words = ("-Oz", "-flto", "-fuse-ld=gold", "mixed.c", "main.c", "-o", "program")
    done = place.cc(*words, **FEW)
    assert (done.returncode, done.stderr.count("\n"), "such as gold" in done.stderr) == (0, 1, True)
    assert place.run(["./program"]).stdout == "3254359\n"


def test_bitcode_in_an_input_script_is_clangs(program: Place) -> None:
    if not links(program, "bfd"):
        pytest.skip("clang does not link bitcode here")
    program.write("libscripted.a", "INPUT(mixed.o)\n")
    words = ("-Oz", "-flto", "main.o", "asm.o", "-L.", "-lparts", "-lscripted", "-o", "program")
    done = program.cc(*words, **FEW)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "mixed.o, which no word of the command names; clang's result is kept" in done.stderr
    assert "3254359" in program.run(["./program"]).stdout


def test_a_link_that_fails_says_what_clang_says(program: Place) -> None:
    words = ("-Oz", "-flto", "main.o", "asm.o", "-L.", "-lparts", "-o", "program")
    expected, done = program.as_clang(*words), program.cc(*words, **FEW)
    assert done.returncode == expected.returncode != 0
    assert "undefined" in done.stderr
    assert "planish" not in done.stderr


@pytest.mark.slow
def test_links_of_other_levels_are_clangs(place: Place) -> None:
    if not links(place, "bfd"):
        pytest.skip("clang does not link bitcode here")
    for level in ("-O2", "-Oz"):
        for name in ("mixed", "main"):
            assert place.cc(level, "-flto", "-c", f"{name}.c").returncode == 0
        words = ("-flto", "mixed.o", "main.o")  # the level is that of the objects
        place.as_clang(*words, "-o", "own")
        done = place.cc(*words, "-o", "program", **FEW)
        assert (done.returncode, done.stderr) == (0, "")
        files = place.files()
        assert (files["own"] == files["program"]) == (level == "-O2")


@pytest.mark.slow
def test_a_static_program_is_no_larger_and_does_the_same(place: Place) -> None:
    if not links(place, "bfd") or place.as_clang("-static", "main.c", "-c", "-o", "trial.o").returncode:
        pytest.skip("clang does not link bitcode here")
    for name in ("mixed", "main"):
        assert place.cc("-Oz", "-flto", "-c", f"{name}.c").returncode == 0
    words = ("-Oz", "-flto", "-static", "main.o", "mixed.o")
    if place.as_clang(*words, "-o", "trial").returncode:
        pytest.skip("there is no static C library here")
    own, made = compare(place, *words)
    assert code_bytes(made) <= code_bytes(own)
    assert place.run(["./program"]).stdout == "3254359\n"


def test_a_link_to_an_object_is_clangs(place: Place) -> None:
    if not links(place, "bfd"):
        pytest.skip("clang does not link bitcode here")
    for name in ("mixed", "main"):
        assert place.cc("-Oz", "-flto", "-c", f"{name}.c").returncode == 0
    words = ("-Oz", "-flto", "-r", "main.o", "mixed.o", "-o")
    expected, done = place.as_clang(*words, "own.o"), place.cc(*words, "made.o", **FEW)
    assert (done.returncode, "planish" in done.stdout) == (expected.returncode, False)
    files = place.files()
    assert files.get("own.o") == files.get("made.o")


def test_an_archive_with_two_members_of_one_name_is_clangs(place: Place) -> None:
    archiver = shutil.which("llvm-ar-22") or shutil.which("llvm-ar")
    if not links(place, "bfd") or not archiver:
        pytest.skip("clang does not link bitcode here, or there is no llvm-ar")
    place.write("other/mixed.c", "int other(int x) { return x + 2; }\n")
    place.write("main.c", MIXED_MAIN)
    for name in ("mixed.c", "other/mixed.c", "main.c"):
        made = place.cc("-Oz", "-flto", "-c", name, "-o", name.replace(".c", ".o"))
        assert (made.returncode, made.stderr) == (0, "")
    assert place.run([archiver, "rcs", "libtwo.a", "mixed.o"]).returncode == 0
    assert place.run([archiver, "qs", "libtwo.a", "other/mixed.o"]).returncode == 0
    words = ("-Oz", "-flto", "main.o", "-L.", "-ltwo", "-o")
    assert place.as_clang(*words, "own").returncode == 0
    done = place.cc(*words, "program", **FEW)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "several members of one name; clang's result is kept" in done.stderr
    files = place.files()
    assert files["own"] == files["program"]
    assert place.cc(*words, "program", "--planish-strict", **FEW).returncode == 2


def test_a_full_disk_leaves_clangs_program(place: Place) -> None:
    if not links(place, "lld"):
        pytest.skip("clang does not link bitcode by lld here")
    for name in ("mixed", "main"):
        assert place.cc("-Oz", "-flto", "-c", f"{name}.c").returncode == 0
    words = ("-Oz", "-flto", "-fuse-ld=lld", "main.o", "mixed.o", "-o")
    assert place.as_clang(*words, "own").returncode == 0
    with small_disk(place.folder.parent / "disk", 8):
        done = place.cc(*words, "program", TMPDIR=str(place.folder.parent / "disk"), **FEW)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
    assert "clang's result is kept" in done.stderr
    files = place.files()
    assert files["own"] == files["program"]


@pytest.mark.slow
def test_a_program_for_a_microcontroller_is_linked_by_its_script_and_runs(place: Place) -> None:
    library = Path("/usr/lib/picolibc/arm-none-eabi/lib")
    tools = ("arm-none-eabi-gcc", "qemu-system-arm")
    if not links(place, "lld") or not all(map(shutil.which, tools)) or not library.is_dir():
        pytest.skip("lld, qemu-system-arm, gcc-arm-none-eabi and picolibc-arm-none-eabi are needed")
    processor = ("-mcpu=cortex-m4", "-mthumb")
    runtime = place.run(["arm-none-eabi-gcc", *processor, "-print-libgcc-file-name"]).stdout.strip()
    # lld does not know this attribute of a section.
    place.write("picolibc.ld", (library / "picolibc.ld").read_text().replace("ALIGN_WITH_INPUT", ""))
    aimed = ("--target=thumbv7em-none-eabi", "-mcpu=cortex-m4", "-mfloat-abi=soft", "-fshort-enums")
    headers = str(library.parent / "include")
    for name in ("mixed.c", "main.c"):
        assert place.cc(*aimed, "-Oz", "-flto", "-isystem", headers, "-c", name).returncode == 0
    memory = {"flash": "0", "flash_size": "0x400000", "ram": "0x20000000", "ram_size": "0x400000"}
    own_library = library / "thumb" / "v7e-m" / "nofp"
    words = (
        *(*aimed, "-Oz", "-flto", "-fuse-ld=lld", "-nostdlib", "-Wl,--gc-sections", "-Wl,-T,picolibc.ld"),
        *(f"-Wl,--defsym=__{name}={value}" for name, value in memory.items()),
        *(f"-L{own_library}", str(own_library / "crt0-hosted.o"), "main.o", "mixed.o"),
        *("-Wl,--start-group", "-lc", "-lsemihost", runtime, "-Wl,--end-group"),
        *("--planish-objective", "flash"),
    )
    own = place.as_clang(*words[:-2], "-o", "program")
    assert own.returncode == 0, own.stderr
    before = loaded_bytes((place.folder / "program").read_bytes())
    done = place.cc(*words, "-o", "program", "--planish-strict", **FEW)
    assert (done.returncode, done.stderr) == (0, "")
    assert loaded_bytes((place.folder / "program").read_bytes()) < before
    machine = ("-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "none")
    semihosting = ("-semihosting-config", "enable=on,target=native")
    ran = place.run(["qemu-system-arm", *machine, *semihosting, "-kernel", "program"])
    assert (ran.returncode, "3254359" in ran.stdout + ran.stderr) == (0, True)


@pytest.mark.slow
def test_a_program_for_riscv_saves_registers_by_the_library(place: Place) -> None:
    target = next(target for target in TARGETS if target.name == "rv32imac")
    if not links(place, "lld") or target.missing:
        pytest.skip(f"lld and {target.missing or 'a library'} are needed")
    body = "".join(f" int v{i} = make(x + {i});" for i in range(7)) + " return v0"
    body += "".join(f" ^ v{i} << {i}" for i in range(1, 7)) + ";"
    many = "".join(f"__attribute__((noinline)) int f{n}(int x) {{ x *= {n};{body} }}\n" for n in range(2, 6))
    called = " + ".join(f"f{n}(argc)" for n in range(2, 6))
    place.write(
        "saved.c",
        "#include <stdio.h>\nvolatile int read = 5;\n"
        "__attribute__((noinline)) int make(int x) { return read + x * 77; }\n"
        f'{many}int main(int argc, char **v) {{ printf("%d\\n", {called}); return 0; }}\n',
    )
    words = (*target.clang, "-Oz", "-flto", "saved.c", *clang_link_words(target, place.folder.parent))
    assert place.as_clang(*words, "-o", "own").returncode == 0
    asked = ("--planish-objective", "flash", "--planish-lock", "program.lock", "--planish-strict")
    done = place.cc(*words, "-o", "program", *asked, PLANISH_EVALUATIONS="1", PLANISH_SECONDS="")
    assert (done.returncode, done.stderr) == (0, "")
    own, made = ((place.folder / name).read_bytes() for name in ("own", "program"))
    assert loaded_bytes(made) < loaded_bytes(own)
    (entry,) = json.loads((place.folder / "program.lock").read_text())["sources"]["program"]
    assert "+save-restore" in dict(entry["attributes"])
    answers = [run_program(target, place.folder / name) for name in ("own", "program")]
    assert answers[0].startswith("0 ")
    assert answers[0] == answers[1]


def test_bitcode_of_another_llvm_is_linked(place: Place) -> None:
    if not links(place, "lld"):
        pytest.skip("clang does not link bitcode by lld here")
    begins = place.as_clang("-S", "-emit-llvm", "mixed.c", "-o", "-").stdout.splitlines()
    module = llvmlite.binding.parse_assembly(
        "\n".join(line for line in begins if line.startswith("target "))
        + "\ndefine i32 @mixed(ptr %s, i32 %n) minsize optsize { %x = mul i32 %n, 7\n ret i32 %x }\n"
    )
    (place.folder / "older.o").write_bytes(module.as_bitcode())
    assert place.cc("-Oz", "-flto", "-c", "main.c").returncode == 0
    done = place.cc("-Oz", "-flto", "-fuse-ld=lld", "main.o", "older.o", "-o", "program", **FEW)
    assert (done.returncode, done.stderr.count("\n") <= 1) == (0, True), done.stderr
    assert place.run(["./program"]).stdout == "35\n"


_CHAR6 = string.ascii_lowercase + string.ascii_uppercase + string.digits + "._"
_TO_EPOCH = 33
"""Bits from the end of the producer's name to the epoch: an abbreviation, and the use of it."""


def of_another_llvm(code: bytes, epoch: int) -> bytes:
    """Return bitcode whose identification block is that of LLVM 99, of some epoch."""

    def bits(text: str) -> int:
        return sum(_CHAR6.index(letter) << 6 * at for at, letter in enumerate(text))

    number, own = int.from_bytes(code, "little"), bits("LLVM22")
    at = next(at for at in range(1000) if (number >> at) & (1 << 36) - 1 == own)
    end = at + 6 * ((number >> at - 6) & 63) + _TO_EPOCH
    assert (number >> end) & 63 == 0
    number += (bits("LLVM99") - own << at) + (epoch << end)
    return number.to_bytes(len(code), "little")


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("epoch", [0, 1])
def test_bitcode_of_a_newer_llvm_is_linked_as_by_clang(place: Place, epoch: int) -> None:
    if not links(place, "lld"):
        pytest.skip("clang does not link bitcode by lld here")
    for name in ("main", "mixed"):
        assert place.cc("-Oz", "-flto", "-c", f"{name}.c").returncode == 0
    newer = of_another_llvm((place.folder / "mixed.o").read_bytes(), epoch)
    (place.folder / "mixed.o").write_bytes(newer)
    words = ("-Oz", "-flto", "-fuse-ld=lld", "main.o", "mixed.o", "-o", "program")
    expected, done = place.as_clang(*words), place.cc(*words, **FEW)
    assert done.returncode == expected.returncode == epoch, done.stderr
    if epoch:
        assert done.stderr == expected.stderr
        assert "Incompatible epoch" in done.stderr
        assert not (place.folder / "program").exists()
    else:
        assert done.stderr.count("\n") <= 1
        assert place.run(["./program"]).stdout == "3254359\n"


def test_a_linker_of_a_newer_llvm_is_one_warning(place: Place) -> None:
    if not links(place, "lld"):
        pytest.skip("clang does not link bitcode by lld here")
    clang = place.folder.parent / "clang"
    clang.write_text(
        f"""#!{sys.executable}
import subprocess, sys
code = subprocess.call({[*place.clang.command]!r} + sys.argv[1:])
output = sys.argv[sys.argv.index("-o") + 1] if "-o" in sys.argv else ""
if output.endswith(("merged.bc", "unoptimized.bc")):
    sys.path[:0] = {sys.path!r}
    from cc.test_link import of_another_llvm
    data = open(output, "rb").read()
    open(output, "wb").write(of_another_llvm(data, 1))
sys.exit(code)
"""
    )
    clang.chmod(0o755)
    place.environment["PLANISH_CLANG"] = str(clang)
    words = ("-Oz", "-flto", "-fuse-ld=lld", "main.c", "mixed.c", "-o", "program")
    done = place.cc(*words, **FEW)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
    assert "Incompatible epoch" in done.stderr
    assert "clang's result is kept" in done.stderr
    assert place.run(["./program"]).stdout == "3254359\n"
    assert place.cc(*words, "--planish-strict", **FEW).returncode == 2


@pytest.mark.slow
def test_exceptions_are_thrown_and_caught(place: Place) -> None:
    if not links(place, "bfd"):
        pytest.skip("clang does not link bitcode here")
    place.write(
        "throws.cpp", "#include <string>\nvoid thrown(int x) { if (x > 2) throw std::string(x, 'x'); }\n"
    )
    place.write(
        "catches.cpp",
        "#include <cstdio>\n#include <string>\nvoid thrown(int);\nint main(int n, char **) {\n"
        " try { thrown(n + 3); } catch (const std::string &s) { puts(s.c_str()); } return 0; }\n",
    )
    done = place.run([*CXX, "-Oz", "-flto", "throws.cpp", "catches.cpp", "-o", "program"])
    assert (done.returncode, done.stderr) == (0, "")
    assert place.run(["./program"]).stdout == "xxxx\n"
