"""Lock files: what was chosen for a build is repeated without a search, and without planish."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from cc.conftest import CC, Place, compile_unoptimized, repeat_without_planish, text
from planish.levels.llvm.bindings.elf import loaded_bytes
from planish.levels.llvm.modules.function_costs import FEW_REGISTERS

COUNTED = {"PLANISH_EVALUATIONS": "30", "PLANISH_SECONDS": ""}
LOCK = ("--planish-lock", "planish.lock")
COMPILED = ("-Oz", "-c", "words.c")


def elsewhere(place: Place) -> Place:
    """Return a copy of the folder, with an empty cache, where no search is made."""
    other = Place(place.folder.parent / "elsewhere" / "work", place.clang, place.prepared)
    shutil.copytree(place.folder, other.folder)
    other.environment["PLANISH_SECONDS"] = "0"
    return other


@pytest.fixture
def locked(words: Place) -> Place:
    """Have a source and its lock file."""
    done = words.cc(*COMPILED, *LOCK, **COUNTED)
    assert (done.returncode, done.stderr) == (0, "")
    return words


def test_a_lock_file_repeats_a_build_in_another_folder_without_a_search(locked: Place) -> None:
    locked.as_clang(*COMPILED, "-o", "clang.o")
    assert text(locked.folder / "words.o") < text(locked.folder / "clang.o")
    other = elsewhere(locked)
    for how in ("searched", "known"):  # made by the file, and then from the cache
        done = other.cc(*COMPILED, *LOCK, "-o", "again.o", "--planish-report", "--planish-strict")
        assert (done.returncode, how in done.stderr) == (0, True), done.stderr
        files = other.files()
        assert files["again.o"] == files["words.o"]
        assert files["planish.lock"] == locked.files()["planish.lock"]


def test_attributes_for_code_generation_are_locked(words: Place) -> None:
    flash = ("--planish-objective", "flash")
    done = words.cc(*COMPILED, *LOCK, *flash, **COUNTED)
    assert (done.returncode, done.stderr) == (0, "")
    (entry,) = json.loads((words.folder / "planish.lock").read_text())["sources"]["words.c"]
    assert entry["attributes"]
    other = elsewhere(words)
    done = other.cc(*COMPILED, *LOCK, *flash, "-o", "again.o", "--planish-strict")
    assert (done.returncode, done.stderr) == (0, "")
    assert other.files()["again.o"] == words.files()["words.o"]
    repeat_without_planish(words, "words.c")
    assert words.files()["alone"] == words.files()["words.o"]


def test_options_of_code_generation_are_chosen_and_locked(place: Place) -> None:
    """Addresses that are computed once before the loop need registers that have to be saved."""
    calls = 's += g(i, "x") ^ g(s, "y") ^ g(s + i, "z");'
    place.write(
        "words.c",
        "int g(int, const char *);\n"
        f"int f(int n) {{ int s = 0; for (int i = 0; i < n; i++) {calls} return s; }}\n",
    )
    sizes: list[int] = []
    for words in ((), ("-mllvm", "-disable-machine-licm")):
        assert place.as_clang("-Oz", *words, "-c", "words.c", "-o", "own.o").returncode == 0
        sizes.append(text(place.folder / "own.o"))
    done = place.cc(*COMPILED, *LOCK, "--planish-strict", PLANISH_EVALUATIONS="1", PLANISH_SECONDS="")
    assert (done.returncode, done.stderr) == (0, "")
    assert text(place.folder / "words.o") <= sizes[1] < sizes[0]
    (entry,) = json.loads((place.folder / "planish.lock").read_text())["sources"]["words.c"]
    assert "-disable-machine-licm" in entry["llvm"]
    repeat_without_planish(place, "words.c")
    assert place.files()["alone"] == place.files()["words.o"]


def test_few_registers_of_riscv_are_locked(place: Place) -> None:
    """Compressed instructions name few of the registers that nine values in a loop would take."""
    target = ("--target=riscv32-unknown-elf", "-march=rv32imac", "-mabi=ilp32")
    step = "s += g(b, c); s ^= g(d, e); s += g(h, i); s ^= g(j, s);"
    place.write(
        "words.c",
        "int g(int, int);\nint f(int a, int b, int c, int d, int e, int h, int i, int j) {\n"
        f"int s = 0; while (a--) {{ {step} }}\nreturn s + b + c + d + e + h + i + j; }}\n",
    )
    if place.as_clang(*target, *COMPILED, "-o", "own.o").returncode:
        pytest.skip("this clang is not for RISC-V")
    done = place.cc(
        *target, *COMPILED, *LOCK, "--planish-strict", PLANISH_EVALUATIONS="1", PLANISH_SECONDS=""
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert text(place.folder / "words.o") < text(place.folder / "own.o")
    (entry,) = json.loads((place.folder / "planish.lock").read_text())["sources"]["words.c"]
    assert FEW_REGISTERS in dict(entry["attributes"])
    repeat_without_planish(place, "words.c", *target)
    assert place.files()["alone"] == place.files()["words.o"]


def test_unknown_attributes_of_a_lock_file_leave_clangs_result(locked: Place) -> None:
    path = locked.folder / "planish.lock"
    document = json.loads(path.read_text())
    document["sources"]["words.c"][0]["attributes"] = [["-nounwind", ["main"]]]
    path.write_text(json.dumps(document))
    done = locked.cc(*COMPILED, *LOCK, **COUNTED)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "options of code generation that are not known" in done.stderr


@pytest.mark.slow
def test_what_was_found_before_is_entered(words: Place) -> None:
    words.cc(*COMPILED, **COUNTED)
    assert "known" in words.cc(*COMPILED, *LOCK, "--planish-report", **COUNTED).stderr
    (entry,) = json.loads((words.folder / "planish.lock").read_text())["sources"]["words.c"]
    assert entry["result"] == "passes"


@pytest.mark.slow
def test_debug_information_does_not_matter(words: Place) -> None:
    words.cc(*COMPILED, "-g", *LOCK, **COUNTED)
    other = elsewhere(words)
    assert other.cc(*COMPILED, "-g", *LOCK, "--planish-strict").returncode == 0
    assert text(other.folder / "words.o") == text(words.folder / "words.o")


def test_a_lock_file_of_another_source_leaves_clangs_result(locked: Place) -> None:
    path = locked.folder / "words.c"
    path.write_text(path.read_text().replace("return 0;", "return 1;"))
    done = locked.cc(*COMPILED, *LOCK, **COUNTED)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "planish.lock was written for another version of words.c" in done.stderr
    locked.as_clang(*COMPILED, "-o", "clang.o")
    files = locked.files()
    assert files["words.o"] == files["clang.o"]
    (locked.folder / "words.o").unlink()
    assert locked.cc(*COMPILED, *LOCK, "--planish-strict", **COUNTED).returncode == 2
    assert not (locked.folder / "words.o").exists()


def test_other_options_are_another_entry(locked: Place) -> None:
    assert locked.cc(*COMPILED, "-DOTHER", *LOCK, **COUNTED).returncode == 0
    assert locked.cc("-Oz", "-fno-inline", "-c", "words.c", *LOCK, **COUNTED).stderr == ""
    entries = json.loads((locked.folder / "planish.lock").read_text())["sources"]["words.c"]
    assert len(entries) == 2  # the definition is not used: the module is the same


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "planish.lock cannot be read"),
        ("[]", "planish.lock is not a lock file"),
        ('{"schema_version": 1, "sources": {"words.c": [{}]}}', "has a malformed entry of words.c"),
        ('{"schema_version": 1, "sources": {}}', "has no entry of it, and there is no time to search"),
    ],
)
def test_a_lock_file_that_does_not_help_is_one_warning(words: Place, content: str, why: str) -> None:
    words.write("planish.lock", content)
    done = words.cc(*COMPILED, *LOCK, PLANISH_SECONDS="0")
    assert (done.returncode, done.stderr.count("\n"), why in done.stderr) == (0, 1, True), done.stderr
    assert (words.folder / "planish.lock").read_text() == content
    assert words.cc(*COMPILED, *LOCK, "--planish-strict", PLANISH_SECONDS="0").returncode == 2


@pytest.mark.slow
def test_processes_that_compile_at_once_all_enter_what_they_chose(place: Place) -> None:
    names = [f"{letter}.c" for letter in "abcd"]
    for name in names:
        place.write(name, (place.folder / "mixed.c").read_text().replace("31", str(ord(name[0]))))
    running = [
        subprocess.Popen([*CC, "-Oz", "-c", name, *LOCK], cwd=place.folder, env=place.environment)
        for name in names
    ]
    assert [process.wait() for process in running] == [0] * 4
    assert sorted(json.loads((place.folder / "planish.lock").read_text())["sources"]) == names


def test_planish_is_not_needed_to_repeat_a_build(locked: Place) -> None:
    repeat_without_planish(locked, "words.c")
    assert locked.files()["alone"] == locked.files()["words.o"]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("target", "copies"), [((), 6), (("--target=thumbv7em-none-eabi", "-mcpu=cortex-m4"), 2)]
)
def test_no_level_of_clang_is_smaller_with_the_outliner_or_without(
    place: Place, target: tuple[str, ...], copies: int
) -> None:
    """The search makes this object larger, and so does the outliner for the microcontroller alone."""
    stores = " ".join(f"t[{2 * i + 1}] = {71 + i};" for i in range(5))
    pair = "".join(
        f"void f{n}(int *t, int x) {{ t[x] = {n}; {stores} t[30] = x; t[x + {n}] = {n * 3}; }}\n"
        "__attribute__((noinline)) static int "
        f"g{n}(const int *x, int n) {{ int s = n; while (n--) s = s * 31 + (x[n] ^ s >> 3); return s; }}\n"
        for n in range(copies)
    )
    calls = " + ".join(f"g{n}(v, n)" for n in range(copies))
    place.write("words.c", f"{pair}int v[] = {{4, 5, 6}}; int all(int n) {{ return {calls}; }}\n")
    sizes: list[int] = []
    for level in ("-Oz", "-Os"):
        for outliner in ("always", "never"):
            outlined = ("-mllvm", f"-enable-machine-outliner={outliner}")
            if place.as_clang(*target, level, *outlined, "-c", "words.c", "-o", "own.o").returncode:
                pytest.skip("this clang is not for thumb")
            sizes.append(loaded_bytes((place.folder / "own.o").read_bytes()))
    words = (*target, *COMPILED, *LOCK, "--planish-objective", "flash", "--planish-strict")
    done = place.cc(*words, PLANISH_EVALUATIONS="1", PLANISH_SECONDS="")
    assert (done.returncode, done.stderr) == (0, "")
    assert loaded_bytes((place.folder / "words.o").read_bytes()) <= min(sizes) < max(sizes)
    repeat_without_planish(place, "words.c", *target)
    assert place.files()["alone"] == place.files()["words.o"]
    made = place.files()["words.o"]
    other = elsewhere(place)
    assert other.cc(*words).returncode == 0
    assert other.files()["words.o"] == made


@pytest.mark.slow
def test_planish_is_not_needed_to_repeat_a_link(place: Place) -> None:
    if not shutil.which("ld.lld-22"):
        pytest.skip("lld-22 is needed")
    words = ("-flto", "-fuse-ld=lld", "-Wl,--gc-sections", "main.o", "mixed.o")
    assert place.cc("-Oz", "-flto", "-c", "main.c", "mixed.c").returncode == 0
    few = {"PLANISH_EVALUATIONS": "60", "PLANISH_SECONDS": ""}
    lock = ("--planish-lock", "planish.lock", "--planish-strict")
    done = place.cc("-Oz", *words, "-o", "program", *lock, **few)
    assert (done.returncode, done.stderr) == (0, "")
    compile_unoptimized(place, "main", "mixed")
    repeat_without_planish(place, "program", *words)
    assert place.files()["alone"] == place.files()["program"]


@pytest.mark.slow
def test_the_object_of_a_number_of_evaluations_does_not_depend_on_the_load(words: Place) -> None:
    made: list[bytes] = []
    for busy in (0, 3):
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
        try:
            cache = str(words.folder.parent / f"cache{busy}")
            assert words.cc(*COMPILED, PLANISH_CACHE=cache, **COUNTED).returncode == 0
        finally:
            for other in others:
                other.kill()
                other.wait()
        made.append((words.folder / "words.o").read_bytes())
    assert made[0] == made[1]


@pytest.mark.slow
def test_another_number_of_evaluations_is_another_object_whatever_is_known(words: Place) -> None:
    """What was found with more is not taken: elsewhere it would not be there."""
    few = {**COUNTED, "PLANISH_EVALUATIONS": "10"}
    for name, more in (("few", few), ("many", COUNTED), ("again", few)):
        words.cc(*COMPILED, "-o", f"{name}.o", **more)
    files = words.files()
    assert files["few.o"] == files["again.o"]
    assert text(words.folder / "many.o") <= text(words.folder / "few.o")
