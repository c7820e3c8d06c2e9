"""How much a dashboard with 20 clients slows a search down, and how soon they see a new trial.

    python benchmarks/dashboard.py [--trials 1500] [--rounds 12] [--clients 20] [--delays 60]

First a run gets a trial every second or two, and the time until a client is sent it is measured. Then the
same search (the same trials of the same seed, without a comparison at its end) is timed with a dashboard that
all clients look at, and without one, in an order that alternates from round to round. The figures are:

- the share of a core that the dashboard takes while the search goes on. It has hardly any noise, and where
  the machine has no other work, the search cannot be slower by more than this share;
- the processor time of the search, with the dashboard relative to without: what sharing caches costs;
- the wall time of the search, in the same way.

Targets, on two cores: at most 2 % slower, and a trial within a second. Clients read what they are sent, as
browsers on other machines do; their own process has the lowest priority. What a dashboard does once, as it
opens its first page (load code and compile templates), comes before the search; its cost is printed, too.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from planish import Budget, Settings, load_run
from planish.core.registry import load_program
from planish.store import open_store
from planish.tuning.api import tune_program

PLANISH = str(Path(sys.executable).with_name("planish"))
PROGRAM, SIZE = "C[m,n] += A[m,k] * B[k,n]", {"size": "m=192,n=192,k=192"}
FIRST = 20
"""Trials before the clock starts: workers are started and libraries loaded by then."""
SPAWN = get_context("spawn")


@dataclass(frozen=True)
class Searched:
    """What a search took.

    Args:
        wall_s: from the end of the trial `FIRST` to that of the last one.
        cpu_s: processor time of all its processes, from their start to their end.
    """

    wall_s: float
    cpu_s: float


def search(store: Path, trials: int, seed: int, answer: Connection | None = None) -> Searched:
    """Search for so many trials; return, and send, what it took.

    The answer begins with None, once the search is over.
    """
    level, program = load_program(PROGRAM, "loops", SIZE)
    settings = Settings(searcher="random", seed=seed)
    result = tune_program(
        level, program, budget=Budget(trials=trials), settings=settings, store=store, compares=False
    )
    if answer is not None:
        answer.send(None)
    with open_store(store, read_only=True) as opened:
        ends = sorted(trial.time for trial in load_run(result.run.id, store=opened).stored_trials)
    used = [resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    found = Searched(ends[-1] - ends[min(FIRST, trials) - 1], sum(u.ru_utime + u.ru_stime for u in used))
    if answer is not None:
        answer.send(found)
    return found


def searched(
    store: Path,
    trials: int,
    seed: int,
    begun: Callable[[], None] = lambda: None,
    ended: Callable[[], None] = lambda: None,
) -> Searched:
    """Search in a fresh process; `begun` is called while it searches, and `ended` once it does no more."""
    receiving, sending = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=search, args=(store, trials, seed, sending))
    process.start()
    begun()
    receiving.recv()
    ended()
    found = receiving.recv()
    process.join()
    return found


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


def newest_run(store: Path) -> str:
    """Wait until a run has begun; return its id."""
    while True:
        with open_store(store, read_only=True) as opened:
            found = [run.id for run in opened.runs(limit=1) if run.status == "running"]
        if found:
            return found[0]
        time.sleep(0.05)


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has taken."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


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
    """A search that clients look at.

    Args:
        searched: what it took.
        share: of a core that the dashboard took meanwhile.
        opened_s: processor time of the dashboard for its first pages, before the search.
        read: bytes that the clients were sent.
    """

    searched: Searched
    share: float
    opened_s: float
    read: int


def watched(store: Path, trials: int, seed: int, clients: int) -> Watched:
    """Search while clients look at the run."""
    with dashboard(store) as (port, pid):
        opened_s = -cpu_seconds(pid)
        open_pages(port, store)
        opened_s += cpu_seconds(pid)
        ours, theirs = SPAWN.Pipe()
        began, spent, share = 0.0, 0.0, 0.0

        def look() -> None:
            nonlocal began, spent
            path = f"/s/main/runs/{newest_run(store)}/events"
            SPAWN.Process(target=read_events, args=(port, path, clients, theirs), daemon=True).start()
            began, spent = time.monotonic(), cpu_seconds(pid)

        def count() -> None:
            nonlocal share
            share = (cpu_seconds(pid) - spent) / (time.monotonic() - began)

        found = searched(store, trials, seed, look, count)
        ours.send(None)
        read = ours.recv()
    return Watched(found, share, opened_s, read)


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


def _slower(name: str, ratios: Sequence[float]) -> str:
    """Describe how much slower a search is, with the standard error of the mean of its logarithms."""
    logs = [math.log(each) for each in ratios]
    mean = statistics.fmean(logs)
    error = statistics.stdev(logs) / len(logs) ** 0.5 if len(logs) > 1 else math.nan
    percent = [100 * (math.exp(each) - 1) for each in (mean, statistics.median(logs))]
    return f"{name}: {percent[0]:+.2f} % (median {percent[1]:+.2f} %; standard error {100 * error:.2f} %)"


def main() -> None:
    """Print the figures."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--trials", type=int, default=1500, help="of each search")
    given.add_argument("--rounds", type=int, default=12, help="pairs of searches")
    given.add_argument("--clients", type=int, default=20)
    given.add_argument("--delays", type=int, default=60, help="trials whose delay is measured")
    asked = given.parse_args()
    rounds = list[tuple[Searched, Watched]]()
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
            alone_store, seen_store = (Path(folder) / f"{name}-{number}.db" for name in ("alone", "seen"))
            # A store has to exist before it is looked at; its first run is another one.
            for store in (seen_store, alone_store):
                search(store, 1, 1000)
            if number % 2:
                seen = watched(seen_store, asked.trials, number, asked.clients)
                alone = searched(alone_store, asked.trials, number)
            else:
                alone = searched(alone_store, asked.trials, number)
                seen = watched(seen_store, asked.trials, number, asked.clients)
            rounds.append((alone, seen))
            print(
                f"round {number + 1}: {alone.wall_s:.2f} s ({alone.cpu_s:.2f} s of CPU) alone, "
                f"{seen.searched.wall_s:.2f} s ({seen.searched.cpu_s:.2f} s) with {asked.clients} clients, "
                f"which were sent {seen.read / 1e6:.1f} MB; dashboard {100 * seen.share:.2f} % of a core",
                flush=True,
            )
    if not rounds:
        return
    shares = [100 * seen.share for _, seen in rounds]
    opened_s = statistics.median(seen.opened_s for _, seen in rounds)
    print(f"the dashboard takes {statistics.median(shares):.2f} % of a core (worst {max(shares):.2f} %),")
    print(f"  after {opened_s:.2f} s of CPU for its first pages; target 2 %")
    pairs = [(alone, seen.searched) for alone, seen in rounds]
    print(_slower("processor time of the search", [seen.cpu_s / alone.cpu_s for alone, seen in pairs]))
    print(_slower("wall time of the search", [seen.wall_s / alone.wall_s for alone, seen in pairs]))


if __name__ == "__main__":
    main()
