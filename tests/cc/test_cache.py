"""The object cache: hits without clang, and caches that are damaged, full, read-only, or shared."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from cc.conftest import Place, text
from planish.cc.arguments import Invocation
from planish.cc.clang import Unit
from planish.cc.command import main
from planish.cc.job import TOOLCHAINS, Manifest, Reading
from planish.cc.object_cache import CachedObject, ObjectCache, atomic_write, digest
from store.mounts import small_disk, write_protected

KEY = digest(b"a key")


def entry(seconds: float = 2.0, evaluations: int = 0) -> CachedObject:
    return CachedObject(seconds, evaluations, b'{"text": [2, 1]}', b"\x7fELF code", has_diagnostics=True)


def test_what_is_put_is_there(tmp_path: Path) -> None:
    ObjectCache(str(tmp_path / "new")).keep(KEY, entry())
    found = ObjectCache(str(tmp_path / "new")).get(KEY)
    assert found is not None
    assert (found.seconds, found.evaluations, found.about, found.code, found.has_diagnostics) == (
        *(2.0, 0, b'{"text": [2, 1]}', b"\x7fELF code"),
        True,
    )
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700  # a new folder is the user's alone


def test_what_cost_less_than_is_asked_for_is_not_enough() -> None:
    assert entry(2.0).is_enough(2.0, 0)
    assert entry(2.0).is_enough(1.0, 50)
    assert not entry(2.0).is_enough(20.0, 0)
    assert not entry(2.0, 50).is_enough(2.0, 0)
    assert entry(2.0, 50).is_enough(2.0, 10)


def test_a_folder_that_is_open_to_others_stays_so(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    ObjectCache(str(shared)).keep(KEY, entry())
    assert {path.stat().st_mode & 0o777 for path in shared.rglob("*") if path.is_dir()} == {0o777}


def test_damage_is_noticed_and_repaired(tmp_path: Path) -> None:
    cache = ObjectCache(str(tmp_path))
    cache.keep(KEY, entry())
    (path,) = tmp_path.glob("objects/*/*")
    for damage in (b"", b"nonsense\n", path.read_bytes()[:-1], path.read_bytes()[:-1] + b"X"):
        path.write_bytes(damage)
        again = ObjectCache(str(tmp_path))
        assert again.get(KEY) is None
        assert "damaged" in again.error
    cache.keep(KEY, entry())
    assert cache.get(KEY) is not None


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with write_protected(tmp_path):
        cache = ObjectCache(str(tmp_path / "cache"))
        cache.keep(KEY, entry())
    assert "cannot be written" in cache.error


def test_an_interrupt_that_comes_when_a_file_is_whole_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def interrupted(old: str, new: str) -> None:
        replace(old, new)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        atomic_write(str(tmp_path / "x"), b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may number processes anew")
def test_what_a_container_left_half_written_is_harmless(tmp_path: Path) -> None:
    """Processes of containers have the same numbers again and again."""
    load, writes = "import os, planish.cc.object_cache as w", f"w.atomic_write('{tmp_path}/x', b'x')"
    for before in ("os.replace = lambda *_: os._exit(7)", ""):
        command = ["unshare", "--pid", "--fork", sys.executable, "-c", f"{load}\n{before}\n{writes}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "unshare failed" in done.stderr:
            pytest.skip(done.stderr)
        assert (done.returncode, done.stderr) == (0 if not before else 7, "")
    assert (tmp_path / "x").read_bytes() == b"x"


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64):
        cache = ObjectCache(str(tmp_path / "disk"))
        cache.keep(KEY, CachedObject(1.0, 0, b"{}", bytes(1 << 20), has_diagnostics=False))
        assert "No space left" in cache.error
        assert not [path for path in (tmp_path / "disk").rglob("*") if path.is_file()]


def test_in_a_cache_that_is_full_the_oldest_objects_go(tmp_path: Path) -> None:
    cache = ObjectCache(str(tmp_path), largest=250)
    keys = [f"ab{number}" for number in range(4)]
    for age, key in enumerate(keys):
        cache.keep(key, CachedObject(1.0, 0, b"", bytes(20), has_diagnostics=False))
        os.utime(tmp_path / "objects" / "ab" / key[2:], (age, age))
    assert [key for key in keys if cache.get(key)] == keys[2:]
    cache.keep(
        keys[0], CachedObject(1.0, 0, b"", bytes(1000), has_diagnostics=False)
    )  # alone too large, and new
    assert [key for key in keys if cache.get(key)] == keys[:1]
    assert cache.error == ""


SOURCE = '#include "value.h"\nint value(void) { return VALUE; }\n'
COMPILE = ("-Oz", "-c", "-Ifirst", "-Isecond", "value.c")


@pytest.fixture
def read(place: Place) -> Place:
    """Have a source that reads a header, compiled once, and a clang that cannot be started any more."""
    place.environment["PLANISH_EVALUATIONS"] = "1"
    (place.folder / "first").mkdir()
    place.write("second/value.h", "#define VALUE 11\n")
    place.write("value.c", SOURCE)
    settle()
    place.wrap_clang(f'[ -e "{place.folder.parent}/off" ] && exit 77')
    return place


def settle() -> None:
    """Wait until files that were written are older than what is read from now on."""
    time.sleep(0.02)


def known(place: Place, words: Sequence[str] = COMPILE, **more: str) -> bool:
    """Tell whether something is compiled though there is no clang."""
    off = place.folder.parent / "off"
    off.touch()
    done = place.cc(*words, **more)
    off.unlink()
    return done.returncode == 0


def test_clang_is_not_started_where_all_is_as_it_was(read: Place) -> None:
    words = (*COMPILE, "-MD", "-o", "a b.o")
    assert read.cc(*words).stderr == ""
    made = read.files()
    for name in ("a b.o", "a b.d"):
        (read.folder / name).unlink()
    assert known(read, words)
    assert read.files() == made


def test_another_content_is_another_compilation(read: Place) -> None:
    read.cc(*COMPILE)
    for name in ("value.c", "second/value.h"):
        path = read.folder / name
        before = path.read_text()
        path.write_text(before + "\n")
        assert not known(read)
        path.write_text(before)
        assert known(read)


def test_a_header_beside_that_was_there_before_is_none(read: Place) -> None:
    read.write("third/value.h", "#define VALUE 13\n")
    settle()
    words = (*COMPILE, "-Ithird")
    read.cc(*words)
    assert known(read, words)


@pytest.mark.parametrize("words", [("-DX",), ("-MD",), ("-o", "other.o", "-MD")])
def test_other_words_are_another_compilation(read: Place, words: tuple[str, ...]) -> None:
    read.cc(*COMPILE)
    assert not known(read, (*COMPILE, *words))


def test_variables_of_clangs_are_another_compilation(read: Place) -> None:
    read.cc(*COMPILE)
    assert known(read)
    assert not known(read, CPATH="first")
    assert not known(read, DEPENDENCIES_OUTPUT="deps")


LIMITS = "#include <limits.h>\nint value(void) { return INT_MAX; }\n"
ASKS = SOURCE + '#if __has_include("more.h")\nint more;\n#endif\n'


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(
    ("source", "words", "path", "appears"),
    [
        (SOURCE, "", "", "first/value.h"),
        (LIMITS, "", "first", "first/limits.h"),  # CPATH comes before the system's folders
        (ASKS, "", "", "second/more.h"),
        (SOURCE, "-include second/value.h", "", "second/value.h.pch"),
    ],
    ids=["found first", "in a folder of a variable", "asked for", "precompiled"],
)
def test_a_header_that_appears_is_another_compilation(
    read: Place, source: str, words: str, path: str, appears: str
) -> None:
    read.write("value.c", source)
    settle()
    command = (*COMPILE, *words.split())
    read.cc(*command, CPATH=path)
    assert known(read, command, CPATH=path)
    read.write(appears, "")
    assert not known(read, command, CPATH=path)


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(
    "source",
    [
        "const char *when = __TIME__;\n",
        'asm(".incbin \\"value.c\\"");\n',
        '#define MORE "more.h"\n#if __has_include(MORE)\nint more;\n#endif\n',
        "#define JOIN(a, b) a##b\n#define DATE(a, b) JOIN(a, b)\nconst char *when = DATE(__DA, TE__);\n",
    ],
)
def test_what_files_do_not_tell_is_asked_each_time(read: Place, source: str) -> None:
    read.write("value.c", SOURCE + source)
    settle()
    assert read.cc(*COMPILE).returncode == 0
    assert not known(read)


def test_another_installation_of_gcc_is_another_compilation(
    read: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """clang takes the headers of C++ from the newest one."""
    toolchains = tmp_path / "gcc"
    toolchains.mkdir()
    monkeypatch.chdir(read.folder)
    invocation = Invocation(list(COMPILE))
    unit = Unit(read.clang, invocation, invocation.sources[0], "value.o", "value.o")
    direct = Manifest(unit, ObjectCache(str(read.cache)))
    direct.put("key", reading := Reading(unit, time.time_ns()))
    assert TOOLCHAINS in reading.toolchains
    assert direct.get() == ("key", b"")
    reading.toolchains.add(os.fsencode(toolchains))
    direct.put("key", reading)
    assert direct.get() == ("key", b"")
    (toolchains / "13").mkdir()
    assert direct.get() is None


def test_warnings_are_said_each_time(read: Place) -> None:
    read.write("value.c", SOURCE + "int f(void) { int unused; return 1; }\n")
    settle()
    first = read.cc(*COMPILE, "-Wall").stderr
    assert "unused variable" in first
    assert read.cc(*COMPILE, "-Wall").stderr == first


def test_what_was_changed_meanwhile_is_not_kept(read: Place) -> None:
    ahead = time.time() + 60
    os.utime(read.folder / "second/value.h", (ahead, ahead))
    read.cc(*COMPILE)
    assert not known(read)


def test_a_damaged_record_is_made_anew(read: Place) -> None:
    read.cc(*COMPILE)
    (record,) = read.cache.glob("direct/*/*")
    record.write_bytes(record.read_bytes()[:-3])
    assert not known(read)
    assert read.cc(*COMPILE).stderr == ""
    assert known(read)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("left", [-5, 100])
def test_a_damaged_cache_is_reported_once_and_written_again(words: Place, left: int) -> None:
    words.cc("-Oz", "-c", "words.c", "-o", "first.o")
    (entry,) = words.cache.glob("objects/*/*")
    entry.write_bytes(entry.read_bytes()[:left])
    done = words.cc("-Oz", "-c", "words.c", "-o", "second.o")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "damaged" in done.stderr
    assert text(words.folder / "first.o") == text(words.folder / "second.o")
    assert words.cc("-Oz", "-c", "words.c").stderr == ""


def test_a_cache_that_is_no_folder_is_reported_once(words: Place) -> None:
    words.cache.write_text("a file")
    done = words.cc("-Oz", "-c", "words.c")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert text(words.folder / "words.o")


def test_a_cache_on_a_full_disk_is_reported_once(words: Place) -> None:
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_two_users_share_a_cache(
    words: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], mask: int
) -> None:
    words.cache.mkdir()
    words.cache.chmod(0o1777)
    words.folder.chmod(0o777)
    for folder in words.folder.parents:
        if Path(tempfile.gettempdir()) in folder.parents:  # those above are not the test's
            folder.chmod(folder.stat().st_mode | 0o055)
    before = os.umask(mask)
    words.cc("-Oz", "-c", "words.c", "-o", "root.o")
    os.umask(before)
    (words.folder / "root.o").chmod(0o644)
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
    assert capfd.readouterr().err == ""
    assert (words.folder / "other.o").stat().st_uid == 65534
    assert words.files()["root.o"] == words.files()["other.o"]
    assert len(list(words.cache.glob("objects/*/*"))) == 1
    assert {path.stat().st_uid for path in words.cache.glob("builds/*/*")} == {0, 65534}
