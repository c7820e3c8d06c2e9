"""Execution of compiled kernels on NumPy arrays, by teams of threads.

A team of threads (in the sense of OpenMP) shares parallel loops. It is made on first use, and kept for the
life of the process. The machine code by which it works is made by LLVM once in a process. It reads two
records of 64-bit words.

A job is the `LaunchRecord` of a kernel: [entries, lanes, args, functions, parallel, bounds]. `args` points to
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

Where Linux grants it, the threads ask for short time slices, which suit work in short bursts.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError, TargetError, did_you_mean
from planish.core.process import free_after_fork
from planish.levels.loops.codegen.kernel import ALIGNMENT, Entry, MachineCode
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import DTYPES, Program, TensorType

# Machine code

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
    "range": 0,  # iterations that no thread has taken: begin in the low half, end in the high one
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
LED_SPINS = 400_000
"""Looks, some 10 milliseconds, before a worker sleeps while a leader still runs a job.

A network's leader runs layers alone that are too small to share. To wake a worker after each of them costs
tens of microseconds; until then it looks on, and gives way to others that want its processor.
"""
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


_TEXT = Path(__file__).with_name("threads.ll")
_PLACEMENT = Path(__file__).with_name("thread_placement.ll")
_NO_PLACEMENT = """
define internal void @keep_off(ptr %team) {
  ret void
}

define internal i1 @move_stopped(ptr %team) {
  ret i1 false
}
"""
"""Functions where the system places threads itself."""
_NOW = """
define internal i64 @now(i32 %clock) {
  %time = alloca [2 x i64]
  store [2 x i64] zeroinitializer, ptr %time
  %code = call i32 @CLOCK@(i32 %clock, ptr %time)
  %seconds = load i64, ptr %time
  %rest_ = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest_
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}
"""
_NO_NOW = """
define internal i64 @now(i32 %clock) {
  ret i64 0
}
"""
"""Without this clock a worker does not find out whether others want its processor."""


def _compiled() -> Native:
    from planish.levels.loops.codegen.llvm.jit import host_machine, load  # LLVM takes long to import

    machine = host_machine()
    functions = {name: f"inttoptr (i64 {at} to ptr)" for name, at in _system_functions().items()}
    text = team_functions(machine.triple, functions)
    owner, addresses = load(text, ["repeat", "lead", "work", "end"], machine)
    pointer, word = ctypes.c_void_p, ctypes.c_int64
    types = [
        ctypes.CFUNCTYPE(None, pointer, word),
        ctypes.CFUNCTYPE(None, pointer, pointer, word),
        ctypes.CFUNCTYPE(None, pointer, word),
        ctypes.CFUNCTYPE(None, pointer),
    ]
    repeat, lead, work, end = (t(a) for t, a in zip(types, addresses, strict=True))
    return Native(repeat, lead, work, end, owner)


def team_functions(triple: str, functions: Mapping[str, str]) -> str:
    """Write the functions of teams, as IR.

    Args:
        triple: the processor, as LLVM names it.
        functions: of the system, as operands: `YIELD`, `ACQUIRE` and `RELEASE` of locks; and `CLOCK`,
            `GETCPU`, `GETAFFINITY` and `SETAFFINITY`, which may be missing.
    """
    family = "x86" if triple.startswith(("x86_64", "i686")) else triple.split("-", maxsplit=1)[0]
    pause = _PAUSE.get(family, "")
    places = functions.keys() >= {"GETCPU", "GETAFFINITY", "SETAFFINITY"}
    text = _TEXT.read_text() + (_PLACEMENT.read_text() if places else _NO_PLACEMENT)
    text += _NOW if "CLOCK" in functions else _NO_NOW
    values: dict[str, object] = {**FIELDS, **{f"lane.{name}": index for name, index in LANE.items()}}
    values |= {"TEAM_WORDS": TEAM_WORDS, "LANE_WORDS": LANE_WORDS, "MASK_WORDS": MASK_WORDS}
    values |= {"MASK_BYTES": 8 * MASK_WORDS, "MASK_BITS": 64 * MASK_WORDS, "MONOTONIC": _MONOTONIC}
    values |= {"SPINS": SPINS, "LED_SPINS": LED_SPINS, "LOOKS": LOOKS, "CHECKS": CHECKS, "PAUSE": pause}
    values |= {"WANTED_NS": WANTED_NS, "LEAST_SHARED_NS": LEAST_SHARED_NS, "MOST_SHARED_NS": MOST_SHARED_NS}
    values |= functions
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


# Short time slices

_CALL = {"x86_64": 314, "aarch64": 274}
"""The number of Linux's sched_setattr, which C libraries lack."""
SLICE_NS = 100_000
"""The shortest that Linux grants."""


class _Attributes(ctypes.Structure):
    """Linux's sched_attr, in its first version."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def request_short_slices() -> None:
    """Request short time slices, so that the calling thread runs soon after it is woken.

    Since Linux 6.12, a thread with shorter slices than the one that runs takes its processor when it wakes
    up, unless it has had more than its share. It gets no more processor time than others. Earlier versions,
    other systems and sandboxes leave all as it is.
    """
    number = _CALL.get(platform.machine())
    if not hasattr(os, "sched_getscheduler") or number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    wanted = _Attributes(ctypes.sizeof(_Attributes), os.SCHED_OTHER, 0, nice, 0, SLICE_NS, 0, 0)
    # What it answers does not matter: it is a request.
    ctypes.CDLL(None).syscall(number, 0, ctypes.byref(wanted), 0)


# Teams

_CACHE_LINE = 64


class ThreadTeam:
    """A leader, which is the calling thread, and workers; each has a lane, the leader's is 0.

    Workers wait in machine code, without the GIL. Jobs need none of them: what no worker has begun, the
    leader does. So there may be fewer than lanes, where the system allows no more threads.

    Args:
        lanes: threads in all, at least 2.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self._native = native()
        words = TEAM_WORDS + lanes * LANE_WORDS
        # One line more, to begin at a cache line: fields that different threads write are in lines of their
        # own.
        self._memory = (ctypes.c_int64 * (words + _CACHE_LINE // 8))()
        self._start = -(-ctypes.addressof(self._memory) // _CACHE_LINE) * _CACHE_LINE
        self._team = ctypes.c_void_p(self._start)
        self._word(FIELDS["lanes"]).value = lanes
        self._word(FIELDS["processor"]).value = -1
        self._word(TEAM_WORDS + LANE["lock"]).value = _held_lock()
        self._threads = list[threading.Thread]()
        with suppress(RuntimeError):  # no further thread can be started
            for lane in range(1, lanes):
                self._threads.append(self._started(lane))

    def run(self, job: ctypes.c_void_p, times: int) -> None:
        """Run a job; see the module for the record.

        Where another thread runs a job with this team, the calling thread does all by itself. The machine
        code of a job, and its arrays, must live until this returns, and no longer.

        Args:
            job: address of the record; it must be made for this number of lanes.
            times: how often.
        """
        self._native.lead(self._team, job, times)

    def stop(self) -> None:
        """End the workers; what is run afterwards, the calling thread does by itself."""
        self._native.end(self._team)
        for thread in self._threads:
            thread.join()

    def _word(self, index: int) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self._start + 8 * index)

    def _started(self, lane: int) -> threading.Thread:
        line = TEAM_WORDS + lane * LANE_WORDS
        self._word(line + LANE["lock"]).value = _held_lock()
        thread = threading.Thread(target=self._work, args=(lane,), name=f"planish-{lane}", daemon=True)
        thread.start()
        self._word(line + LANE["thread"]).value = thread.native_id or 0
        return thread

    def _work(self, lane: int) -> None:
        request_short_slices()
        self._native.work(self._team, lane)


def _held_lock() -> int:
    """Make a lock that is held, of CPython's own kind, which machine code can use without the GIL."""
    python = ctypes.pythonapi
    allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThread_allocate_lock", python))
    acquire = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(
        ("PyThread_acquire_lock", python)
    )
    lock = allocate()
    if not lock:
        raise RuntimeError("no lock can be made")
    acquire(lock, 1)
    return lock


_teams: dict[int, ThreadTeam] = {}
_making = free_after_fork()


def thread_team(lanes: int) -> ThreadTeam:
    """Return the process's team of `lanes` threads, which is made at the first call."""
    found = _teams.get(lanes)
    if found is None:
        with _making:
            # Looked up again under the lock: another thread may have made it while this one waited.
            found = _teams.get(lanes) or _teams.setdefault(lanes, ThreadTeam(lanes))
    return found


def _stop_all() -> None:
    # They are kept: what other functions run at the end of the process is done without workers.
    for found in _teams.values():
        found.stop()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    # A child does not have the threads of its parent's teams.
    os.register_at_fork(after_in_child=_teams.clear)


# Kernels


Arrays = Mapping[str, NDArray[Any]]
Bytes = NDArray[np.uint8]

_ROOM = 4 * ALIGNMENT
"""Bytes on either side of a kernel's own memory."""
MOST_ITERATIONS = (1 << 31) - 1
"""Iterations of a loop that threads share; see above."""
_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class KernelMemory(NamedTuple):
    """Memory of a kernel.

    Args:
        ahead: by name, the buffers of prepacked constants, which are filled once.
        shared: the workspace of all threads.
        private: that of each.
    """

    ahead: Mapping[str, Bytes]
    shared: Bytes
    private: Sequence[Bytes]


class Kernel:
    """A compiled program.

    Args:
        program: what it computes; its inputs and outputs are the kernel's.
        tree: what was compiled.
        code: what that gave.
        cores: how many threads run parallel loops, the calling one included.
    """

    def __init__(self, program: Program, tree: LoopTree, code: MachineCode, cores: int = 1) -> None:
        self.program, self.tree, self.code, self.cores = program, tree, code, cores

    def bind(self, inputs: Arrays, outputs: Arrays) -> BoundKernel:
        """Attach the kernel to arrays, and run its ahead part, which packs the constant inputs.

        Later changes of a constant input have no effect until the kernel is bound again or prepared. See
        `planish.levels.loops.backends.Executable` for the arguments.
        """
        _check_names("input", inputs, self.program.inputs)
        _check_names("output", outputs, self.program.outputs)
        for name, array in (*inputs.items(), *outputs.items()):
            _check(name, array, self.program.type[name])
        _check_outputs(inputs, outputs)
        return BoundKernel(self, {**inputs, **outputs})

    def allocate(self) -> KernelMemory:
        """Allocate the memory that belongs to the kernel; raises TargetError where there is not enough."""
        layout = self.code.layout
        ahead = {b.name: b.size * DTYPES[b.dtype] for b in self.tree.buffers if b.kind == "ahead"}
        return KernelMemory(
            {name: _aligned(size) for name, size in ahead.items()},
            _aligned(layout.shared_bytes),
            [_aligned(layout.private_bytes) for _ in range(self.cores)],
        )

    def thread_arguments(self, arrays: Arrays) -> tuple[list[Any], list[NDArray[np.uint8]]]:
        """Make the array of arguments of every thread, and the memory that belongs to the kernel.

        Args:
            arrays: of inputs and outputs; the addresses of those that are missing are to be filled in.
        """
        ahead, shared, private = self.allocate()
        given = dict.fromkeys((*self.program.inputs, *self.program.outputs), 0)
        given |= {n: a.ctypes.data for n, a in (*arrays.items(), *ahead.items())}
        order = [given[b.name] for b in self.tree.buffers if b.kind != "temporary"]
        rows = [[*order, shared.ctypes.data, own.ctypes.data] for own in private]
        lanes = [(ctypes.c_void_p * len(words))(*words) for words in rows]
        return lanes, [*ahead.values(), shared, *private]


class BoundKernel:
    """A kernel with its arrays; a call computes the outputs from what the inputs hold now.

    It is made by `Kernel.bind`. Calls from several threads at once are not safe, for they share the outputs.
    """

    def __init__(self, kernel: Kernel, arrays: Arrays) -> None:
        self.kernel, self.arrays = kernel, dict(arrays)
        self._lanes, self._owned = kernel.thread_arguments(arrays)
        self.prepare()
        self._launch = LaunchRecord(kernel.code.entries, self._lanes)
        self._once: Callable[[], object] = self._launch.once()

    def prepare(self) -> None:
        """Run the ahead part, which packs the constant inputs as they are now."""
        if self.kernel.code.ahead_entries:
            LaunchRecord(self.kernel.code.ahead_entries, self._lanes).run(1)

    def poison(self, byte: int = 0xFF) -> None:
        """Fill the kernel's own memory with a byte, and what is around it, and run the ahead part.

        Args:
            byte: by default all bits are set: a NaN in every type of floats.
        """
        for memory in self._owned:
            (memory if memory.base is None else memory.base).fill(byte)
        self.prepare()

    def __call__(self) -> None:
        """Run the kernel once."""
        self._once()

    def repeat(self, times: int) -> None:
        """Run the kernel many times; native code counts, and the GIL is released once."""
        self._launch.run(times)


class LaunchRecord:
    """Launch record of a kernel, which machine code reads.

    Args:
        entries: of a kernel.
        lanes: the arguments of each thread.

    Attributes:
        parallel: whether several threads run it.
    """

    def __init__(self, entries: Sequence[Entry], lanes: Sequence[Any]) -> None:
        self._entries, self._lanes = entries, lanes
        n, width = len(entries), len(lanes)
        # In integers, so that the ranges of neighboring threads meet, and lengths differ by one at most.
        range_limits = [e.iterations * lane // width for e in entries for lane in range(width + 1)]
        # The record has only their addresses.
        self._tables = [
            (ctypes.c_void_p * width)(*(ctypes.addressof(a) for a in lanes)),
            (ctypes.c_void_p * n)(*(e.address for e in entries)),
            (ctypes.c_int64 * n)(*map(is_shared, entries)),
            (ctypes.c_int64 * len(range_limits))(*range_limits),
        ]
        self._words = (ctypes.c_int64 * 6)(n, width, *map(ctypes.addressof, self._tables))
        self._record = ctypes.c_void_p(ctypes.addressof(self._words))
        self.parallel = width > 1 and any(map(is_shared, entries))

    def once(self) -> Callable[[], object]:
        """Return a function that runs it once with the least overhead."""
        if len(self._entries) == 1 and not self.parallel:
            arguments = ctypes.c_void_p(ctypes.addressof(self._lanes[0]))
            entry = self._entries[0]
            return partial(_ENTRY(entry.address), arguments, 0, entry.iterations)
        return self.run_once

    def run_once(self) -> None:
        """Run it once, with the addresses that are in the threads' arguments now."""
        self.run(1)

    def run(self, times: int) -> None:
        """Run it many times in a row."""
        if self.parallel:
            thread_team(len(self._lanes)).run(self._record, times)
        else:
            native().repeat(self._record, times)


def is_shared(entry: Entry) -> bool:
    """Return whether threads share an entry: its iterations are several, and not more than can be counted."""
    return entry.parallel and 1 < entry.iterations <= MOST_ITERATIONS


def _aligned(size: int) -> NDArray[np.uint8]:
    try:
        # NumPy's memory need not begin at a multiple of the alignment. And a kernel that leaves its own
        # memory is to find there what it was filled with.
        memory = np.empty(size + 2 * _ROOM + ALIGNMENT, np.uint8)
    except MemoryError as error:
        raise TargetError(f"no memory for a buffer of {size} bytes", "Choose smaller sizes.") from error
    return memory[_ROOM + -memory.ctypes.data % ALIGNMENT :][:size]


def _check_names(kind: str, arrays: Arrays, wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in arrays:
            others = ", ".join(arrays) or "none"
            raise ProgramError(f"{kind} '{name}' is missing", f"Pass an array for it beside {others}.")
    for name in arrays:
        if name not in wanted:
            raise ProgramError(f"the program has no {kind} '{name}'", did_you_mean(name, wanted))


def _check(name: str, array: NDArray[Any], wanted: TensorType) -> None:
    if array.shape != wanted.shape:
        raise ProgramError(f"{name} has shape {array.shape}, the program says {wanted.shape}")
    if array.dtype != numpy_type(wanted.dtype):
        dtype = numpy_type(wanted.dtype)
        hint = f"Convert it: {name}.astype('{dtype}')."
        raise ProgramError(f"{name} is of type {array.dtype}, the program says {dtype}", hint)
    if not array.flags.c_contiguous:
        hint = f"Copy it: numpy.ascontiguousarray({name})."
        raise ProgramError(f"{name} is not contiguous in memory", hint)
    if not array.flags.aligned:
        what = f"{name} does not begin at a multiple of {array.itemsize} bytes, as its elements should"
        raise ProgramError(what, f"Copy it: {name}.copy().")


def _check_outputs(inputs: Arrays, outputs: Arrays) -> None:
    for name, array in outputs.items():
        if not array.flags.writeable:
            raise ProgramError(f"output {name} is read-only", f"Copy it: {name}.copy().")
        # Both are contiguous: that their bounds are apart decides.
        for other, shared in (*inputs.items(), *outputs.items()):
            if other != name and np.may_share_memory(array, shared):
                raise ProgramError(f"output {name} shares memory with {other}", f"Copy it: {name}.copy().")
