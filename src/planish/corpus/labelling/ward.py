"""Work on many items in forked children, so that what LLVM does there costs one evaluation."""

from __future__ import annotations

import faulthandler
import mmap
import os
import resource
import signal
import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Generic, NoReturn, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_SLATE = 8192
_DEATHS = 16
"""An item that ends so many children is given up."""
_MEMORY = 4 << 30
_PATIENCE = 50
"""How many seconds by the clock one of the processor may take."""


class Ward:
    """Guards the evaluations of one item, within a child.

    Before each one the child notes what it is about to do where its parent can read it, and sets the
    clocks that kill it. What ended a child before is not to be done again.

    Args:
        slate: memory that is shared with the parent.
        refused: what ended a child at this item.
        seconds: of the processor, for one evaluation.
    """

    def __init__(self, slate: mmap.mmap, refused: Sequence[str], seconds: float) -> None:
        self._slate = slate
        self._refused = frozenset(refused)
        self._seconds = seconds

    def enter(self, text: str) -> bool:
        """Note what is evaluated now; False if it must not be."""
        if text in self._refused:
            return False
        _write(self._slate, text)
        self._limit(self._seconds)
        return True

    def leave(self) -> None:
        """Stop the clocks."""
        self._limit(0)

    def _limit(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # of the processor: a busy machine refuses nothing
        signal.setitimer(signal.ITIMER_REAL, seconds * _PATIENCE)


@dataclass(frozen=True)
class Done(Generic[Item, Answer]):
    """An item that is over.

    Args:
        item: it.
        answer: what the work gave; None where it was given up.
        refused: what ended a child at this item: a crash, an exit or a hang.
    """

    item: Item
    answer: Answer | None
    refused: tuple[str, ...]


@dataclass
class _Child(Generic[Item]):
    pid: int
    answers: Connection
    slate: mmap.mmap
    items: deque[Item]


@dataclass
class _Crew(Generic[Item, Answer]):
    """The children, and what is left to do."""

    work: Callable[[Item, Ward], Answer]
    waiting: Generator[Item]
    at_once: int
    seconds: float
    children: dict[int, _Child[Item]] = field(default_factory=dict[int, Any])
    refused: dict[int, list[str]] = field(default_factory=lambda: defaultdict[int, list[str]](list))

    def begin(self, items: Iterable[Item]) -> None:
        """Fork a child for some items, if there are any."""
        mine = deque(items)
        if not mine:
            return
        receives, sends = Pipe(duplex=False)
        slate = mmap.mmap(-1, _SLATE)
        with warnings.catch_warnings():
            # With other threads, a fork may find a lock held for ever; the work takes none of theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if not pid:
            receives.close()
            self._work_and_exit(mine, sends, slate)
        sends.close()
        self.children[receives.fileno()] = _Child(pid, receives, slate, mine)

    def _work_and_exit(self, items: Iterable[Item], sends: Connection, slate: mmap.mmap) -> NoReturn:
        code = 1
        try:
            _settle()
            for item in items:
                _write(slate, "")
                ward = Ward(slate, self.refused[id(item)], self.seconds)
                answer = self.work(item, ward)
                ward.leave()
                sends.send(answer)
            code = 0
        except Exception as error:  # noqa: BLE001 - the parent raises it
            with suppress(OSError):
                sends.send(error)
        finally:
            os._exit(code)

    def listen(self) -> Generator[Done[Item, Answer]]:
        """Take what the children have said since."""
        for answers in wait([child.answers for child in self.children.values()]):
            assert isinstance(answers, Connection)
            child = self.children[answers.fileno()]
            try:
                answer = answers.recv()
            except (EOFError, OSError):
                yield from self._bury(child)
                continue
            if isinstance(answer, BaseException):
                raise answer
            yield self._over(child.items.popleft(), answer)

    def _over(self, item: Item, answer: Answer | None) -> Done[Item, Answer]:
        return Done(item, answer, tuple(self.refused.pop(id(item), ())))

    def _bury(self, child: _Child[Item]) -> Generator[Done[Item, Answer]]:
        """Note what a child died of, and have another go on in its place."""
        del self.children[child.answers.fileno()]
        child.answers.close()
        os.waitpid(child.pid, 0)
        if not child.items:
            self.begin(islice(self.waiting, self.at_once))
            return
        deaths = self.refused[id(child.items[0])]
        deaths.append(_read(child.slate))
        if len(deaths) >= _DEATHS or not deaths[-1]:
            yield self._over(child.items.popleft(), None)
        self.begin(child.items or islice(self.waiting, self.at_once))

    def end(self) -> None:
        """Kill what still runs."""
        for child in self.children.values():
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)


def forked(
    items: Iterable[Item],
    work: Callable[[Item, Ward], Answer],
    jobs: int,
    *,
    at_once: int = 16,
    seconds: float = 5,
) -> Generator[Done[Item, Answer]]:
    """Do work on each item, in children that are forked from here.

    When a child dies, what it was doing is refused from then on, and another child does the item again:
    so the work must be the same each time, the refused evaluations apart.

    Args:
        items: taken as children become free.
        work: gives an item's answer, which is pickled; it is told of its evaluations by the ward.
        jobs: children side by side.
        at_once: items of one child, which then ends: what it leaks is given back.
        seconds: of the processor, for one evaluation, after which the child is killed.

    Yields:
        Items that are over, in any order.

    Raises:
        Exception: whatever the work raises.
    """
    crew = _Crew(work, (item for item in items), at_once, seconds)
    try:
        for _ in range(jobs):
            crew.begin(islice(crew.waiting, at_once))
        while crew.children:
            yield from crew.listen()
    finally:
        crew.end()


def _settle() -> None:
    faulthandler.disable()  # a crash is no news here
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for clock in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(clock, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))


def _write(slate: mmap.mmap, text: str) -> None:
    data = text.encode()[: _SLATE - 4]
    slate[: len(data) + 4] = len(data).to_bytes(4, "little") + data


def _read(slate: mmap.mmap) -> str:
    size = int.from_bytes(slate[:4], "little")
    return slate[4 : 4 + size].decode(errors="replace")
