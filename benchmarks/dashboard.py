"""How much a dashboard with 20 clients slows a search down, and how soon they see a new trial.

    python benchmarks/dashboard.py [--trials 400] [--rounds 10] [--clients 20] [--delays 100]

First a run gets a trial every second or two, and the time until a client is sent it is measured, with one
client and with all; then the search is timed.
Each round runs the same search with a dashboard that all clients look at, and without one, in an order that
alternates. Targets, on two cores: at most 2 % slower, and a trial within a second. Clients read what they are
sent, as browsers on other machines do; their own process has the lowest priority.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from planish import load_run
from planish.store import open_store

PLANISH = str(Path(sys.executable).with_name("planish"))
PROGRAM = ["C[m,n] += A[m,k] * B[k,n]", "--size", "m=192,n=192,k=192"]


def searched(store: Path, trials: int, seed: int) -> float:
    """Search for so many trials; return the seconds that it took."""
    command = [
        PLANISH,
        "tune",
        *PROGRAM,
        "--trials",
        str(trials),
        "--seed",
        str(seed),
        "--searcher",
        "random",
    ]
    began = time.perf_counter()
    subprocess.run(
        [*command, "--store", str(store)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return time.perf_counter() - began


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


def read_events(port: int, path: str, clients: int, counts: Connection) -> None:
    """Read events as so many clients; send how many bytes came, once a second."""
    os.nice(19)
    chosen, read = selectors.DefaultSelector(), 0
    for _ in range(clients):
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        chosen.register(client, selectors.EVENT_READ)
    shown = time.monotonic()
    while chosen.get_map():
        for key, _ in chosen.select(timeout=1):
            assert isinstance(key.fileobj, socket.socket)
            part = key.fileobj.recv(1 << 20)
            read += len(part)
            if not part:
                chosen.unregister(key.fileobj)
        if time.monotonic() - shown > 1:
            counts.send(read)
            shown = time.monotonic()
    counts.send(read)


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


def watched(store: Path, trials: int, seed: int, clients: int) -> tuple[float, int, float]:
    """Search while clients look at the run; return the seconds, the bytes sent, and the CPU time."""
    context = get_context("spawn")
    with dashboard(store) as (port, pid):
        counts, sending = context.Pipe(duplex=False)
        readers: list[object] = []

        def look() -> None:
            path = f"/s/main/runs/{newest_run(store)}/events"
            process = context.Process(target=read_events, args=(port, path, clients, sending), daemon=True)
            process.start()
            readers.append(process)

        looking = threading.Thread(target=look)
        looking.start()
        before = cpu_seconds(pid)
        took = searched(store, trials, seed)
        spent = cpu_seconds(pid) - before
        looking.join()
        read = 0
        while counts.poll(1.5):
            read = counts.recv()
            if counts.poll(0) is False:
                break
    return took, read, spent


def delays(store: Path, clients: int, count: int) -> list[float]:
    """Store trials one by one; return the seconds after which a client was sent each."""
    searched(store, 1, 0)
    spawn, later = get_context("spawn"), random.Random(0)
    unread, sending = spawn.Pipe(duplex=False)
    with dashboard(store) as (port, _), open_store(store) as opened:
        found = load_run(store=opened)
        (trial,) = found.stored_trials
        run_id = opened.begin_run(found.task, searcher="random", space="", seed=1)
        opened.add_trials(run_id, [replace(trial, index=0)])
        path = f"/s/main/runs/{run_id}/events"
        others = spawn.Process(target=read_events, args=(port, path, clients - 1, sending), daemon=True)
        others.start()
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            taken = [_delay(client, 0)]
            for index in range(1, count + 1):
                time.sleep(later.uniform(1, 2))
                opened.add_trials(run_id, [replace(trial, index=index)])
                taken.append(_delay(client, index))
        others.kill()
        others.join()
        unread.close()
    return taken[1:]


def _delay(client: socket.socket, index: int) -> float:
    """Read until a page shows a trial; return the seconds that it took."""
    began, read, shown = time.monotonic(), b"", f"<dt>trials</dt><dd>{index + 1:,}<".encode()
    while shown not in read:
        read += client.recv(1 << 20)
    return time.monotonic() - began


def main() -> None:
    """Print the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--trials", type=int, default=400)
    given.add_argument("--rounds", type=int, default=10)
    given.add_argument("--clients", type=int, default=20)
    given.add_argument("--delays", type=int, default=100)
    asked = given.parse_args()
    ratios = list[float]()
    with tempfile.TemporaryDirectory() as folder:
        for clients in (1, asked.clients) if asked.delays else ():
            taken = delays(Path(folder) / f"delays-{clients}.db", clients, asked.delays)
            line = (
                f"a trial is shown after {statistics.median(taken):.2f} s (median), {max(taken):.2f} s (worst"
            )
            print(f"{line} of {len(taken)}) with {clients} clients; target 1 s", flush=True)
        # Loaded once before: the first search of a machine is slower.
        searched(Path(folder) / "warm.db", asked.trials, 0)
        for number in range(asked.rounds):
            alone_store, seen_store = (Path(folder) / f"{name}-{number}.db" for name in ("alone", "seen"))
            # A store has to exist before it is looked at; its first run is another one.
            searched(seen_store, 1, 1000)
            searched(alone_store, 1, 1000)
            if number % 2:
                seen, read, spent = watched(seen_store, asked.trials, number, asked.clients)
                alone = searched(alone_store, asked.trials, number)
            else:
                alone = searched(alone_store, asked.trials, number)
                seen, read, spent = watched(seen_store, asked.trials, number, asked.clients)
            ratios.append(seen / alone)
            line = f"round {number + 1}: {alone:.2f} s alone, {seen:.2f} s with {asked.clients} clients"
            print(f"{line}: {ratios[-1]:.3f}; {read / 1e6:.1f} MB, {spent:.2f} s of CPU", flush=True)
    if not ratios:
        return
    spread = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else float("nan")
    median = statistics.median(ratios)
    print(f"slower by {100 * (median - 1):+.1f} % (median; standard error {100 * spread:.1f} %; target 2 %)")


if __name__ == "__main__":
    main()
