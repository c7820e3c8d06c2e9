"""Reading regular files only."""

import os
from pathlib import Path

import pytest

from planish.core.files import check_regular, copy_regular, read_regular


def test_a_regular_file_is_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "b").symlink_to("a")
    check_regular(tmp_path / "b")
    assert read_regular(tmp_path / "b") == b"content"


def test_what_could_be_waited_for_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, kind in ((tmp_path / "fifo", "FIFO"), (Path("/dev/zero"), "device"), (tmp_path, "folder")):
        with pytest.raises(OSError, match=f"it is a {kind}, not a regular file") as raised:
            read_regular(path)
        assert raised.value.strerror == f"it is a {kind}, not a regular file"
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "missing")


def test_a_copy_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "b").symlink_to("a")
    copy_regular(tmp_path / "a", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"content"
    with pytest.raises(OSError, match="symbolic links"):
        copy_regular(tmp_path / "b", tmp_path / "other")
    assert not (tmp_path / "other").exists()
