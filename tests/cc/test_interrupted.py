"""Ctrl-C, and what make and terminals send, in the middle of a compilation, a make and a timed link."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cc.conftest import CC, WORDS, Place, text
from levels.llvm.modules import require_linker
from planish.cc.clang import run
from planish.core import TargetError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.hot.lists import BEGIN, USUAL, pipeline

SPINS = """
#include <stdio.h>
__attribute__((noinline)) unsigned turned(unsigned x, int n) {
    for (int i = 0; i < n; i++) x = x * 31 + (x >> 3) + i;
    return x;
}
int main(int count, char **words) { (void)words; printf("%u\\n", turned(count, 20000000)); return 0; }
"""


def processes_of(session: int) -> Iterator[str]:
    """Name what still runs in a session."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            before, _, after = stat.read_text().rpartition(")")
        except OSError:
            continue
        if int(after.split()[3]) == session and after.split()[0] != "Z":
            yield before.partition("(")[2]


def wait_until(true: Callable[[], bool], seconds: float = 120) -> bool:
    """Wait for something that shall happen; tell whether it did."""
    deadline = time.monotonic() + seconds
    while not (happened := true()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return happened


class Interrupted:
    """A command in a session of its own, to which a signal is sent once something is so.

    Args:
        place: where it runs; its temporary files have a folder of their own.
        command: it.
        number: the signal.
        when: is asked with the session whether it is time.
        more: variables.
    """

    def __init__(
        self,
        place: Place,
        command: list[str],
        number: signal.Signals,
        when: Callable[[int], bool],
        **more: str,
    ) -> None:
        temporary = place.folder.parent / "temporary"
        temporary.mkdir()
        variables = {**place.environment, **more, "TMPDIR": str(temporary)}
        with subprocess.Popen(
            command, cwd=place.folder, env=variables, start_new_session=True, stdout=-1, stderr=-1
        ) as running:
            self.was_time = wait_until(lambda: when(running.pid))
            time.sleep(0.3)
            os.killpg(running.pid, number)
            running.communicate(timeout=240)
        self.code = running.returncode
        wait_until(lambda: not list(processes_of(running.pid)), 30)
        self.survivors = list(processes_of(running.pid))
        folders = (place.folder, place.cache, temporary)
        names = (path for folder in folders for path in folder.rglob("*"))
        self.half_written = [
            path for path in names if path.is_relative_to(temporary) or path.suffix in (".part", ".tmp")
        ]


def test_clang_does_not_outlive_its_parent(place: Place, tmp_path: Path) -> None:
    slow = tmp_path / "clang"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)

    def is_at_work(session: int) -> bool:
        return "sleep" in processes_of(session)

    done = Interrupted(
        place, [*CC, "-Oz", "-c", "mixed.c"], signal.SIGTERM, is_at_work, PLANISH_CLANG=str(slow)
    )
    assert (done.was_time, done.code, done.survivors) == (True, -signal.SIGTERM, [])


def test_an_interrupt_that_comes_when_clang_has_just_ended_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends both at the same moment."""
    wait = os.waitid

    def interrupted(*words: int) -> None:
        wait(*words)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "waitid", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(["/bin/true"])
    with suppress(ChildProcessError):  # there is no other child
        assert os.waitpid(-1, os.WNOHANG) == (0, 0), "one that has ended was not waited for"


IN_A_FORK = """
import os, signal, time
from planish.cc.interrupts import Stoppable
os.register_at_fork(after_in_parent=lambda: signal.raise_signal(signal.SIGTERM))
try:
    with Stoppable():
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        time.sleep(1000)  # the signal ends the wait
except KeyboardInterrupt as error:
    assert error.args == (signal.SIGTERM,)
else:
    raise AssertionError("the signal is lost")
"""


def test_a_signal_that_comes_while_a_process_is_forked_is_not_lost() -> None:
    """Python ignores what is raised in the functions that it calls around a fork."""
    done = subprocess.run([sys.executable, "-c", IN_A_FORK], capture_output=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_the_next_build_goes_on_from_what_was_found_before_an_interrupt(words: Place) -> None:
    command = ["-Oz", "-c", "words.c"]
    few = {"PLANISH_SECONDS": "60", "PLANISH_EVALUATIONS": "1"}
    assert not words.cc(*command, PLANISH_CACHE=str(words.folder / "other"), **few).returncode
    fresh = text(words.folder / "words.o")

    def has_kept(_: int) -> bool:
        """Return whether some sixty evaluations are kept; the first of them is that of `few`."""
        return any(file.stat().st_size > 2000 for file in words.cache.glob("searches/*/*"))

    done = Interrupted(words, [*CC, *command], signal.SIGINT, has_kept, PLANISH_SECONDS="60")
    assert (done.was_time, done.code, done.survivors) == (True, -signal.SIGINT, [])
    assert not words.cc(*command, **few).returncode
    assert text(words.folder / "words.o") < fresh


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_make_leaves_nothing_half_written(place: Place, number: signal.Signals) -> None:
    objects = [f"copy{i}.o" for i in range(4)]
    for i, name in enumerate(objects):
        place.write(name.replace(".o", ".c"), f"int number{i} = {i};\n" + WORDS.read_text())
    rule = "%.o: %.c\n\t$(CC) -Oz -MD -c $< -o $@\n"
    place.write("Makefile", f"all: {' '.join(objects)}\n{rule}")
    wrapper = place.write("planish cc", f'#!/bin/sh\nexec {shlex.join(CC)} "$@"\n')
    wrapper.chmod(0o755)
    make = ["make", "-j2", "CC='./planish cc'"]
    done = Interrupted(
        place, make, number, lambda _: bool(list(place.folder.glob("*.o"))), PLANISH_SECONDS="60"
    )
    assert (done.was_time, done.survivors, done.half_written) == (True, [], [])
    assert done.code != 0
    for path in place.folder.glob("*.o"):
        try:
            assert text(path)
        except TargetError:
            pytest.fail(f"{path} is half written")
    again = place.run(make)
    assert again.returncode == 0
    assert all((place.folder / name).exists() for name in objects)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_timed_link_leaves_clangs_program(place: Place, number: signal.Signals) -> None:
    require_linker()
    if not open_bindings().full or not open_bindings().runs(f"{BEGIN},{pipeline(USUAL)}"):
        pytest.skip("this LLVM lacks passes of -O3 that are needed")
    place.write("spins.c", SPINS)
    run = {"PLANISH_RUN": "./program", "PLANISH_SECONDS": "600"}
    compiled = place.cc("-O2", "-c", "spins.c", "--planish-objective", "time", **run)
    assert (compiled.returncode, compiled.stderr) == (0, "")
    place.as_clang("spins.o", "-o", "clangs")
    before = place.files()
    link = ["spins.o", "-o", "program", "--planish-objective", "time"]

    temporary = place.folder.parent / "temporary"

    def programs() -> list[Path]:
        """List the programs that are run in folders of the search; workers have sessions of their own."""
        found = list[Path]()
        for process in Path("/proc").glob("[0-9]*/exe"):
            with suppress(OSError):
                found.append(process.readlink())
        return [path for path in found if path.is_relative_to(temporary) and path.name == "program"]

    def is_measured(_: int) -> bool:
        return bool(programs())

    done = Interrupted(place, [*CC, *link], number, is_measured, **run)
    assert (done.was_time, done.code, done.survivors, done.half_written) == (True, -number, [], [])
    assert programs() == []
    assert place.files() == {**before, "program": before["clangs"]}
    again = place.cc(*link, **{**run, "PLANISH_SECONDS": "0"})
    assert (again.returncode, again.stderr) == (0, "")
    assert place.run(["./program"]).stdout == place.run(["./clangs"]).stdout != ""


def test_an_interrupted_link_of_a_whole_program_leaves_clangs(place: Place) -> None:
    for name in ("mixed", "main"):
        assert place.cc("-Oz", "-flto", "-c", f"{name}.c").returncode == 0
    link = ("-Oz", "-flto", "main.o", "mixed.o", "-o")
    if place.as_clang(*link, "clangs").returncode:
        pytest.skip("clang does not link bitcode here")
    before = place.files()

    def is_searched(_: int) -> bool:
        return bool(list((place.cache / "searches").glob("*/*")))

    more = {"PLANISH_SECONDS": "600"}
    done = Interrupted(place, [*CC, *link, "program"], signal.SIGINT, is_searched, **more)
    assert (done.was_time, done.code, done.survivors, done.half_written) == (True, -signal.SIGINT, [], [])
    assert place.files() == {**before, "program": before["clangs"]}
