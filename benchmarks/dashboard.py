"""How much a dashboard with 20 clients slows a search down, and how soon they see a new trial.

    python benchmarks/dashboard.py [--rounds 3] [--slices 8] [--trials 2500] [--clients 20] [--delays 40]

First a run gets a trial every second or two, and the time until a client is sent it is measured. Then a
search is made twice in each round, with the same trials, while clients look at it in every other slice of
it: in the first search in slices 1, 3, 5, ..., in the second one in the others. Meanwhile the dashboard and
its clients are stopped (SIGSTOP). So each slice is compared with one of the same trials, and differences
between processes and slow changes of the machine cancel out. The figures are:

- the share of a core that the dashboard takes while clients look. It has hardly any noise, and where the
  machine has no other work, the search cannot be slower by more than this share: it is what the target of
  2 % is checked by;
- the processor time of the search, with the dashboard relative to without: what sharing caches costs;
- the wall time of the search, in the same way. On a virtual machine of two cores, its standard error after a
  round of seven minutes is 5 %, so it shows only large effects.

Targets, on two cores: at most 2 % of a core, and a trial within a second.
Clients read what they are sent, as browsers on other machines do; their own process has the lowest
priority. What a dashboard does once, as it opens its first page (load code and compile templates), comes
before the slices; its cost is printed, too. What became due while it was stopped is rendered as soon as it
continues, so the figures are upper limits.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from planish import Budget, Settings, load_run
from planish.core import Trial
from planish.core.registry import load_program
from planish.store import open_store
from planish.tuning.api import tune_program
from planish.tuning.recorder import Progress, Silent

PLANISH = str(Path(sys.executable).with_name("planish"))
PROGRAM, SIZE = "C[m,n] += A[m,k] * B[k,n]", {"size": "m=192,n=192,k=192"}
SPAWN = get_context("spawn")


class Slice(NamedTuple):
    """Part of a search.

    Args:
        wall_s: from its first trial to its last one.
        cpu_s: processor time of the processes that search.
        dashboard_s: processor time of the dashboard.
        seen: whether clients looked at it.
    """

    wall_s: float
    cpu_s: float
    dashboard_s: float
    seen: bool


class Slicer(Silent):
    """Divides a search into slices of equally many trials, and stops the dashboard in every other one.

    The first slice, in which libraries are loaded, is always seen, and not counted.

    Args:
        size: trials of a slice.
        first: whether the slice after the first one is seen.
        other: where the id of the run is sent; it answers with the numbers of the dashboard's process and of
            the clients'.
    """

    def __init__(self, size: int, first: bool, other: Connection) -> None:
        self.slices = list[Slice]()
        self._size, self._seen, self._other = size, not first, other
        self._processes: Sequence[int] = ()
        self._count, self._before = 0, (0.0, 0.0, 0.0)

    def started(self, progress: Progress) -> None:
        """Have the clients look at the run."""
        self._other.send(progress.run_id)
        self._processes = self._other.recv()

    def trial(self, trial: Trial, progress: Progress) -> None:  # noqa: ARG002
        """Count a trial; end a slice with the last one of it."""
        self._count += 1
        if self._count % self._size:
            return
        now = time.monotonic(), family_s(os.getpid()), cpu_seconds(self._processes[0])
        wall_s, cpu_s, dashboard_s = (after - before for after, before in zip(now, self._before, strict=True))
        if self._count > self._size:
            self.slices.append(Slice(wall_s, cpu_s, dashboard_s, self._seen))
        self._before, self._seen = now, not self._seen
        self.signal(signal.SIGCONT if self._seen else signal.SIGSTOP)

    def signal(self, number: signal.Signals) -> None:
        """Stop the dashboard and its clients, or let them continue."""
        for process in self._processes:
            os.kill(process, number)


def search(store: Path, trials: int, seed: int = 0, slicer: Slicer | None = None) -> None:
    """Search for so many trials, without a comparison at the end."""
    level, program = load_program(PROGRAM, "loops", SIZE)
    settings = Settings(searcher="random", seed=seed)
    tune_program(
        level, program, budget=Budget(trials=trials), settings=settings, store=store, listener=slicer,
        compares=False,
    )  # fmt: skip


def sliced(store: Path, size: int, slices: int, seed: int, first: bool, other: Connection) -> None:
    """Search in slices; send them."""
    slicer = Slicer(size, first, other)
    try:
        search(store, size * (slices + 1), seed, slicer)
    finally:
        slicer.signal(signal.SIGCONT)
    other.send(slicer.slices)


@contextmanager
def dashboard(store: Path) -> Generator[tuple[int, int]]:
    """Start a dashboard; yield its port, and the process's number."""
    command = [PLANISH, "dashboard", "--store", str(store), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        found = re.search(r":(\d+)/", process.stdout.readline())
        assert found
        yield int(found[1]), process.pid
        process.terminate()


def connect(port: int, path: str) -> socket.socket:
    """Ask for a page or its events."""
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    return client


def read_events(port: int, path: str, clients: int, end: Connection) -> None:
    """Read events as so many clients until the other end is closed; send how many bytes came."""
    os.nice(19)
    chosen, read = selectors.DefaultSelector(), 0
    for _ in range(clients):
        chosen.register(connect(port, path), selectors.EVENT_READ)
    while not end.poll():
        for key, _ in chosen.select(timeout=0.1):
            assert isinstance(key.fileobj, socket.socket)
            part = key.fileobj.recv(1 << 20)
            read += len(part)
            if not part:
                chosen.unregister(key.fileobj)
    end.send(read)


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has taken."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def family_s(process: int) -> float:
    """Return the processor time that a process and all that it started have taken."""
    with suppress(FileNotFoundError, ProcessLookupError):  # it has ended: its parent counts its time
        children = [
            child
            for task in Path(f"/proc/{process}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK") + sum(
            family_s(int(c)) for c in children
        )
    return 0.0


def open_pages(port: int, store: Path) -> None:
    """Open the pages once, as a browser does, and wait until all of their sections have come."""
    with open_store(store, read_only=True) as opened:
        (run,) = opened.runs(limit=1)
    for path in ("/s/main", f"/s/main/runs/{run.id}"):
        with connect(port, path) as client:
            while client.recv(1 << 20):
                pass
    with connect(port, f"/s/main/runs/{run.id}/events") as client:
        client.settimeout(1.0)  # nothing more comes once all sections have
        with suppress(TimeoutError):
            while client.recv(1 << 20):
                pass


@dataclass(frozen=True)
class Watched:
    """A search that clients look at in every other slice.

    Args:
        slices: of the search.
        opened_s: processor time of the dashboard for its first pages, before the search.
        read: bytes that the clients were sent.
    """

    slices: Sequence[Slice]
    opened_s: float
    read: int


def watched(store: Path, size: int, slices: int, seed: int, first: bool, clients: int) -> Watched:
    """Search while clients look at every other slice of the run."""
    with dashboard(store) as (port, pid):
        opened_s = -cpu_seconds(pid)
        open_pages(port, store)
        opened_s += cpu_seconds(pid)
        here, there = SPAWN.Pipe()
        searching = SPAWN.Process(target=sliced, args=(store, size, slices, seed, first, there))
        searching.start()
        path = f"/s/main/runs/{here.recv()}/events"
        ours, theirs = SPAWN.Pipe()
        looking = SPAWN.Process(target=read_events, args=(port, path, clients, theirs), daemon=True)
        looking.start()
        here.send((pid, looking.pid))
        found = here.recv()
        searching.join()
        ours.send(None)
        read = ours.recv()
    return Watched(found, opened_s, read)


def delays(store: Path, clients: int, count: int) -> list[float]:
    """Store trials one by one; return the seconds after which a client was sent each."""
    search(store, 1, 0)
    later = random.Random(0)
    ours, theirs = SPAWN.Pipe()
    with dashboard(store) as (port, _), open_store(store) as opened:
        found = load_run(store=opened)
        (trial,) = found.stored_trials
        run_id = opened.begin_run(found.task, searcher="random", space="", seed=1)
        opened.add_trials(run_id, [replace(trial, index=0)])
        path = f"/s/main/runs/{run_id}/events"
        others = SPAWN.Process(target=read_events, args=(port, path, clients - 1, theirs), daemon=True)
        others.start()
        with connect(port, path) as client:
            _delay(client, 0)
            taken = list[float]()
            for index in range(1, count + 1):
                time.sleep(later.uniform(1, 2))
                opened.add_trials(run_id, [replace(trial, index=index)])
                taken.append(_delay(client, index))
        ours.send(None)
        ours.recv()
    return taken


def _delay(client: socket.socket, index: int) -> float:
    """Read until a page shows a trial; return the seconds that it took."""
    began, read, shown = time.monotonic(), b"", f"<dt>trials</dt><dd>{index + 1:,}<".encode()
    while shown not in read:
        read += client.recv(1 << 20)
    return time.monotonic() - began


def effects(one: Sequence[float], other: Sequence[float], seen: Sequence[bool]) -> list[float]:
    """Return the logarithms of how much longer slices take where they are seen, each of two neighbors.

    What makes one of the searches slower throughout cancels out between neighbors.

    Args:
        one: what each slice took in one search.
        other: what the same slices took in the other one, where those are seen that are not in the first.
        seen: which are seen in the first search.
    """
    logs = [
        math.log(mine / theirs) * (1 if looked else -1)
        for mine, theirs, looked in zip(one, other, seen, strict=True)
    ]
    return [statistics.fmean(pair) for pair in zip(logs[::2], logs[1::2], strict=False)]


def _slower(name: str, found: Sequence[float]) -> str:
    """Describe how much slower a search is, with the standard error of the mean of its logarithms."""
    error = statistics.stdev(found) / len(found) ** 0.5 if len(found) > 1 else math.nan
    percent = [100 * (math.exp(each) - 1) for each in (statistics.fmean(found), statistics.median(found))]
    return f"{name}: {percent[0]:+.2f} % (median {percent[1]:+.2f} %; standard error {100 * error:.2f} %)"


def main() -> None:
    """Print the figures."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--rounds", type=int, default=3, help="pairs of searches")
    given.add_argument("--slices", type=int, default=8, help="of each search, an even number")
    given.add_argument("--trials", type=int, default=2500, help="of each slice")
    given.add_argument("--clients", type=int, default=20)
    given.add_argument("--delays", type=int, default=40, help="trials whose delay is measured")
    asked = given.parse_args()
    walls, processors, shares = list[float](), list[float](), list[float]()
    opened = list[float]()
    with tempfile.TemporaryDirectory() as folder:
        if asked.delays:
            taken = sorted(delays(Path(folder) / "delays.db", asked.clients, asked.delays))
            late = taken[int(0.95 * len(taken))]
            print(
                f"a trial is shown after {statistics.median(taken):.2f} s (median), {late:.2f} s (95 %), "
                f"{taken[-1]:.2f} s (worst of {len(taken)}), with {asked.clients} clients; target 1 s",
                flush=True,
            )
        for number in range(asked.rounds):
            pair = list[Watched]()
            for first in (True, False) if number % 2 == 0 else (False, True):
                store = Path(folder) / f"{number}-{first}.db"
                search(store, 1, 1000)  # a store has to exist before it is looked at
                pair.append(watched(store, asked.trials, asked.slices, number, first, asked.clients))
            one, other = (each.slices for each in pair)
            seen = [each.seen for each in one]
            walls += effects([each.wall_s for each in one], [each.wall_s for each in other], seen)
            processors += effects([each.cpu_s for each in one], [each.cpu_s for each in other], seen)
            shares += [100 * each.dashboard_s / each.wall_s for each in (*one, *other) if each.seen]
            opened += [each.opened_s for each in pair]
            print(
                f"round {number + 1}: {sum(each.wall_s for each in (*one, *other)):.0f} s; "
                f"{asked.clients} clients were sent {sum(each.read for each in pair) / 1e6:.1f} MB; "
                f"{_slower('wall time so far', walls)}",
                flush=True,
            )
    if not walls:
        return
    print(
        f"the dashboard takes {statistics.fmean(shares):.2f} % of a core (worst slice {max(shares):.2f} %),"
    )
    print(f"  after {statistics.median(opened):.2f} s of CPU for its first pages; target 2 %")
    print(_slower("processor time of the search", processors))
    print(_slower("wall time of the search", walls))


if __name__ == "__main__":
    main()
