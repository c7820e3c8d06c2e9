"""Executors on the measuring hosts of a Ray cluster.

The head, which is the process that searches, keeps the queue of candidates and everything that is stored.
A host receives candidates and returns outcomes; what it does between is `planish.measure.ray_host`. Both pass
through a collector (`planish.measure.ray_collector`). A host or a collector that dies or falls silent costs
nothing but time: its candidates are evaluated elsewhere, or again.
"""

from __future__ import annotations

import itertools
import logging
import math
import pickle
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic

from planish.core import (
    Candidate,
    Evaluation,
    EvaluatorSpec,
    Lost,
    NeedsBaseline,
    PlanishError,
    Target,
    TargetError,
)
from planish.measure.executors import Found, Item, QueuedExecutor, pickled
from planish.measure.ray_connection import last_line
from planish.measure.ray_host import Message, Report, Requirements
from planish.measure.ray_hosts import TICK_S, Host, HostPool
from planish.sandbox.confinement import SandboxPolicy
from planish.sandbox.fork_pool import Done, WorkReply
from planish.sandbox.limits import ExitStatus, Limits
from planish.sandbox.protocol import EvaluationReply
from planish.sandbox.scratch import is_shared

_WAIT_S = 0.5  # how long a host waits for a result before it answers without one
_REPORT_S = 0.2  # how long a host collects results before it reports them, while it has more to do
_MESSAGES = 400  # reports a second that are asked for at most, from all hosts together
_HOSTS = 3  # hosts that may be lost with an item for each of its attempts: most are lost for other reasons
_AWAY_S = 1.0  # a pause between two looks in which answers may have come that were not taken yet

_log = logging.getLogger("planish")


@dataclass(frozen=True)
class TaskHosts:
    """Hosts of a cluster that may measure for a task: those of its target.

    Args:
        pool: the hosts of the cluster.
        target: of the task; None where any will do.
        describe: returns the target of the machine that calls it; it is pickled.
        unfit: of hosts that cannot measure for the task, by the ids of their nodes: why.
    """

    pool: HostPool
    target: Target | None = None
    describe: Callable[[], Target] | None = None
    unfit: dict[str, str] = field(default_factory=dict[str, str])

    def __call__(self, spec: EvaluatorSpec, /, *, workers: int | None = None) -> RayExecutor:
        """Start an executor; see `planish.core.ExecutorFactory`.

        Args:
            spec: makes its evaluators.
            workers: processes on each of the hosts; None for a single one on one host, which evaluates a
                batch in its order.
        """
        return RayExecutor(self, spec, workers=workers)

    def usable(self) -> Mapping[str, Host]:
        """Return the hosts that are ready, by the ids of their nodes.

        Raises:
            LostError: there is no host any more, and none starts.
            TargetError: none of the hosts can measure for the task.
        """
        hosts = self.pool.ready()
        usable = {node: host for node, host in hosts.items() if node not in self.unfit}
        if hosts and not usable and not self.pool.is_starting:
            why = "; ".join(dict.fromkeys(self.unfit.values()))
            raise TargetError(f"no host of the Ray cluster can measure this: {why}", "Start one that can.")
        return usable

    def exclude(self, host: Host, why: str) -> None:
        """Use a host no more for this task; others may have another target."""
        self.unfit[host.node] = f"{host.name}: {why}"
        _log.warning("host %s is not used: %s", host.name, why)


@dataclass
class _Slot(Generic[Item]):
    """A host as one executor sees it.

    Args:
        host: where its actor is.
        call: result of what the actor does for the executor just now, or the number of the message whose
            report is awaited; None: it does nothing.
        since: when the call began.
        collector: that knows the actor.
        serial: of the spec by which the host evaluates; -1: none yet.
        capacity: as the host reported last.
        pending: what it is to evaluate, by number, in order.
        losses: as the host reported last.
        error: why the host cannot evaluate by the spec.
    """

    host: Host
    call: Future[Any] | int | None = None
    since: float = 0.0
    collector: Any = None
    serial: int = -1
    capacity: int = 1
    pending: dict[int, Item] = field(default_factory=dict[int, Item])
    losses: Counter[str] = field(default_factory=Counter[str])
    error: PlanishError | None = None


class _HostQueue(QueuedExecutor[Item, Found]):
    """Items that the measuring hosts of a Ray cluster work on.

    What is lost with a host is done by another one, three times as often as the limits allow attempts; of
    what was queued there only, no loss is counted. A queue belongs to one thread at a time.

    Args:
        hosts: that may do it.
        spec: what they do; it is pickled, with what it holds.
        workers: processes on each host; None for a single one on one host.
        limits: of one item; None takes those that the spec asks for.

    Attributes:
        notes: for the user.
        losses: how many items were lost, with their workers or hosts, by cause.
    """

    def __init__(
        self, hosts: TaskHosts, spec: Any, *, workers: int | None = None, limits: Limits | None = None
    ) -> None:
        super().__init__()
        self._hosts, self._pool, self._key = hosts, hosts.pool, hosts.pool.next_key()
        self._single, self._workers, self._given = workers is None, workers or 1, limits
        self._slots: dict[str, _Slot[Item]] = {}
        self._capacity = 0
        self._answers: SimpleQueue[Callable[[], None]] = SimpleQueue()  # each handles what has come
        self._numbers = itertools.count()  # of messages
        self._outgoing: list[tuple[int, _Slot[Item], bytes]] = []
        self._sent: dict[int, _Slot[Item]] = {}
        self._exchanges = 0  # calls of collectors that have not returned
        self._away_s, self._left, self._heard = 0.0, time.monotonic(), 0.0
        self._suspects: set[int] = set()  # numbers of items that were not reported by a host that was lost
        self._next_look = 0.0
        self._serial = -1
        self.losses: Counter[str] = Counter()
        self._set_spec(spec)
        self._advance()

    @property
    def _attempts(self) -> int:
        return _HOSTS * self._limits.attempts

    @abstractmethod
    def _result(self, item: Item, reply: Any) -> Found:
        """Make the result of an item from a host's reply."""

    @abstractmethod
    def _lost(self, item: Item, host: str, why: str) -> Found:
        """Make the result of an item that is given up, since host after host was lost with it."""

    @property
    def capacity(self) -> int:
        """Return what its hosts have capacity for, and one at least."""
        return max(1, self._capacity)

    @property
    def unanswered(self) -> int:
        """Return the number of items without a result."""
        return self._queue.unanswered

    def cancel(self) -> None:
        """Abandon all that is under way, and results that were not taken."""
        super().cancel()
        self._suspects.clear()
        for slot in self._slots.values():
            if slot.pending:
                self._abandon(slot)

    def close(self) -> None:
        """End the workers on all hosts; harmless when called twice."""
        super().close()
        for slot in self._slots.values():
            with suppress(Exception):  # Ray has ended
                slot.host.actor.end.remote(self._key)
        self._slots.clear()
        self._capacity = 0

    def _abandon(self, slot: _Slot[Item]) -> None:
        """Abandon what is pending on a host, after the call that is under way, whose result is ignored."""
        slot.pending.clear()
        self._call(slot, slot.host.actor.cancel.remote(self._key))

    def _set_spec(self, spec: Any) -> None:
        pickled(spec)
        self._spec = spec
        self._required = pickle.dumps(Requirements(self._hosts.target, self._hosts.describe, _files(spec)))
        self._limits = self._given or Limits.of(spec)
        self._serial += 1
        self.notes = ()
        # Hosts begin one after the other, with the time of the baseline once the first has measured it.
        self._begins_alone = isinstance(spec, NeedsBaseline)
        for slot in self._slots.values():
            slot.error = None

    def _advance(self) -> None:
        """Send hosts what they can do, and handle what they have answered."""
        if (away := time.monotonic() - self._left) > _AWAY_S:
            self._away_s += away
        if time.monotonic() >= self._next_look or not self._slots:
            self._next_look = time.monotonic() + TICK_S
            self._update_slots()
        for slot in self._slots.values():
            if slot.call is None:
                self._give_work(slot)
        self._exchange()
        if all(slot.call is None for slot in self._slots.values()):
            self._pool.pause()
        else:
            with suppress(Empty):
                self._answers.get(timeout=TICK_S)()
                while True:  # others may have answered, too
                    self._answers.get_nowait()()
        self._left = time.monotonic()

    def _now(self) -> float:
        """Return the time of a clock that stands while this process does other work than to take answers."""
        return time.monotonic() - self._away_s

    def _update_slots(self) -> None:
        usable = self._hosts.usable()
        # Before the hosts whose reports it has: it answers after half a second at the latest.
        if self._exchanges and self._now() - self._heard > self._pool.stall_s / 2:
            self._lose_collector(self._pool.collector(), "no answer")
        for node, slot in [*self._slots.items()]:
            if usable.get(node) is not slot.host:  # lost to another executor of this cluster
                self._requeue(slot, "its actor is gone")
            elif slot.call is not None and self._now() - slot.since > self._pool.stall_s:
                self._lose(slot, f"no answer for {self._pool.stall_s:g} s")
        for node, host in usable.items():
            is_wanted = not self._single or all(slot.error for slot in self._slots.values())
            if node not in self._slots and is_wanted:
                slot = self._slots[node] = _Slot[Item](host)
                self._capacity += slot.capacity
        errors = [slot.error for slot in self._slots.values() if slot.error]
        if errors and len(errors) == len(self._slots):
            raise errors[0]

    def _give_work(self, slot: _Slot[Item]) -> None:
        actor = slot.host.actor
        if slot.serial != self._serial:
            if not (self._begins_alone and any(map(self._evaluates, self._slots.values()))):
                spec = pickled(self._spec)
                begun = actor.begin.remote(self._key, spec, self._workers, self._given, self._required)
                self._call(slot, begun, lambda obstacle: self._on_begun(slot, obstacle))
                slot.serial, slot.error = self._serial, None
            return
        if slot.error:
            return
        # One of those that were lost may have ended its host: at its next loss it is to be the only one.
        room = (1 if self._suspects else slot.capacity) - len(slot.pending)
        batch: Sequence[tuple[int, Item]] = ()
        if room > 0 and len(self._queue):
            share = -(-len(self._queue) // len(self._slots))
            batch = [*zip(*self._queue.take(min(room, share)), strict=True)]
        if batch or slot.pending:
            slot.pending.update(batch)
            left = self._until - time.monotonic()
            report_s = 0.0 if self._suspects else max(_REPORT_S, len(self._slots) / _MESSAGES)
            message = Message(self._key, batch, left, max(_WAIT_S, report_s), report_s)
            number = next(self._numbers)
            slot.call, slot.since = number, self._now()
            # Ray takes several times as long to pickle it, and each argument apart.
            self._outgoing.append((number, slot, pickle.dumps(message)))

    def _exchange(self) -> None:
        """Pass messages to the collector, and have it return the next reports."""
        if not self._outgoing and (self._exchanges or not self._sent):
            return
        outgoing, self._outgoing = self._outgoing, []
        began = time.monotonic()
        collector = self._pool.collector()
        self._away_s += time.monotonic() - began  # it may have been started
        joining = {s.host.node: s.host.actor for _, s, _ in outgoing if s.collector is not collector}
        for number, slot, _ in outgoing:
            self._sent[number], slot.collector = slot, collector
        messages = pickle.dumps([(number, slot.host.node, message) for number, slot, message in outgoing])
        if not self._exchanges:
            self._heard = self._now()
        self._exchanges += 1
        answer: Future[bytes] = collector.exchange.remote(self._key, messages, joining).future()
        answer.add_done_callback(
            lambda answer: self._answers.put(partial(self._on_reports, collector, answer))
        )

    def _on_reports(self, collector: Any, answer: Future[bytes]) -> None:
        self._exchanges -= 1
        self._heard = self._now()
        try:
            reports: Sequence[tuple[int, bytes | str]] = pickle.loads(answer.result())
        except Exception as error:  # noqa: BLE001  (its process died)
            self._lose_collector(collector, last_line(error))
            return
        for number, report in reports:
            slot = self._sent.pop(number, None)
            if slot is None or slot.call != number:
                continue  # canceled, or lost meanwhile
            if isinstance(report, str):
                self._lose(slot, report)
            else:
                slot.call = None
                self._on_report(slot, pickle.loads(report))

    def _lose_collector(self, collector: Any, why: str) -> None:
        """Have what was under way by a collector evaluated again."""
        self._pool.lose_collector(collector, why)
        self._heard = self._now()
        for number, slot in [*self._sent.items()]:
            if slot.collector is collector:
                del self._sent[number]
                if slot.call == number:
                    self._queue.put_back([*slot.pending])
                    self._abandon(slot)

    def _evaluates(self, slot: _Slot[Item]) -> bool:
        """Return whether a host has begun to evaluate by the spec."""
        return slot.serial == self._serial and slot.error is None

    def _call(self, slot: _Slot[Item], reference: Any, take: Callable[[Any], None] = lambda _: None) -> None:
        """Note what a host does for the executor just now, and handle the result when it comes."""
        # A wait for references takes as long as there are references; futures come by themselves.
        answer: Future[Any] = reference.future()
        slot.call, slot.since = answer, self._now()
        # In a thread of Ray.
        answer.add_done_callback(lambda answer: self._answers.put(partial(self._handle, slot, answer, take)))

    def _handle(self, slot: _Slot[Item], answer: Future[Any], take: Callable[[Any], None]) -> None:
        if slot.call is not answer:
            return  # canceled, or lost meanwhile
        try:
            found = answer.result()
        except Exception as error:  # noqa: BLE001  (an actor or node that died, an error of its process)
            self._lose(slot, last_line(error))
            return
        slot.call = None
        take(found)

    def _on_begun(self, slot: _Slot[Item], obstacle: PlanishError | str) -> None:
        if isinstance(obstacle, PlanishError):
            raise obstacle
        if obstacle:
            self._exclude(slot, obstacle)

    def _on_report(self, slot: _Slot[Item], report: Report) -> None:
        if report.error is not None:
            self._on_error(slot, report.error)
            return
        self._capacity += report.capacity - slot.capacity
        slot.capacity = report.capacity
        self._add_notes(report.notes)
        self.losses += report.losses - slot.losses
        slot.losses = report.losses
        if report.replies:
            self._begins_alone = False
            self._pool.answered(slot.host)
        for reply in report.replies:
            # A message that the collector passed on may arrive after what canceled it.
            if reply.position not in slot.pending:
                continue
            del slot.pending[reply.position]
            self._suspects.discard(reply.position)
            self._ready.append(self._result(self._queue.finish(reply.position), reply))
        if report.canary_s is not None and (
            why := slot.host.canary.look(report.canary_s, self._fastest(slot))
        ):
            self._set_aside(slot, why)

    def _fastest(self, slot: _Slot[Item]) -> float:
        """Return the least seconds of the canary on the other hosts, which are of one kind: the task's."""
        others = [each.host.canary.least for each in self._slots.values() if each is not slot]
        return min(others, default=math.inf) if self._hosts.target else math.inf

    def _on_error(self, slot: _Slot[Item], error: PlanishError) -> None:
        """Use a host no more by this spec, as where a file is missing."""
        slot.error = error
        self._queue.put_back([*slot.pending])
        slot.pending.clear()
        _log.warning("host %s is not used: %s", slot.host.name, error.message)

    def _set_aside(self, slot: _Slot[Item], why: str) -> None:
        """Use a host no more whose times are not true, unless it is the last one; say so in a note."""
        is_last = not any(self._evaluates(each) for each in self._slots.values() if each is not slot)
        self._add_notes([f"host {slot.host.name}: {why}{'; times may be too long' if is_last else ''}"])
        if not is_last:
            self._exclude(slot, why)

    def _exclude(self, slot: _Slot[Item], why: str) -> None:
        slot.host.actor.end.remote(self._key)
        self._queue.put_back([*slot.pending])
        self._remove(slot)
        self._hosts.exclude(slot.host, why)

    def _lose(self, slot: _Slot[Item], why: str) -> None:
        self._pool.lose(slot.host, why)
        self._requeue(slot, why)

    def _requeue(self, slot: _Slot[Item], why: str) -> None:
        """Have what was pending on a host, and was not reported, evaluated elsewhere."""
        numbers = [*slot.pending]
        self._remove(slot)
        self._suspects.update(numbers)
        # Those that were sent first were under way, or had ended; most after them were never begun.
        begun, others = numbers[: self._workers], numbers[self._workers :]
        self._queue.put_back(others)
        for number in reversed(begun):
            self.losses["the host was lost"] += 1
            if not self._queue.lose(number):
                self._suspects.discard(number)
                self._ready.append(self._lost(self._queue.finish(number), slot.host.name, why))

    def _remove(self, slot: _Slot[Item]) -> None:
        del self._slots[slot.host.node]
        self._capacity -= slot.capacity
        slot.call = None
        slot.pending.clear()


def _files(spec: EvaluatorSpec) -> Sequence[str]:
    """Return the files and folders of this machine that the workers of a spec read or write.

    A folder that this process shares with its workers is another one on each host.
    """
    policy = SandboxPolicy.of(spec)
    paths = (*policy.reads, *policy.writes) if policy else ()
    return [path for path in dict.fromkeys(paths) if Path(path).exists() and not is_shared(Path(path))]


class RayExecutor(_HostQueue[Candidate, Evaluation]):
    """Evaluates on the measuring hosts of a Ray cluster; `planish.RayCluster` starts it.

    Each host evaluates in sandboxed workers, as a `LocalExecutor` does. What is lost with a host is
    evaluated on another one, and is a `Lost` outcome after three hosts for each attempt that is allowed.

    Args:
        hosts: that may measure.
        spec: makes the evaluators; it is pickled, with what it holds.
        workers: processes on each host; None for a single one on one host.
        limits: what one evaluation may use; None takes those that the spec asks for.

    Attributes:
        notes: the evaluators' notes for the user.
        losses: how many evaluations were lost, with their workers or hosts, by cause.
    """

    def serve(self, spec: EvaluatorSpec) -> None:
        """Evaluate for another task from now on; see `planish.core.Executor`."""
        self._check_open()
        self._check_idle(self._queue.unanswered or self._answering or self._ready)
        self._set_spec(spec)

    def _result(self, item: Candidate, reply: EvaluationReply) -> Evaluation:
        return Evaluation(item, reply.outcome, reply.seconds, reply.host)

    def _lost(self, item: Candidate, host: str, why: str) -> Evaluation:
        return Evaluation(item, Lost("worker", "host lost", f"{host}: {why}"), {}, host)


class RayWork(_HostQueue[Item, Done[Item, Any]]):
    """Work that is done in forked children of the hosts, as `planish.sandbox.fork_pool.forked` does it."""

    def _result(self, item: Item, reply: WorkReply) -> Done[Item, Any]:
        return Done(item, reply.answer, reply.refused, reply.given_up)

    def _lost(self, item: Item, host: str, why: str) -> Done[Item, Any]:
        cause = f"host {host} was lost"
        return Done(item, None, (), ExitStatus(cause, f"{cause}: {why}", external=True))
