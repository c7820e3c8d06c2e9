"""Disturbances of a Ray cluster: its actors, raylets and nodes end while a search measures on them."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Generator
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Event, Thread

import planish
from faults.running import Tally
from planish.callbacks import ActiveRun
from planish.core import LostError, Measured, Trial
from planish.core.registry import level_named
from planish.measure.ray_cluster import RayCluster
from planish.tuning.verdict import verdict_of
from ray_fleet import Fleet, children, collectors, gone, pids

PROGRAM, SIZE = "C[m,n] += A[m,k] * B[k,n]", {"m": 16, "n": 16, "k": 16}
TRIALS = 24
NODES = 3
STALL_S = 10.0
_PAUSE_S = (1.0, 4.0)
_LONGEST_PAUSE_S = 10.0
"""Seconds after which the next part ends where nothing was measured since the last one."""


class _Striker:
    """Ends parts of a cluster, now and then, in a thread.

    Args:
        fleet: the cluster.
        cluster: the connection of the search.
        dice: chooses.
    """

    def __init__(self, fleet: Fleet, cluster: RayCluster, dice: random.Random) -> None:
        self._fleet, self._cluster, self._dice = fleet, cluster, dice
        self._over, self._thread = Event(), Thread(target=self._run)
        self._measured = Event()
        self.events = 0
        self.started = set[int]()

    def __enter__(self) -> _Striker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._measured.set()
        self._thread.join()

    def on_trial(self, run: ActiveRun, trial: Trial) -> None:
        """Note a trial, and replace nodes that are gone, which Ray does in the main thread alone."""
        del run, trial
        self._measured.set()
        self._fleet.restore(NODES)

    def _run(self) -> None:
        while not self._over.wait(self._dice.uniform(*_PAUSE_S)):
            # Beside other work a host takes longer to start than such a pause, and would measure nothing.
            self._measured.wait(_LONGEST_PAUSE_S)
            self._measured.clear()
            with suppress(LostError, ProcessLookupError):
                self._strike()

    def _strike(self) -> None:
        found = pids(self._cluster.hosts)
        if not found:
            return
        self.events += 1
        for pid in found:
            self.started |= {pid, *children(pid)}
        nodes = self._fleet.nodes
        match self._dice.randrange(10):
            case 0:  # it is silent, and given up
                os.kill(self._dice.choice(found), signal.SIGSTOP)
            case 1 | 2 if len(nodes) > 1:
                self._fleet.remove(self._dice.choice(nodes))
            case 3 if len(nodes) > 1:
                nodes.pop(self._dice.randrange(len(nodes))).kill_raylet()
            case 4:
                for pid in collectors():
                    os.kill(pid, signal.SIGKILL)
            case _:
                os.kill(self._dice.choice(found), signal.SIGKILL)


def hosts(folder: Path, dice: random.Random) -> Generator[Tally]:
    """End actors, raylets and nodes during searches and comparisons; no trial is lost or blamed for it."""
    fleet = Fleet()
    try:
        for number in count():
            fleet.restore(NODES)
            yield _search(folder / f"{number}.db", fleet, dice)
    finally:
        fleet.end()


def _search(place: Path, fleet: Fleet, dice: random.Random) -> Tally:
    """Search on a store of its own; where no host is left the search ends, and is resumed."""
    tally, started = Tally(), set[int]()
    with planish.open_store(place) as store:
        while (result := _part(store, fleet, dice, tally, started)) is None:
            fleet.restore(NODES)
        trials = store.run_trials(result.run.id, level_named("loops").steps)
    if lost := {*range(TRIALS)} - {trial.index for trial in trials}:
        tally.lost += len(lost)
        tally.said.append(f"{place}: trials are lost: {sorted(lost)}")
    for trial in trials:
        if not isinstance(trial.outcome, Measured):
            tally.blame(f"{place}: trial {trial.index} is blamed: {trial.outcome}")
    # Hosts that end all the time may leave none for the comparison, which then says that it decided nothing.
    if result.baseline is None and verdict_of(result).kind not in ("undecided", "open"):
        tally.blame(f"{place}: the best is not compared with the baseline")
    if not gone(started):
        left = [pid for pid in started if Path(f"/proc/{pid}").exists()]
        tally.orphans += len(left)
        tally.said.append(f"{place}: processes are left: {left}")
    return tally


def _part(
    store: planish.Store, fleet: Fleet, dice: random.Random, tally: Tally, started: set[int]
) -> planish.Result | None:
    """Search until the end, or until no host is left; then return None.

    Raises:
        KeyboardInterrupt: a signal stopped the search.
    """
    with RayCluster(fleet.address, stall_s=STALL_S) as cluster:
        assert cluster.hosts.wait_for(1, 180)
        with _Striker(fleet, cluster, dice) as striker:
            try:
                result = planish.tune(
                    PROGRAM, size=SIZE, trials=TRIALS, searcher="random", store=store, executor=cluster,
                    show_progress=False, callbacks=[striker.on_trial],
                )  # fmt: skip
            except LostError:
                return None
            finally:
                tally.events += striker.events
                started |= striker.started
    if result.run.status == "stopped":
        raise KeyboardInterrupt
    return result
