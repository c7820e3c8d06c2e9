"""Searches on simulated fleets: trials a second, what limits them, and what searches with large batches find.

    python benchmarks/fleet_simulation.py [--hosts 1 10 100 1000] [--trials 20000] [--seeds 3]
        [--postgres postgresql://USER@HOST/DATABASE] [--figure FILE.html]

The engine, the searcher and the store are the real ones, and run in real time. Only the hosts are simulated:
each evaluates one candidate at a time, and one more is ready for it; an evaluation takes a time drawn from
those below, some are stragglers, and some are lost with their host and evaluated again elsewhere. The clock
of the simulation counts the head's work as it is measured, and does not wait for the hosts. So `trials/s` is
what such a fleet would do with this head, and `busy` is the share of time in which its hosts evaluate; both
until nine tenths of the trials have ended, since the last ones wait for stragglers. `batch` is the number of
candidates under way, whose outcomes a searcher does not know when it proposes more. `head` and `cpu` are
milliseconds of the head for a trial, on the wall and on the processor; `store` and `search` are shares of it.
The messages of a real cluster come on top, where one may have several candidates: see `ray_nodes.py`.
"""

from __future__ import annotations

import argparse
import heapq
import secrets
import statistics
import tempfile
import time
from collections import Counter, deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, make_url

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
        head_s: seconds of the head's work between results.
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
        self.now = self.busy = self.head_s = 0.0
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
            self._count_head()
            self._begin()
            end, host, candidate, seconds = heapq.heappop(self._running)
            self.now = max(self.now, end)
            self._idle.add(host)
            if self._random.random() < LOST:
                self.losses["the host was lost"] += 1
                self._waiting.appendleft(candidate)
                self._leave()
                continue
            self.busy += seconds
            self._open -= 1
            self.progress.append((self.now, self.busy))
            outcome = self._lattice.outcome(candidate)
            self._leave()
            yield Evaluation(candidate, outcome, {"run": seconds}, f"host-{host}")

    def cancel(self) -> None:
        """Forget all that is under way."""
        self._waiting.clear()
        self._idle.update(host for _, host, *_ in self._running)
        self._running.clear()
        self._open = 0

    def _leave(self) -> None:
        """Note when the head's work begins."""
        self._left_at = time.perf_counter()

    def _count_head(self) -> None:
        """Count the head's work since then."""
        took = time.perf_counter() - self._left_at
        self.now += took
        self.head_s += took

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
        rate: trials a second.
        busy: share of the time in which hosts evaluated.
        head_ms: milliseconds of the head for a trial.
        cpu_ms: the same on the processor, with the simulation's own: other work does not change it much.
        store: share of them in the store.
        search: share of them in the searcher.
        loaded: share of the time in which the head worked.
        best: value of the best over the optimum.
        lost: evaluations that were lost and repeated.
    """

    rate: float
    busy: float
    head_ms: float
    cpu_ms: float
    store: float
    search: float
    loaded: float
    best: float
    lost: float

    @property
    def limit(self) -> str:
        """Return what limits the rate."""
        if self.busy > 0.9:
            return "hosts"
        if self.loaded < 0.8:
            return "searcher waits"
        shares = {"store": self.store, "searcher": self.search, "engine": 1 - self.store - self.search}
        return f"head: {max(shares, key=lambda name: shares[name])}"


def simulate(hosts: int, trials: int, searcher: str, seed: int, location: str | Path, optimum: float) -> Row:
    """Run one search."""
    level, fleet = LatticeLevel(), Fleet(hosts, seed)
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 192, "n": 192, "k": 192}, {}, "float32")
    settings, used = Settings(searcher=searcher, seed=seed), time.process_time()
    with open_store(location) as store:
        found = tune_program(
            level, program, budget=Budget(trials=trials), settings=settings, store=store, executor=fleet,
            compares=False,
        )  # fmt: skip
    stages, count = found.run.seconds, found.run.trials
    done = fleet.progress[: int(0.9 * len(fleet.progress))]
    ended, busy = done[-1]
    best = found.best.cost(found.objective)
    assert best is not None
    return Row(
        len(done) / ended,
        busy / (ended * hosts),
        1e3 * fleet.head_s / count,
        1e3 * (time.process_time() - used) / count,
        stages.get("store", 0.0) / fleet.head_s,
        stages.get("search", 0.0) / fleet.head_s,
        fleet.head_s / fleet.now,
        best / optimum,
        fleet.losses.total(),
    )


@contextmanager
def new_store(postgres: str) -> Generator[str | Path]:
    """Make a store: a schema of a PostgreSQL database, which is dropped after, or a file."""
    if not postgres:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / "planish.db"
        return
    url, name = make_url(postgres), f"fleet_{secrets.token_hex(6)}"
    engine = create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
        own = url.update_query_dict({"options": f"-c search_path={name}"})
        yield own.render_as_string(hide_password=False)
        connection.exec_driver_sql(f"DROP SCHEMA {name} CASCADE")
    engine.dispose()


def draw(found: Mapping[str, Mapping[int, Sequence[Row]]], path: Path) -> None:
    """Draw what searchers find with batches of several sizes: the median and the range of the seeds."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for searcher, by_hosts in found.items():
        bests = {QUEUED * hosts: sorted(row.best for row in rows) for hosts, rows in by_hosts.items()}
        middle = [statistics.median(each) for each in bests.values()]
        above = [each[-1] - m for each, m in zip(bests.values(), middle, strict=True)]
        below = [m - each[0] for each, m in zip(bests.values(), middle, strict=True)]
        error = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
        figure.add_scatter(x=[*bests], y=middle, error_y=error, name=searcher)
    figure.update_xaxes(type="log", title="candidates under way")
    figure.update_yaxes(title="best / optimum")
    figure.write_html(path)


def main() -> None:
    """Print the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--hosts", type=int, nargs="+", default=[1, 10, 100, 1000])
    given.add_argument("--trials", type=int, default=20_000)
    given.add_argument("--searchers", nargs="+", default=["random", "genetic"])
    given.add_argument("--seeds", type=int, default=3)
    given.add_argument("--postgres", default="", help="a database that is the store, in place of SQLite")
    given.add_argument("--figure", type=Path, help="a file for the figure of batch sizes")
    asked = given.parse_args()
    optimum = Lattice(SIZES, ridge=3, ruggedness=0.3).optimum()
    print("PostgreSQL" if asked.postgres else "SQLite")
    print(f"{'searcher':<10}{'hosts':>6}{'batch':>6}{'trials/s':>10}{'busy':>7}{'head, ms':>10}{'cpu, ms':>9}"
          f"{'store':>7}{'search':>8}{'best/optimum':>14}{'lost':>6}  limit")  # fmt: skip
    found: dict[str, dict[int, list[Row]]] = {}
    for searcher in asked.searchers:
        for hosts in asked.hosts:
            rows = found.setdefault(searcher, {}).setdefault(hosts, [])
            for seed in range(asked.seeds):
                with new_store(asked.postgres) as location:
                    rows.append(simulate(hosts, asked.trials, searcher, seed, location, optimum))
            columns = Row.__dataclass_fields__
            row = Row(*(statistics.median(getattr(each, name) for each in rows) for name in columns))
            print(f"{searcher:<10}{hosts:>6}{QUEUED * hosts:>6}{row.rate:>10,.0f}{row.busy:>7.0%}"
                  f"{row.head_ms:>10.2f}{row.cpu_ms:>9.2f}{row.store:>7.0%}{row.search:>8.0%}"
                  f"{row.best:>14.3f}{row.lost:>6.0f}  {row.limit}", flush=True)  # fmt: skip
    if asked.figure:
        draw(found, asked.figure)


if __name__ == "__main__":
    main()
