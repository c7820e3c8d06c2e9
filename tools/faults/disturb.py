"""The disturbances: what befalls a search, and what is asked of it then."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path

from faults.running import Session, Tally, processes
from planish.core import StoreError
from planish.store import open_store
from store.mounts import grow, small_disk
from store.servers import Cluster, administer, as_text, installed, new_cluster

PAUSE = ("--option", "pause=0.005", "--workers", "2")
POSTGRES = installed() or Path("postgresql")
LONGEST_S = 60.0
STOPPED = (0, 130, 129, 143)
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def kills(folder: Path, dice: random.Random) -> Generator[Tally]:
    """Kill the command at any moment; it goes on from what it had stored."""
    session = Session(folder, str(folder / "planish.db"))
    while True:
        with session.start(*PAUSE, "--trials", "100000") as process:
            time.sleep(dice.uniform(0.0, 1.5))
            process.kill()
        yield session.check(Tally(1))


def signals(folder: Path, dice: random.Random) -> Generator[Tally]:
    """Ask the command to end, once or twice, by each signal that means so."""
    for number in ENDING:
        if signal.getsignal(number) == signal.SIG_IGN:  # as a shell's background job has it, and its children
            signal.signal(number, signal.SIG_DFL)
    session = Session(folder, str(folder / "planish.db"))
    while True:
        tally = Tally()
        with session.start(*PAUSE, "--trials", "100000") as process:
            assert process.stdout is not None
            process.stdout.readline()  # before, Python itself answers signals
            for _ in range(dice.choice((1, 1, 2))):
                time.sleep(dice.uniform(0.0, 1.5))
                process.send_signal(dice.choice(ENDING))
                tally.events += 1
            _ended(process, STOPPED, tally)
        yield session.check(tally)


def workers(folder: Path, dice: random.Random) -> Generator[Tally]:
    """Kill and stop worker processes; no candidate may be blamed for it."""
    while True:
        session = Session.new(folder)
        with session.start(*PAUSE, "--seconds", "10") as process:
            tally = Tally(_hit_workers(session, process, dice))
            _ended(process, (0,), tally)
        yield session.check(tally)


def comparisons(folder: Path, dice: random.Random) -> Generator[Tally]:
    """Kill a worker while the comparison starts, or is under way; the comparison is made all the same."""
    while True:
        tally, session = Tally(1), Session.new(folder)
        with session.start("--option", "pause=0.05", "--workers", "1", "--trials", "12") as process:
            assert process.stderr is not None
            while (line := process.stderr.readline()) and not line.startswith("comparing the best"):
                pass
            time.sleep(dice.choice((0.0, dice.uniform(0.0, 1.5))))
            for pid in [pid for pid, _ in processes(session.mark) if pid != process.pid]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            _ended(process, (0,), tally)
        session.check(tally)
        if not session.compared():
            tally.blame(f"{session.store}: the best is not compared with the baseline")
        yield tally


def _hit_workers(session: Session, process: subprocess.Popen[str], dice: random.Random) -> int:
    """Hit a worker, now and then, while the command lives; return the number of blows.

    Between two blows something is measured: workers that are killed again and again before they begin are
    an error, as where there is too little memory for one.
    """
    blows, end, known = 0, time.monotonic() + 9.0, -1
    while process.poll() is None and time.monotonic() < end:
        time.sleep(dice.uniform(0.3, 1.2))
        others = [pid for pid, _ in processes(session.mark) if pid != process.pid]
        if others and len(session.reported()) > known:
            known = len(session.reported())
            with suppress(ProcessLookupError):
                _blow(dice.choice(others), dice)
                blows += 1
    return blows


def _blow(pid: int, dice: random.Random) -> None:
    number = dice.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP))
    os.kill(pid, number)
    if number == signal.SIGSTOP:
        time.sleep(dice.uniform(0.0, 0.2))
        os.kill(pid, signal.SIGCONT)


def disks(folder: Path, dice: random.Random) -> Generator[Tally]:
    """Fill the disk that the store is on; what was stored stays, and once there is room it goes on."""
    for number in count():
        disk, notes = folder / f"disk{number}", folder / f"notes{number}"
        notes.mkdir()
        tally = Tally(1)
        session = Session(notes, str(disk / "planish.db"))
        with small_disk(disk, dice.randrange(200, 600)):
            with session.start("--seconds", "30") as process:
                _ended(process, (StoreError.exit_code,), tally)
            session.check(tally)
            grow(disk)
            with session.start("--seconds", "1") as process:
                _ended(process, (0,), tally)
            yield session.check(tally)


def servers(folder: Path, dice: random.Random) -> Generator[Tally]:
    """Stop and start the server of the store, and break its connections; a run waits, and loses nothing."""
    with new_cluster(POSTGRES) as cluster:
        session = Session(folder, as_text(cluster.url))
        while True:
            tally = Tally(4)
            with session.start(*PAUSE, "--seconds", "8") as process:
                _wait_for_run(process)  # a server that is not there at the start is an error
                for _ in range(tally.events):
                    time.sleep(dice.uniform(0.3, 1.5))
                    _disturb_server(cluster, dice)
                _ended(process, (0,), tally)
            yield session.check(tally)


def connections(folder: Path, dice: random.Random) -> Generator[Tally]:
    """Break the store's connections again and again, also while they are opened; the run loses nothing."""
    with new_cluster(POSTGRES) as cluster:
        session = Session(folder, as_text(cluster.url))
        while True:
            tally = Tally()
            mean_s, end = dice.choice((0.05, 0.15, 0.4, 1.0)), time.monotonic() + 12.0
            with session.start(*PAUSE, "--seconds", "3") as process:
                while process.poll() is None and time.monotonic() < end:
                    time.sleep(dice.uniform(0.3, 1.7) * mean_s)
                    tally.events += _break_connections(cluster)
                _ended(process, (0,), tally)
            yield session.check(tally)


def _break_connections(cluster: Cluster) -> int:
    """Break all connections; return how many there were."""
    clients = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    return len(administer(cluster.url, f"{clients} AND backend_type = 'client backend'"))


def _wait_for_run(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    while (line := process.stderr.readline()) and not line.startswith("run "):
        pass


def _disturb_server(cluster: Cluster, dice: random.Random) -> None:
    if dice.random() < 0.4:
        _break_connections(cluster)
        return
    cluster.stop(dice.choice(("fast", "immediate")))
    time.sleep(dice.uniform(0.0, 1.0))
    cluster.start()


def damage(folder: Path, dice: random.Random) -> Generator[Tally]:
    """Change bytes of a store: it reads as before, or it is one clear error, and never something else."""
    tally, session = Tally(), Session(folder, str(folder / "planish.db"))
    with session.start("--trials", "300") as process:
        _ended(process, (0,), tally)
    yield tally
    whole, expected = (folder / "planish.db").read_bytes(), _content(folder / "planish.db")
    while True:
        broken, tally = bytearray(whole), Tally(1)
        bits = [dice.randrange(8 * len(broken)) for _ in range(dice.choice((1, 1, 2, 8)))]
        for bit in bits:
            broken[bit // 8] ^= 1 << bit % 8
        file = folder / "broken.db"
        file.write_bytes(broken)
        try:
            if _content(file) != expected:
                tally.blame(f"with bits {bits} changed, it reads as something else")
        except StoreError as error:
            if "\n" in str(error):
                tally.blame(f"bits {bits}: more than one line: {error}")
        except Exception as error:  # noqa: BLE001  (this is what is looked for)
            tally.blame(f"bits {bits}: {type(error).__name__}: {error}")
        yield tally


def _content(file: Path) -> object:
    """Read all that `planish show` and a resumed run read of a store."""
    from cli.lattices import LatticeLevel

    with open_store(file, read_only=True) as store:
        runs = store.runs()
        tasks = [store.task(run.task_key) for run in runs]
        trials = [store.run_trials(run.id, LatticeLevel().steps) for run in runs]
        finalists = [store.result_rows(run.id, LatticeLevel().steps) for run in runs]
    return runs, tasks, trials, finalists


def _ended(process: subprocess.Popen[str], codes: tuple[int, ...], tally: Tally) -> None:
    """Wait for a command's end, which must be one of these, in words that a user understands."""
    try:
        _, said = process.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        process.kill()
        tally.blame(f"it does not end: {process.args}")
        return
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode  # as a shell has it
    if code not in codes or "Traceback" in said or "error in planish" in said:
        tally.blame(f"exit code {code}: {said[-2000:]}")


Disturbance = Callable[[Path, random.Random], Generator[Tally]]
"""Yields what each event or a few of them did; endless."""
KINDS: dict[str, tuple[Disturbance, int]] = {
    "kills": (kills, 250),
    "workers": (workers, 200),
    "comparisons": (comparisons, 80),
    "signals": (signals, 100),
    "disks": (disks, 20),
    "damage": (damage, 200),
}
"""Each with its number of events in a whole campaign."""
if POSTGRES.exists():
    KINDS.update(servers=(servers, 60), connections=(connections, 150))
if find_spec("ray"):
    from faults.hosts import hosts

    KINDS["hosts"] = hosts, 100
