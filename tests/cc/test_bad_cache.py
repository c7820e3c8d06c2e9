"""Caches that are damaged, full, read-only, or shared: one warning at most, and the object is there."""

import os
import tempfile
from pathlib import Path

import pytest

from cc.conftest import Place, text
from planish.cc.command import main
from store.mounts import small_disk, write_protected


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
