"""Searches on simulated fleets: trials a second, the share of the head, and what wide searches find.

    python benchmarks/fleet_simulation.py [--hosts 1 10 100 1000] [--trials 20000] [--store postgresql://...]

The engine, the searcher and the store are the real ones, and run in real time. Only the hosts are simulated:
each evaluates one candidate at a time, and one more is ready for it; an evaluation takes a time drawn from
those below, some are stragglers, and some are lost with their host and evaluated again elsewhere. The clock
of the simulation counts the head's work as it is measured, and does not wait for the hosts. So `trials/s` is
what such a fleet would do with this head, and `busy` is the share of time in which its hosts evaluate; both
until nine tenths of the trials have ended, since the last ones wait for stragglers.
"""

from __future__ import annotations

import argparse
import heapq
import statistics
import tempfile
import time
from collections import Counter, deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import Candidate, ClosableExecutor, Evaluation, EvaluatorSpec, Space, Step, Task, rng
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.level import LoopsLevel
from planish.store import open_store
from planish.testing.synthetic import Lattice, Set
from planish.tuning.api import tune_program
from planish.tuning.settings import Budget, Settings

if TYPE_CHECKING:
    from planish.levels.loops.lang.program import Program

SIZES = (40, 20, 20, 20)
MEDIAN_S, SPREAD = 0.35, 0.6
"""Seconds of an evaluation, as of matrix products of 192: log-normal, with this deviation of the
logarithm."""
STRAGGLERS, SLOWER = 0.01, 20.0
LOST = 0.001
QUEUED = 2
"""Candidates under way for each host: one is evaluated, another is ready."""


class LatticeLevel(LoopsLevel):
    """Level whose space is a lattice with a known optimum."""

    @property
    def steps(self) -> Mapping[str, type[Step]]:
        """Step name to class."""
        return {"Set": Set}

    def space(self, task: Task[Program], name: str) -> Space:
        """Make the lattice."""
        del task, name
        return Lattice(SIZES, ridge=3, ruggedness=0.3)

    def baseline(self, task: Task[Program]) -> Candidate:
        """Return a candidate near the start."""
        del task
        return Candidate((Set(0, 1),))


class Fleet(ClosableExecutor):
    """Executor on simulated hosts.

    Args:
        hosts: how many.
        seed: of the times and losses.

    Attributes:
        now: seconds of the simulation.
        busy: seconds that hosts evaluated, all together.
        losses: evaluations that were lost.
        progress: of each trial, the seconds of the simulation and those that hosts evaluated, at its end.
    """

    notes: Sequence[str] = ()

    def __init__(self, hosts: int, seed: int) -> None:
        self._lattice, self._random = Lattice(SIZES, ridge=3, ruggedness=0.3), rng(seed, hosts)
        self._running: list[tuple[float, int, Candidate, float]] = []
        self._idle = set(range(hosts))
        self._waiting = deque[Candidate]()
        self._open = 0
        self.capacity = QUEUED * hosts
        self.now = self.busy = 0.0
        self.losses: Counter[str] = Counter()
        self._left_at = time.perf_counter()
        self.progress: list[tuple[float, float]] = []

    def serve(self, spec: EvaluatorSpec) -> None:
        """Evaluate for a task; all are alike."""
        del spec

    def submit(self, candidates: Sequence[Candidate], deadline: float = 0.0) -> None:
        """Queue candidates."""
        del deadline
        self._waiting.extend(candidates)
        self._open += len(candidates)

    @property
    def has_result(self) -> bool:
        """Return whether an evaluation has ended while the head was at work."""
        now = self.now + time.perf_counter() - self._left_at
        return len(self._running) > 0 and self._running[0][0] <= now

    def results(self) -> Generator[Evaluation]:
        """Yield evaluations in the order in which they end; the head's work in between takes its time."""
        while self._open:
            self.now += time.perf_counter() - self._left_at
            self._left_at = time.perf_counter()
            self._begin()
            end, host, candidate, seconds = heapq.heappop(self._running)
            self.now = max(self.now, end)
            self._idle.add(host)
            if self._random.random() < LOST:
                self.losses["the host was lost"] += 1
                self._waiting.appendleft(candidate)
                continue
            self.busy += seconds
            self._open -= 1
            self.progress.append((self.now, self.busy))
            self._left_at = time.perf_counter()
            outcome = self._lattice.outcome(candidate)
            yield Evaluation(candidate, outcome, {"run": seconds}, f"host-{host}")

    def cancel(self) -> None:
        """Forget all that is under way."""
        self._waiting.clear()
        self._idle.update(host for _, host, *_ in self._running)
        self._running.clear()
        self._open = 0

    def _begin(self) -> None:
        """Have hosts that are idle evaluate what waits."""
        while self._idle and self._waiting:
            host, candidate = self._idle.pop(), self._waiting.popleft()
            seconds = MEDIAN_S * float(self._random.lognormal(0.0, SPREAD))
            seconds *= SLOWER if self._random.random() < STRAGGLERS else 1.0
            heapq.heappush(self._running, (self.now + seconds, host, candidate, seconds))


@dataclass(frozen=True)
class Row:
    """What a search on a fleet did.

    Args:
        hosts: of the fleet.
        rate: trials a second.
        busy: share of the time in which hosts evaluated.
        head_ms: milliseconds of the head for a trial.
        cpu_ms: of these, on the processor: a machine with other work does not change it much.
        store: share of them in the store.
        search: share of them in the searcher.
        best: value of the best over the optimum.
        lost: evaluations that were lost and repeated.
    """

    hosts: int
    rate: float
    busy: float
    head_ms: float
    cpu_ms: float
    store: float
    search: float
    best: float
    lost: int


def simulate(hosts: int, trials: int, searcher: str, seed: int, location: str | Path, optimum: float) -> Row:
    """Run one search."""
    level, fleet = LatticeLevel(), Fleet(hosts, seed)
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 192, "n": 192, "k": 192}, {}, "float32")
    settings = Settings(searcher=searcher, seed=seed)
    began, used = time.perf_counter(), time.process_time()
    with open_store(location) as store:
        found = tune_program(
            level, program, budget=Budget(trials=trials), settings=settings, store=store, executor=fleet,
            compares=False,
        )  # fmt: skip
    head_s, cpu_s = time.perf_counter() - began, time.process_time() - used
    stages, count = found.run.seconds, found.run.trials
    done = fleet.progress[: int(0.9 * len(fleet.progress))]
    ended, busy = done[-1]
    best = found.best.cost(found.objective)
    assert best is not None
    return Row(
        hosts,
        len(done) / ended,
        busy / (ended * hosts),
        1e3 * head_s / count,
        1e3 * cpu_s / count,
        stages.get("store", 0.0) / head_s,
        stages.get("search", 0.0) / head_s,
        best / optimum,
        fleet.losses.total(),
    )


def main() -> None:
    """Print the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--hosts", type=int, nargs="+", default=[1, 10, 100, 1000])
    given.add_argument("--trials", type=int, default=20_000)
    given.add_argument("--searchers", nargs="+", default=["random", "genetic"])
    given.add_argument("--seeds", type=int, default=3)
    given.add_argument("--store", default="", help="an empty PostgreSQL database; default: SQLite")
    asked = given.parse_args()
    optimum = Lattice(SIZES, ridge=3, ruggedness=0.3).optimum()
    print(f"{'searcher':<10}{'hosts':>6}{'trials/s':>10}{'busy':>7}{'head, ms':>10}{'cpu, ms':>9}{'store':>7}"
          f"{'search':>8}{'best/optimum':>14}{'lost':>6}")  # fmt: skip
    for searcher in asked.searchers:
        for hosts in asked.hosts:
            rows = list[Row]()
            for seed in range(asked.seeds):
                with tempfile.TemporaryDirectory() as folder:
                    place = asked.store or Path(folder) / "planish.db"
                    rows.append(simulate(hosts, asked.trials, searcher, seed, place, optimum))
            middle = [
                statistics.median(getattr(row, name) for row in rows) for name in Row.__dataclass_fields__
            ]
            _, rate, busy, head_ms, cpu_ms, store, search, best, lost = middle
            print(f"{searcher:<10}{hosts:>6}{rate:>10,.0f}{busy:>7.0%}{head_ms:>10.2f}{cpu_ms:>9.2f}{store:>7.0%}{search:>8.0%}"
                  f"{best:>14.3f}{lost:>6.0f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
