"""The machine code of the runtime: repeating a kernel, and handing parallel loops to waiting threads.

Made by LLVM once in a process, on first use. The functions read two records of 64-bit words.

A job is what one bound kernel runs: [entries, lanes, args, functions, parallel, bounds]. `args` points to
one args array for each lane (a lane is a thread's place in the team), `functions` and `parallel` to a word
for each entry, `bounds` to lanes + 1 iteration numbers for each entry: lane i runs [bounds[i], bounds[i+1]).

A team is what its threads share; see `FIELDS`. The leader publishes an entry by raising `generation`;
every worker runs its part and lowers `pending`; the leader goes on when that is 0. A worker that waited
for long counts itself a sleeper and leaves, unless the team is active; Python code then makes it wait.
The leader first marks the team active, then reads the sleepers: whoever it does not see will see the mark.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from functools import cache
from typing import Any

from planish.loops.codegen.llvm.jit import load
from planish.loops.codegen.llvm.machine import Machine, host_machine

FIELDS = {"generation": 0, "pending": 8, "active": 16, "sleepers": 24, "job": 32, "entry": 33, "yield": 34}
"""Fields of a team to their places, in words; those that different threads write are in different lines."""

TEAM_WORDS = 40
SPINS = 4000
"""Looks at the flag, some 100 microseconds, before a waiting thread gives way to others."""
YIELDS = 200
"""Times that a worker gives way before it sleeps."""

_PART = """
define internal void @part(ptr %job, i64 %entry, i64 %lane) {
  %lanes_ = getelementptr i64, ptr %job, i64 1
  %lanes = load i64, ptr %lanes_
  %args_ = getelementptr ptr, ptr %job, i64 2
  %all = load ptr, ptr %args_
  %mine = getelementptr ptr, ptr %all, i64 %lane
  %args = load ptr, ptr %mine
  %functions_ = getelementptr ptr, ptr %job, i64 3
  %functions = load ptr, ptr %functions_
  %function_ = getelementptr ptr, ptr %functions, i64 %entry
  %function = load ptr, ptr %function_
  %bounds_ = getelementptr ptr, ptr %job, i64 5
  %bounds = load ptr, ptr %bounds_
  %width = add i64 %lanes, 1
  %row = mul i64 %entry, %width
  %column = add i64 %row, %lane
  %begin_ = getelementptr i64, ptr %bounds, i64 %column
  %begin = load i64, ptr %begin_
  %end_ = getelementptr i64, ptr %begin_, i64 1
  %end = load i64, ptr %end_
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %run, label %done
run:
  call void %function(ptr %args, i64 %begin, i64 %end)
  br label %done
done:
  ret void
}

define internal i1 @is_parallel(ptr %job, i64 %entry) {
  %parallel_ = getelementptr ptr, ptr %job, i64 4
  %parallel = load ptr, ptr %parallel_
  %flag_ = getelementptr i64, ptr %parallel, i64 %entry
  %flag = load i64, ptr %flag_
  %yes = icmp ne i64 %flag, 0
  ret i1 %yes
}
"""

_RELAX = """
define internal void @relax(ptr %team, i64 %spins) {
  @PAUSE@
  %long = icmp ugt i64 %spins, @SPINS@
  br i1 %long, label %give, label %done
give:
  %yield_ = getelementptr ptr, ptr %team, i64 @yield@
  %yield = load ptr, ptr %yield_
  %ignored = call i32 %yield()
  br label %done
done:
  ret void
}
"""

# What is stored before `generation` rises is seen by whoever loads the new one with acquire.
_LEAD = """
define void @lead(ptr %team, ptr %job, i64 %times) {
start:
  %entries = load i64, ptr %job
  %lanes_ = getelementptr i64, ptr %job, i64 1
  %lanes = load i64, ptr %lanes_
  %others = sub i64 %lanes, 1
  %generation = getelementptr i64, ptr %team, i64 @generation@
  %pending = getelementptr i64, ptr %team, i64 @pending@
  %active = getelementptr i64, ptr %team, i64 @active@
  %job_ = getelementptr ptr, ptr %team, i64 @job@
  %entry_ = getelementptr i64, ptr %team, i64 @entry@
  %total = mul i64 %times, %entries
  %none = icmp eq i64 %total, 0
  br i1 %none, label %end, label %each
each:
  %i = phi i64 [0, %start], [%next, %done]
  %entry = urem i64 %i, %entries
  %shared = call i1 @is_parallel(ptr %job, i64 %entry)
  br i1 %shared, label %publish, label %alone
alone:
  call void @part(ptr %job, i64 %entry, i64 0)
  br label %done
publish:
  store ptr %job, ptr %job_
  store i64 %entry, ptr %entry_
  store i64 %others, ptr %pending
  %before = atomicrmw add ptr %generation, i64 1 seq_cst
  call void @part(ptr %job, i64 %entry, i64 0)
  br label %wait
wait:
  %spins = phi i64 [0, %publish], [%more, %again]
  %left = load atomic i64, ptr %pending acquire, align 8
  %ready = icmp eq i64 %left, 0
  br i1 %ready, label %done, label %again
again:
  call void @relax(ptr %team, i64 %spins)
  %more = add i64 %spins, 1
  br label %wait
done:
  %next = add i64 %i, 1
  %finished = icmp eq i64 %next, %total
  br i1 %finished, label %end, label %each
end:
  store atomic i64 0, ptr %active seq_cst, align 8
  ret void
}

define i64 @begin(ptr %team) {
  %active = getelementptr i64, ptr %team, i64 @active@
  %sleepers = getelementptr i64, ptr %team, i64 @sleepers@
  %before = atomicrmw xchg ptr %active, i64 1 seq_cst
  %count = load atomic i64, ptr %sleepers seq_cst, align 8
  ret i64 %count
}

define void @repeat(ptr %job, i64 %times) {
start:
  %entries = load i64, ptr %job
  %total = mul i64 %times, %entries
  %none = icmp eq i64 %total, 0
  br i1 %none, label %end, label %each
each:
  %i = phi i64 [0, %start], [%next, %each]
  %entry = urem i64 %i, %entries
  call void @part(ptr %job, i64 %entry, i64 0)
  %next = add i64 %i, 1
  %finished = icmp eq i64 %next, %total
  br i1 %finished, label %end, label %each
end:
  ret void
}
"""

# The leader stores `active` and loads `sleepers`, a worker the other way round (as in Dekker's algorithm):
# were this not seq_cst, either load could overtake the store before it, and both would miss each other.
_WORK = """
define i64 @work(ptr %team, i64 %lane, i64 %seen) {
start:
  %generation = getelementptr i64, ptr %team, i64 @generation@
  %pending = getelementptr i64, ptr %team, i64 @pending@
  %active = getelementptr i64, ptr %team, i64 @active@
  %sleepers = getelementptr i64, ptr %team, i64 @sleepers@
  %job_ = getelementptr ptr, ptr %team, i64 @job@
  %entry_ = getelementptr i64, ptr %team, i64 @entry@
  %woken = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  br label %look
look:
  %known = phi i64 [%seen, %start], [%known, %again], [%now, %ran]
  %spins = phi i64 [0, %start], [%more, %again], [0, %ran]
  %now = load atomic i64, ptr %generation acquire, align 8
  %new = icmp ne i64 %now, %known
  br i1 %new, label %take, label %idle
take:
  %job = load ptr, ptr %job_
  %entry = load i64, ptr %entry_
  %stop = icmp eq ptr %job, null
  br i1 %stop, label %end, label %run
run:
  call void @part(ptr %job, i64 %entry, i64 %lane)
  br label %ran
ran:
  %rest = atomicrmw sub ptr %pending, i64 1 seq_cst
  br label %look
idle:
  call void @relax(ptr %team, i64 %spins)
  %more = add i64 %spins, 1
  %long = icmp ugt i64 %more, @LIMIT@
  br i1 %long, label %tired, label %again
tired:
  %added = atomicrmw add ptr %sleepers, i64 1 seq_cst
  %busy = load atomic i64, ptr %active seq_cst, align 8
  %called = icmp ne i64 %busy, 0
  br i1 %called, label %stay, label %leave
stay:
  %removed = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  br label %again
again:
  br label %look
leave:
  ret i64 %known
end:
  ret i64 -1
}
"""

_PAUSE = {"x86": "call void @llvm.x86.sse2.pause()", "aarch64": "call void @llvm.aarch64.hint(i32 1)"}


@dataclass(frozen=True)
class Native:
    """The functions, callable from Python; all release the GIL.

    Args:
        repeat: (job, times): run a serial job.
        begin: (team): mark the team active; returns how many workers must be woken.
        lead: (team, job, times): run a job with the team; at the end the team is no longer active.
        work: (team, lane, generation seen): after sleep, run the parts of a lane; returns the generation
            seen when it is time to sleep, or -1 when it is time to end.
        owner: keeps the code.
    """

    repeat: Any
    begin: Any
    lead: Any
    work: Any
    owner: object


@cache
def native() -> Native:
    """Compile the runtime's functions for this processor."""
    machine = host_machine()
    owner, addresses = load(_text(machine), ["repeat", "begin", "lead", "work"], machine, 1)
    pointer, word = ctypes.c_void_p, ctypes.c_int64
    types = [
        ctypes.CFUNCTYPE(None, pointer, word),
        ctypes.CFUNCTYPE(word, pointer),
        ctypes.CFUNCTYPE(None, pointer, pointer, word),
        ctypes.CFUNCTYPE(word, pointer, word, word),
    ]
    repeat, begin, lead, work = (t(a) for t, a in zip(types, addresses, strict=True))
    return Native(repeat, begin, lead, work, owner)


def yield_address() -> int:
    """Find the system's function that lets other threads run; it takes no arguments."""
    library, name = (None, "sched_yield") if os.name == "posix" else ("kernel32", "SwitchToThread")
    found = ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value
    assert found is not None
    return found


def _text(machine: Machine) -> str:
    family = "x86" if machine.triple.startswith(("x86_64", "i686")) else machine.triple.split("-")[0]
    pause = _PAUSE.get(family, "")
    text = _PART + _RELAX + _LEAD + _WORK
    values = {**FIELDS, "SPINS": SPINS, "LIMIT": SPINS + YIELDS, "PAUSE": pause}
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text + ("declare " + pause.removeprefix("call ").replace("i32 1", "i32") if pause else "")
