"""Failure never breaks a build: what `planish cc` cannot do, clang does, and one line says why."""

import os
import shlex
import signal
import time
from pathlib import Path

import pytest

from cc.conftest import CC, Place, text
from planish.cc import driver, optimize
from planish.cc.command import main


def test_without_clang_it_says_what_mends_it(place: Place) -> None:
    done = place.cc("-Oz", "-c", "mixed.c", PATH="/nowhere")
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert "no clang is on PATH" in done.stderr
    done = place.cc("--version", PLANISH_CLANG="/nowhere/clang")
    assert (done.returncode, "names no program" in done.stderr) == (5, True)


def test_a_clang_of_another_version_compiles_alone(words: Place, tmp_path: Path) -> None:
    other = tmp_path / "other clang"
    real = shlex.join(words.clang.command)
    other.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "clang version 19.1.7" || exec {real} "$@"\n')
    other.chmod(0o755)
    done = words.cc("-Oz", "-c", "words.c", PLANISH_CLANG=str(other))
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "LLVM 19" in done.stderr
    words.as_clang("-Oz", "-c", "words.c", "-o", "clang.o")
    assert text(words.folder / "words.o") == text(words.folder / "clang.o")
    done = words.cc("-Oz", "-c", "words.c", "--planish-strict", PLANISH_CLANG=str(other))
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
    assert f"{other} is no clang" in strict.stderr
    assert not (place.folder / "mixed.o").exists()
    done = place.cc(*words, PLANISH_CLANG=str(other))
    assert (done.returncode, done.stderr.count("\n"), "is no clang" in done.stderr) == (0, 2, True)
    assert (place.folder / "mixed.o").read_text() == "made\n"


def test_a_search_that_crashes_leaves_clangs_object(
    words: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def crash(*_: object) -> object:
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError

    monkeypatch.setattr(optimize, "_found", crash)
    monkeypatch.setenv("PLANISH_CACHE", str(words.cache))
    monkeypatch.chdir(words.folder)
    assert main(["-Oz", "-c", "words.c"], plus=False) == 0
    assert text(words.folder / "words.o")
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert "the search died" in said
    assert "SIGSEGV" in said


def test_a_search_that_hangs_is_ended(
    words: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def hang(*_: object) -> object:
        time.sleep(60)
        raise AssertionError

    monkeypatch.setattr(optimize, "_found", hang)
    monkeypatch.setattr("planish.cc.optimize._PATIENCE_S", 0.0)
    monkeypatch.setattr("planish.cc.optimize._PATIENCE", 1.0)
    monkeypatch.setenv("PLANISH_CACHE", str(words.cache))
    monkeypatch.setenv("PLANISH_SECONDS", "0.1")
    monkeypatch.chdir(words.folder)
    assert main(["-Oz", "-c", "words.c"], plus=False) == 0
    assert "did not end" in capfd.readouterr().err


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


def test_a_defect_of_planishs_own_is_told_and_clang_compiles(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> bool:
        raise ZeroDivisionError("nobody thought of that")

    monkeypatch.setattr(driver.Compilation, "make", fail)
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
        "planish: warning: mixed.c: ZeroDivisionError: nobody thought of that; clang's result is kept\n"
    )
