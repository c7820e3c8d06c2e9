"""A disk cache that processes share: entries are there whole or not at all, and never more than fit."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planish.core.disk_cache import DiskCache
from planish.sandbox.shared_cache import shared_cache


def test_an_entry_is_read_back_and_replaced(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    assert cache.get("a") is None
    assert cache.find("a") is None
    assert cache.put("a", b"one") == tmp_path / "a"
    assert cache.put("a", b"two") == cache.find("a") == tmp_path / "a"
    assert cache.get("a") == b"two"
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("damaged", [b"", b'{"a"', b"\xff", b"\0\0\0"])
def test_damaged_json_counts_as_not_there(tmp_path: Path, damaged: bytes) -> None:
    cache = DiskCache(tmp_path)
    cache.put_json("a", {"seconds": [0.5]})
    assert cache.get_json("a") == {"seconds": [0.5]}
    cache.put("a", damaged)
    assert cache.get_json("a") is None


def test_the_oldest_entries_go_where_room_is_lacking(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, capacity=100)
    for number, key in enumerate("abc"):
        cache.put(key, bytes(40))
        os.utime(tmp_path / key, (number, number))
    assert [cache.find(key) is not None for key in "abc"] == [False, True, True]
    assert cache.put("d", bytes(101)) is None
    assert cache.get("d") is None


def test_entries_stay_where_the_cache_does_not_evict(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, capacity=100, evicts=False)
    assert cache.put("a", bytes(60))
    assert cache.put("b", bytes(60)) is None
    assert cache.get("a") == bytes(60)
    assert cache.put("c", bytes(40))


def test_a_folder_that_is_gone_keeps_nothing(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    assert cache.put("a", b"one") is None
    assert cache.get("a") is None


def test_a_link_or_fifo_in_the_folder_is_no_entry(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("0.5")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "fifo")
    cache = DiskCache(tmp_path)
    for key in ("link", "fifo"):
        assert cache.find(key) is None
        assert cache.get(key) is None


def test_a_process_that_is_killed_while_it_writes_leaves_the_old_entry(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom planish.core.disk_cache import DiskCache\n"
        "Path.replace = lambda *_: os.kill(os.getpid(), 9)\n"
        "DiskCache(Path(sys.argv[1])).put('a', b'new')\n"
    )
    cache = DiskCache(tmp_path)
    cache.put("a", b"old")
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    assert cache.get("a") == b"old"


def test_a_shared_cache_ends_with_the_object_that_made_it() -> None:
    cache = shared_cache(capacity=1000)
    sent: DiskCache = pickle.loads(pickle.dumps(cache))
    sent.put("a", b"one")
    assert cache.get("a") == b"one"
    assert (sent.capacity, sent.evicts) == (1000, True)
    folder = cache.folder
    del sent
    assert folder.exists()
    del cache
    assert not folder.exists()


def test_a_shared_cache_may_be_removed_by_others() -> None:
    cache = shared_cache()
    shutil.rmtree(cache.folder)
    assert cache.put("a", b"one") is None
    assert cache.get("a") is None
