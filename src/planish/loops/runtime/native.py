"""Machine code of the runtime: repeating a kernel, and sharing its parallel loops with waiting threads.

Made by LLVM once in a process, on first use. The functions read two records of 64-bit words.

A job is what one bound kernel runs: [entries, lanes, args, functions, parallel, bounds]. `args` points to
one args array for each lane (a lane is the index of a thread in the team), `functions` and `parallel` to a
word for each entry, `bounds` to lanes + 1 iteration numbers for each entry: [bounds[i], bounds[i+1]) is the
share of lane i.

A team is what its threads have in common; see `FIELDS` and `LANE`. Work is scheduled dynamically. The leader,
which is the calling thread, writes each lane's share of an entry into the lane's range and raises
`generation`. Every thread takes chunks from its own range, and then from the ranges of others, until all are
empty; the leader then waits for `pending`, the iterations that are not done. So a thread that gets no
processor delays nothing unless it has begun a chunk.

A range is one word, begin + (end << 32), and a chunk is taken from it by compare-and-swap: half of what is
left, by its own lane from the front, where the caches have what that lane computed last time, by others from
the back. The job and the entry are read after the chunk was taken: then they are its own, for the leader
changes them only when `pending` is 0. A thread that comes late, even one that slept through many jobs,
therefore finds empty ranges, or a chunk of the job that runs now; it reads no job that is over.

A worker that has found no work for some time, or whose processor others want, marks its lane asleep and waits
for the lane's lock; the leader wakes it. The leader raises `generation` before it reads the marks, a worker
sets its mark before it reads `generation`: one of them sees the other (as in Dekker's algorithm), which holds
because all four are seq_cst.

A worker that has begun a chunk may lose its processor for milliseconds. While the leader waits for `pending`
it therefore reads the processor time of the workers that compute. One whose time stands still it moves to its
own processor, and sleeps until nothing is pending; the worker that finishes the last chunk wakes it.
"""

from __future__ import annotations

import ctypes
import os
import time
from dataclasses import dataclass
from typing import Any

from planish.core.fork_locks import free_after_fork
from planish.loops.codegen.llvm.jit import load
from planish.loops.codegen.llvm.machine import Machine, host_machine
from planish.loops.runtime.native_placing import KEEP_OFF, KEEP_OFF_NONE, MOVE_STOPPED, NOW, NOW_NONE
from planish.loops.runtime.native_sharing import LEAD, PART, SHARE, WAKE, WORK

FIELDS = {
    "generation": 0,  # rises with each entry, and when the team ends
    "pending": 8,  # iterations of the entry that are not done
    "busy": 16,  # 1 while a leader runs a job
    "job": 24,
    "entry": 25,
    "lanes": 26,
    "ended": 27,
    "processor": 28,  # which the leader was on when the workers were last kept off it; -1 where they are not
    "mask": 32,  # MASK_WORDS words: a set of processors, to be written by the leader
}
"""Words of a team before its lanes; those that different threads write are in different cache lines."""
MASK_WORDS = 16
TEAM_WORDS = FIELDS["mask"] + MASK_WORDS
"""Words before the lanes."""
LANE = {
    "range": 0,  # iterations that nobody has taken: begin in the low half, end in the high one
    "asleep": 1,
    "lock": 2,  # of CPython; free for a moment when the thread is to wake up
    "thread": 3,  # the system's number of the worker; 0 where it is not known
    "computes": 4,  # 1 while the worker looks for chunks, or computes one
    "time": 5,  # its processor time when the leader last read it, in nanoseconds
    "moved": 6,  # 1 after the leader moved it to its own processor
}
LANE_WORDS = 8
"""Words of a lane, which is one cache line."""

SPINS = 4000
"""Looks at the flag, some 100 microseconds, before a waiting thread sleeps or, the leader, gives way."""
LOOKS = 64
"""Looks, a microsecond or two, after which a worker gives way, to see if others want its processor."""
CHECKS = 1024
"""Looks, some 20 microseconds, after which the leader finds out whether those that it waits for still run."""
WANTED_NS = 50_000
"""A worker that gave way and came back later than this has a processor that others want."""
LEAST_SHARED_NS, MOST_SHARED_NS = 10_000_000, 200_000_000
"""So long it then sleeps at once when it has no work: at first, and at most; twice as long each time.

OpenBLAS's threads look for work for about 100 milliseconds after each multiplication, and never give way. A
worker that did likewise would keep them from working, and they it.
"""


_PAUSE = {"x86": "call void @llvm.x86.sse2.pause()", "aarch64": "call void @llvm.aarch64.hint(i32 1)"}


@dataclass(frozen=True)
class Native:
    """The functions, callable from Python; all release the GIL.

    Args:
        repeat: (job, times): run a job in the calling thread.
        lead: (team, job, times): run a job with the team; in the calling thread alone where another thread
            leads the team.
        work: (team, lane): take part in jobs until the team ends.
        end: (team): have all workers return.
        owner: keeps the code.
    """

    repeat: Any
    lead: Any
    work: Any
    end: Any
    owner: object


_compiling = free_after_fork()
_natives: list[Native] = []


def native() -> Native:
    """Compile the runtime's functions for this processor; all threads get the same ones."""
    if not _natives:
        with _compiling:  # of two compiled at once, the code of one would be freed while it runs
            if not _natives:
                _natives.append(_compiled())
    return _natives[0]


def _compiled() -> Native:
    machine = host_machine()
    owner, addresses = load(_text(machine), ["repeat", "lead", "work", "end"], machine, 1)
    pointer, word = ctypes.c_void_p, ctypes.c_int64
    types = [
        ctypes.CFUNCTYPE(None, pointer, word),
        ctypes.CFUNCTYPE(None, pointer, pointer, word),
        ctypes.CFUNCTYPE(None, pointer, word),
        ctypes.CFUNCTYPE(None, pointer),
    ]
    repeat, lead, work, end = (t(a) for t, a in zip(types, addresses, strict=True))
    return Native(repeat, lead, work, end, owner)


def _text(machine: Machine) -> str:
    family = "x86" if machine.triple.startswith(("x86_64", "i686")) else machine.triple.split("-")[0]
    pause = _PAUSE.get(family, "")
    functions = _system_functions()
    placing = {"GETCPU", "GETAFFINITY", "SETAFFINITY"} <= functions.keys()
    text = PART + SHARE + WAKE + LEAD + WORK
    text += KEEP_OFF + MOVE_STOPPED if placing else KEEP_OFF_NONE
    text += NOW if "CLOCK" in functions else NOW_NONE
    values: dict[str, object] = {**FIELDS, **{f"lane.{name}": place for name, place in LANE.items()}}
    values |= {"TEAM_WORDS": TEAM_WORDS, "LANE_WORDS": LANE_WORDS, "MASK_WORDS": MASK_WORDS}
    values |= {"MASK_BYTES": 8 * MASK_WORDS, "MASK_BITS": 64 * MASK_WORDS, "MONOTONIC": _MONOTONIC}
    values |= {"SPINS": SPINS, "LOOKS": LOOKS, "CHECKS": CHECKS, "PAUSE": pause}
    values |= {"WANTED_NS": WANTED_NS, "LEAST_SHARED_NS": LEAST_SHARED_NS, "MOST_SHARED_NS": MOST_SHARED_NS}
    values |= {name: f"inttoptr (i64 {address} to ptr)" for name, address in functions.items()}
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text + ("declare " + pause.removeprefix("call ").replace("i32 1", "i32") if pause else "")


_MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 0)
_SYSTEM = {
    "CLOCK": "clock_gettime",
    "GETCPU": "sched_getcpu",
    "GETAFFINITY": "sched_getaffinity",
    "SETAFFINITY": "sched_setaffinity",
}
"""Functions that some systems lack."""


def _system_functions() -> dict[str, int]:
    """Find the addresses of the functions that the machine code calls."""
    library, name = (None, "sched_yield") if os.name == "posix" else ("kernel32", "SwitchToThread")
    system, python = ctypes.CDLL(library), ctypes.pythonapi
    found = {"YIELD": getattr(system, name)}
    found |= {"ACQUIRE": python.PyThread_acquire_lock, "RELEASE": python.PyThread_release_lock}
    for name, function in _SYSTEM.items():
        if os.name == "posix" and hasattr(system, function):
            found[name] = getattr(system, function)
    return {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in found.items()}
