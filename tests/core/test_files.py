"""Reading, writing and naming of files."""

from __future__ import annotations

import os
import pickle
import resource
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from planish.core.files import (
    DAMAGED,
    check_regular,
    copy_regular,
    read_regular,
    register_file,
    replace_text,
    replacing,
    why,
)


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    replace_text(file, "old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            replace_text(file, "x" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with pytest.raises(KeyboardInterrupt):
        _interrupted(file)
    assert file.read_text() == "old"
    assert [*tmp_path.iterdir()] == [file]


def _interrupted(file: Path) -> None:
    with replacing(file) as part:
        part.write_text("half")
        raise KeyboardInterrupt


def test_links_and_modes_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "a.json", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    replace_text(link, "new")
    assert link.is_symlink()
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new", 0o640)


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 255)
    replace_text(file, "new")
    assert file.read_text() == "new"


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        replace_text(tmp_path, "new")
    assert [*tmp_path.iterdir()] == []


def test_a_pipe_and_the_output_are_written_to_themselves(tmp_path: Path) -> None:
    pipe, received = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    replace_text(pipe, "through")
    reader.join(10)
    assert received == ["through"]
    code = (
        "from pathlib import Path; from planish.core.files import replace_text;"
        "replace_text(Path('/dev/stdout'), 'one'); print(' two')"
    )
    with (tmp_path / "out.txt").open("a") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out.txt").read_text() == "one two\n"


def test_two_at_once_leave_one_whole(tmp_path: Path) -> None:
    file = tmp_path / "a"
    with replacing(file) as one, replacing(file) as other:
        one.write_text("one")
        other.write_text("other")
    assert file.read_text() == "one"
    assert [*tmp_path.iterdir()] == [file]


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


DIGEST = "0123456789abcdef" * 2


@pytest.mark.parametrize("name", [b"weights.npz", b"two\r\nlines", b"no text \xff"])
def test_a_file_is_found_whatever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: bytes
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    register_file(DIGEST, tmp_path / os.fsdecode(name))
    program = f"import os; from planish.core import resolve_file; print(ascii(resolve_file({DIGEST!r})))"
    found = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert found == f"{str(tmp_path / os.fsdecode(name))!a}\n", "in the next process"


CONTENTS = {
    "missing": (None, "No such file or directory"),
    "text": (b"no arrays\n", "it is not a file of arrays"),
    "pickled": (pickle.dumps([1, 2]), "it is not a file of arrays"),
    "empty": (b"", "No data left in file"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_what_is_wrong_is_said_to_people(name: str, tmp_path: Path) -> None:
    content, described = CONTENTS[name]
    path = tmp_path / "a.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DAMAGED) as raised, path.open("rb") as file:
        np.load(file, allow_pickle=False)
    assert why(raised.value) == described


def test_an_array_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.zeros(2))
    with pytest.raises(KeyError) as raised, np.load(path) as held:
        _ = held["y"]
    assert "it lacks" in why(raised.value)
