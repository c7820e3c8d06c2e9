"""Builds that are broken off, in processes of their own."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from planish.core import PlanishError
from planish.levels.llvm.clang import VARIABLE, Compiler
from planish.train.corpus.reader import read_corpus
from train.corpus.sources import Build, numbered, write

FILES = 2
LIMIT_S = 100.0
SLOW = """#!/bin/sh
case "$*" in *endless*) sleep 1000 ;; esac
exec {command} "$@"
"""


@pytest.fixture
def folders(tmp_path: Path, compiler: Compiler) -> list[Path]:
    """Make packages; a slow compiler does not get done with the last."""
    del compiler
    names = ["a", "b", "endless"]
    return [
        write(tmp_path / name, **{f"x{j}": numbered(100 * i + j) for j in range(FILES)})
        for i, name in enumerate(names)
    ]


@pytest.fixture
def slow(tmp_path: Path, compiler: Compiler) -> Path:
    """Make a compiler that is like the real one, but slow."""
    script = tmp_path / "bin" / compiler.name
    script.parent.mkdir()
    script.write_text(SLOW.format(command=" ".join(compiler.command)))
    script.chmod(0o755)
    return script


def command(out: Path, folders: list[Path]) -> list[str]:
    words = [word for folder in folders for word in ("--folder", str(folder))]
    return [
        sys.executable,
        "-c",
        "from planish.cli.script import main; main()",
        "corpus",
        "build",
        str(out),
        "--jobs",
        "2",
        *words,
    ]


def start(out: Path, folders: list[Path], compiler: Path | str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(out, folders),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, VARIABLE: str(compiler)},
    )


def finished(out: Path) -> int:
    """Count the packages that the manifest says are done."""
    try:
        return len(json.loads((out / "manifest.json").read_text())["packages"])
    except FileNotFoundError:
        return 0


def until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def members(session: int) -> Iterator[int]:
    """List the living processes of a session."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, _, _, theirs = (entry / "stat").read_text().rpartition(") ")[2].split()[:4]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(theirs) == session and state != "Z":
                yield int(entry.name)


def check_whole(out: Path, folders: list[Path], kept: int) -> None:
    """Go on with a build, which must leave what was done as it is."""
    times = {path.name: path.stat().st_mtime_ns for path in (out / "raw").glob("*.parquet")}
    assert len(times) >= kept
    done = subprocess.run(command(out, folders), capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    names = {row.function for row in read_corpus(out)}
    assert names == {f"f{100 * i + j}" for i in range(len(folders)) for j in range(FILES)}
    same = [name for name, then in times.items() if (out / "raw" / name).stat().st_mtime_ns == then]
    assert len(same) >= kept
    assert not list(out.rglob("*.part"))


def test_killed_and_gone_on(folders: list[Path], slow: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(out, folders, slow)
    until(lambda: finished(out) == 2)
    process.kill()
    process.communicate()
    until(lambda: not list(members(process.pid)))  # its workers and their compilers end as well
    with pytest.raises(PlanishError, match="is an unfinished corpus"):
        list(read_corpus(out))
    check_whole(out, folders, 2)


def test_interrupted_and_gone_on(folders: list[Path], slow: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(out, folders, slow)
    until(lambda: finished(out) == 2)
    os.killpg(process.pid, signal.SIGINT)
    _, message = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert message == f"planish: error: stopped; {out} has what is done. Run the same command to resume.\n"
    until(lambda: not list(members(process.pid)))
    check_whole(out, folders, 2)


def test_no_room_and_gone_on(build: Build, tmp_path: Path) -> None:
    out, sources = tmp_path / "out", [write(tmp_path / n, x=numbered(i)) for i, n in enumerate("ab")]
    build(out, sources[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))
    try:
        with pytest.raises(PlanishError, match=r"cannot write .*out: File too large\. .*resumes it"):
            build(out, *sources)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(list(out.rglob("*.parquet"))) == 2  # raw and data of the first
    assert not list(out.rglob("*.part"))
    build(out, *sources)
    assert {row.function for row in read_corpus(out)} == {"f0", "f1"}


def test_a_folder_that_cannot_be_made(build: Build, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlanishError, match="Not a directory"):
        build(tmp_path / "file" / "out", write(tmp_path / "a", x=numbered(1)))
