"""Files that are replaced as a whole."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from planish.core.files import replace_text, replacing


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
    pipe, said = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: said.append(pipe.read_text()))
    reader.start()
    replace_text(pipe, "through")
    reader.join(10)
    assert said == ["through"]
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
