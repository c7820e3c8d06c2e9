"""What is known without clang: when nothing that a compilation reads is another than it was."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from cc.conftest import Place
from planish.cc.arguments import Invocation, Source
from planish.cc.clang import Compiler, Unit
from planish.cc.manifest import Manifest
from planish.cc.object_cache import ObjectCache
from planish.cc.reading import TOOLCHAINS, Reading

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
    clang = place.folder.parent / "clang"
    clang.write_text(
        f'#!/bin/sh\n[ -e "{place.folder.parent}/off" ] && exit 77\nexec {place.clang.path} "$@"\n'
    )
    clang.chmod(0o755)
    place.environment["PLANISH_CLANG"] = str(clang)
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


def test_a_header_that_is_found_first_is_another_compilation(read: Place) -> None:
    read.cc(*COMPILE)
    read.write("first/value.h", "#define VALUE 12\n")
    assert not known(read)


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


def test_a_header_in_a_folder_of_a_variable_may_be_found_first(read: Place) -> None:
    """CPATH comes before the system's folders."""
    (read.folder / "more").mkdir()
    read.write("value.c", "#include <limits.h>\nint value(void) { return INT_MAX; }\n")
    settle()
    read.cc(*COMPILE, CPATH="more")
    assert known(read, CPATH="more")
    read.write("more/limits.h", "#define INT_MAX 3\n")
    assert not known(read, CPATH="more")


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


def test_a_header_that_is_asked_for_may_come(read: Place) -> None:
    read.write("value.c", SOURCE + '#if __has_include("more.h")\nint more;\n#endif\n')
    settle()
    read.cc(*COMPILE)
    assert known(read)
    read.write("second/more.h", "")
    assert not known(read)


def test_a_precompiled_header_beside_is_another_compilation(read: Place) -> None:
    words = (*COMPILE, "-include", "second/value.h")
    read.cc(*words)
    assert known(read, words)
    read.write("second/value.h.pch", "")
    assert not known(read, words)


def test_another_installation_of_gcc_is_another_compilation(
    read: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """clang takes the headers of C++ from the newest one."""
    toolchains = tmp_path / "gcc"
    toolchains.mkdir()
    monkeypatch.chdir(read.folder)
    unit = Unit(*unit_of(read))
    direct = Manifest(unit, ObjectCache(str(read.cache)))
    direct.put("key", reading := Reading(unit, time.time_ns()))
    assert TOOLCHAINS in reading.toolchains
    assert direct.get() == ("key", b"")
    reading.toolchains.add(os.fsencode(toolchains))
    direct.put("key", reading)
    assert direct.get() == ("key", b"")
    (toolchains / "13").mkdir()
    assert direct.get() is None


def unit_of(place: Place) -> tuple[Compiler, Invocation, Source, str, str]:
    invocation = Invocation(list(COMPILE))
    return place.clang, invocation, invocation.sources[0], "value.o", "value.o"


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
