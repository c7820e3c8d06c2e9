"""What `planish cc` saves, remembers and reports, and what it does where it cannot."""

import json
import os
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

from cc.conftest import Place
from planish.cc import searching
from planish.cc.command import main
from planish.llvm.backend.elf import code_bytes
from store.mounts import small_disk, write_protected

WORDS = Path(__file__).parents[2] / "examples" / "llvm" / "words.c"
ENOUGH = {"PLANISH_SECONDS": "60", "PLANISH_EVALUATIONS": "60"}
HEAVY = (
    "typing",
    "re",
    "pathlib",
    "dataclasses",
    "subprocess",
    "json",
    "numpy",
    "sqlalchemy",
    "typer",
)


@pytest.fixture
def words(place: Place) -> Place:
    """Have a source that can be made smaller."""
    place.write("words.c", WORDS.read_text())
    return place


def text(path: Path) -> int:
    return code_bytes(path.read_bytes())


def test_code_is_smaller_than_clangs_and_does_the_same(words: Place) -> None:
    words.as_clang("-Oz", "-c", "words.c", "-o", "clang.o")
    done = words.cc("-Oz", "-c", "words.c", "-o", "ours.o", "--planish-report", **ENOUGH)
    assert done.returncode == 0
    assert text(words.folder / "ours.o") < text(words.folder / "clang.o")
    assert "main: " in done.stderr
    answers: list[str] = []
    for name in ("clang", "ours"):
        words.as_clang(f"{name}.o", "-o", name)
        answers.append(words.run([f"./{name}"], "some words and words").stdout)
    assert answers[0] == answers[1] != ""


def test_a_second_time_it_is_known(words: Place) -> None:
    words.cc("-Oz", "-c", "words.c", "-o", "first.o")
    again = words.cc("-Oz", "-c", "words.c", "-o", "second.o", "--planish-report")
    assert "known" in again.stderr
    made = words.files()
    assert made["first.o"] == made["second.o"]


def test_more_time_is_a_new_search_and_less_is_none(words: Place) -> None:
    words.cc("-Oz", "-c", "words.c")
    assert "searched" in words.cc("-Oz", "-c", "words.c", "--planish-report", PLANISH_SECONDS="0.2").stderr
    assert "known" in words.cc("-Oz", "-c", "words.c", "--planish-report", PLANISH_SECONDS="0.05").stderr


def test_other_options_are_another_object(words: Place) -> None:
    words.cc("-Oz", "-c", "words.c", "-o", "plain.o")
    words.cc("-Oz", "-c", "words.c", "-o", "sections.o", "-ffunction-sections")
    assert b".text.main" in words.files()["sections.o"]


def test_what_is_known_loads_nothing_heavy(words: Place) -> None:
    words.cc("-Oz", "-c", "words.c")
    code = (
        "import sys; from planish.cc.command import main; main(sys.argv[1:], plus=False); print(*sys.modules)"
    )
    done = words.run([sys.executable, "-c", code, "-Oz", "-c", "words.c"])
    bare = words.run([sys.executable, "-c", "import sys; print(*sys.modules)"])
    loaded = set(done.stdout.split()) - set(bare.stdout.split())
    assert "planish.cc.object_cache" in loaded
    assert not loaded & set(HEAVY)


def test_a_build_is_reported_by_file_and_function(words: Place) -> None:
    report = [sys.executable, "-c", "from planish.cli import main; main()", "report", "."]
    words.cc("-Oz", "-c", "words.c", **ENOUGH)
    words.cc("-Oz", "-c", "-flto=thin", "mixed.c")
    done = words.run(report)
    assert "words.o" in done.stdout
    assert "words.c: main" in done.stdout
    assert "clang does more than -Oz for -flto=thin" in done.stdout
    (one, _) = json.loads(words.run([*report, "--format", "json"]).stdout)["sources"]
    assert one["text"][1] < one["text"][0]
    assert one["functions"][0]["passes"]


def test_a_folder_that_nothing_was_compiled_into_has_no_report(place: Place) -> None:
    done = place.run([sys.executable, "-c", "from planish.cli import main; main()", "report", "."])
    assert done.returncode == 2
    assert "planish cc" in done.stderr


def test_probes_of_build_systems_are_not_searched(place: Place) -> None:
    place.write("conftest.c", "int main(void) { return 0; }\n")
    assert place.cc("-Oz", "conftest.c", "-o", "conftest").returncode == 0
    assert not place.cache.exists()


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


def test_a_search_that_crashes_leaves_clangs_object(
    words: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def crash(*_: object) -> object:
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError

    monkeypatch.setattr(searching, "_found", crash)
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

    monkeypatch.setattr(searching, "_found", hang)
    monkeypatch.setattr("planish.cc.improving._PATIENCE_S", 0.0)
    monkeypatch.setattr("planish.cc.improving._PATIENCE", 1.0)
    monkeypatch.setenv("PLANISH_CACHE", str(words.cache))
    monkeypatch.setenv("PLANISH_SECONDS", "0.1")
    monkeypatch.chdir(words.folder)
    assert main(["-Oz", "-c", "words.c"], plus=False) == 0
    assert "did not end" in capfd.readouterr().err


def test_a_damaged_cache_is_told_once_and_mended(words: Place) -> None:
    words.cc("-Oz", "-c", "words.c", "-o", "first.o")
    (entry,) = words.cache.glob("objects/*/*")
    entry.write_bytes(entry.read_bytes()[:-5])
    done = words.cc("-Oz", "-c", "words.c", "-o", "second.o")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "damaged" in done.stderr
    assert text(words.folder / "first.o") == text(words.folder / "second.o")
    assert words.cc("-Oz", "-c", "words.c").stderr == ""


def test_a_cache_that_is_no_folder_is_told_once(words: Place) -> None:
    words.cache.write_text("a file")
    done = words.cc("-Oz", "-c", "words.c")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert text(words.folder / "words.o")


def test_a_cache_on_a_full_disk_is_told_once(words: Place) -> None:
    with small_disk(words.cache, 16):
        (words.cache / "filler").write_bytes(bytes(16 << 10))
        done = words.cc("-Oz", "-c", "words.c")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "No space left" in done.stderr
    assert text(words.folder / "words.o")


def test_a_cache_that_is_read_only_is_used(words: Place) -> None:
    words.cc("-Oz", "-c", "words.c")
    with write_protected(words.cache):
        known = words.cc("-Oz", "-c", "words.c", "--planish-report")
        new = words.cc("-Oz", "-c", "mixed.c")
    assert "known" in known.stderr
    assert (new.returncode, new.stderr.count("\n")) == (0, 1)
    assert (words.folder / "mixed.o").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_two_users_share_a_cache(words: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    words.cache.mkdir()
    words.cache.chmod(0o1777)
    words.folder.chmod(0o777)
    for folder in words.folder.parents:
        if Path(tempfile.gettempdir()) in folder.parents:  # those above are not the test's
            folder.chmod(folder.stat().st_mode | 0o055)
    words.cc("-Oz", "-c", "words.c", "-o", "root.o")
    monkeypatch.chdir(words.folder)
    monkeypatch.setenv("PLANISH_CACHE", str(words.cache))
    monkeypatch.setenv("PLANISH_SECONDS", "0.1")
    child = os.fork()
    if not child:
        try:
            os.setuid(65534)
            os._exit(main(["-Oz", "-c", "words.c", "-o", "other.o", "--planish-strict"], plus=False))
        finally:
            os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (words.folder / "other.o").stat().st_uid == 65534
    assert words.files()["root.o"] == words.files()["other.o"]
    assert len(list(words.cache.glob("objects/*/*"))) == 1
    assert {path.stat().st_uid for path in words.cache.glob("builds/*/*")} == {0, 65534}
