"""Work in forked children of a cluster's hosts: answers are as on one machine, whatever ends meanwhile."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

import pytest

from planish.core import PlanishError, TargetError
from planish.measure.ray_cluster import RayCluster
from planish.sandbox.fork_pool import ForkedWork, Watchdog, WorkProcess, forked
from ray_fleet import QUIET, Fleet, children, gone, pids

pytestmark = QUIET


def double(item: int, watchdog: Watchdog) -> int:
    """Return twice the item; some end their process, as native code may."""
    if watchdog.enter("crash") and item % 10 == 7:
        os.kill(os.getpid(), signal.SIGSEGV)
    if item < 0:
        raise PlanishError("it is negative")
    return 2 * item


@dataclass
class Elsewhere:
    """Work that another machine cannot do, as where its LLVM is another one."""

    home: int

    def __call__(self, item: int, watchdog: Watchdog) -> int:
        return double(item, watchdog)

    def __reduce__(self) -> tuple[type[Elsewhere] | object, tuple[int]]:
        return _elsewhere, (self.home,)


def _elsewhere(home: int) -> Elsewhere:
    if os.getpid() != home:
        raise TargetError("it has LLVM 1, and this machine 2")
    return Elsewhere(home)


def test_a_process_works_through_batches_and_leaves_no_child() -> None:
    others = children(os.getpid())
    process = WorkProcess(ForkedWork(double, int, 2, 4))
    try:
        for first in (0, 20):
            process.send([(number, number) for number in range(first, first + 20)])
        found = dict[int, tuple[int, tuple[str, ...]]]()
        while len(found) < 40:
            found |= {each.position: (each.answer, each.refused) for each in process.replies(10.0)}
        assert found == {n: (2 * n, ("crash",) if n % 10 == 7 else ()) for n in range(40)}
        started = children(os.getpid()) - others
        assert started
        process.send([(0, -1)])
        with pytest.raises(PlanishError, match="it is negative"):
            process.replies(60.0)
    finally:
        process.close()
    assert gone(started)


def test_a_cluster_answers_as_one_machine_though_a_host_dies(fleet: Fleet, cluster: RayCluster) -> None:
    here = {done.item: (done.answer, done.refused) for done in forked(range(300), double, int, 2)}
    there, victims = dict[int, tuple[int | None, tuple[str, ...]]](), set[int]()
    for done in cluster.forked(range(300), double, int, 2, at_once=4):
        there[done.item] = done.answer, done.refused
        done.check()
        if len(there) == 50:
            victim = pids(cluster.hosts)[0]
            victims = {victim, *children(victim)}
            os.kill(victim, signal.SIGKILL)
        if len(there) == 150:
            fleet.remove(fleet.nodes[0])
    assert there == here
    assert len(victims) > 1
    assert gone(victims)


def test_what_the_work_raises_and_hosts_that_cannot_do_it(cluster: RayCluster) -> None:
    with pytest.raises(PlanishError, match="it is negative"):
        list(cluster.forked([1, -1], double, int, 1))
    with pytest.raises(TargetError, match=r"can measure this: .*it has LLVM 1, and this machine 2"):
        list(cluster.forked([1], Elsewhere(os.getpid()), int, 1))
    assert [done.answer for done in cluster.forked([1], double, int, 1)] == [2]
