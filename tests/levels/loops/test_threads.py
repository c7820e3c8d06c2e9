"""Teams of threads: every iteration runs once, whatever the scheduler does, and all end with the process."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from planish.core import usable_cores
from planish.levels.loops.codegen.kernel import Entry
from planish.levels.loops.codegen.llvm.compile import compile_tree
from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.runtime.kernels import BoundKernel, Kernel, LaunchRecord, ThreadTeam, thread_team
from planish.levels.loops.steps import Parallel


def counting(cores: int, size: int = 64) -> tuple[BoundKernel, np.ndarray, np.ndarray]:
    """Bind a kernel of one parallel loop whose outputs tell which iterations ran."""
    program = parse("C[m] = A[m] * 2", {"m": size})
    kernel = lower(Parallel("m").apply(unscheduled(program)))
    a, c = np.arange(size, dtype=np.float32), np.zeros(size, np.float32)
    return Kernel(program, kernel, compile_tree(kernel), cores).bind({"A": a}, {"C": c}), a, c


@pytest.mark.parametrize("cores", [2, 3, 5])
@pytest.mark.parametrize("size", [2, 3, 64])
def test_all_iterations_run(cores: int, size: int) -> None:
    bound, a, c = counting(cores, size)
    for value in range(20):
        a.fill(value)
        bound()
        assert (c == 2 * value).all()
    bound.repeat(100)
    assert (c == 38).all()


def test_sleepers_are_woken() -> None:
    """Pauses around the time after which a worker goes to sleep."""
    bound, a, c = counting(3)
    for i in range(60):
        time.sleep(0.0001 * (i % 12))
        a.fill(i)
        bound()
        assert (c == 2 * i).all()


FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def run(cores: int, iterations: int, chunk: Callable[[int, int, int], None], times: int = 1) -> None:
    """Share the iterations of a function of Python: it takes a lane, and the chunk's begin and end."""
    lanes = [(ctypes.c_int64 * 1)(lane) for lane in range(cores)]

    def call(args: int, begin: int, end: int) -> None:
        chunk(ctypes.c_int64.from_address(args).value, begin, end)

    function = FUNCTION(call)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    LaunchRecord([Entry(address, iterations, parallel=True)], lanes).run(times)


@pytest.mark.parametrize("cores", [2, 3, 5])
@pytest.mark.parametrize("iterations", [2, 3, 7, 64, 1000])
def test_each_iteration_runs_once(cores: int, iterations: int) -> None:
    seen = Counter[int]()
    guard = threading.Lock()

    def chunk(lane: int, begin: int, end: int) -> None:
        assert lane < cores
        with guard:
            seen.update(range(begin, end))

    run(cores, iterations, chunk, times=5)
    assert seen == Counter(dict.fromkeys(range(iterations), 5))


def test_a_worker_that_makes_no_progress_holds_one_chunk_and_the_rest_is_done_without_it() -> None:
    total = 64
    done, begun = [0, 0], [0, 0]
    all_else, guard = threading.Event(), threading.Lock()

    def count(to: list[int], lane: int, size: int) -> None:
        with guard:
            to[lane] += size
            if done[0] + begun[1] == total:
                all_else.set()

    def chunk(lane: int, begin: int, end: int) -> None:
        count(begun, lane, end - begin)
        if lane:  # it stays here until the leader has done all that it did not begin
            assert all_else.wait(30)
        count(done, lane, end - begin)

    for _ in range(20):
        done[:] = begun[:] = 0, 0
        all_else.clear()
        run(2, total, chunk)
        assert sum(done) == total
        assert done[1] <= total // 4  # half of its share


def test_what_a_worker_has_begun_is_waited_for() -> None:
    late: list[int] = []

    def chunk(lane: int, begin: int, end: int) -> None:
        time.sleep(0.002 if lane else 0.0002)  # long enough that others begin one
        late.extend([lane] * (end - begin))

    for _ in range(20):
        late.clear()
        run(3, 16, chunk)
        assert len(late) == 16


def test_a_job_within_a_job_runs_in_its_thread() -> None:
    parts = [counting(3) for _ in range(3)]
    right: list[bool] = []

    def chunk(lane: int, begin: int, end: int) -> None:
        bound, a, c = parts[lane]
        a.fill(end - begin)
        bound()
        right.append(bool((c == 2 * a).all()))

    run(3, 30, chunk)
    assert len(right) >= 3
    assert all(right)


@contextmanager
def burning(count: int) -> Generator[None]:
    """Keep so many threads computing without end, which give no processor away by themselves."""
    over = threading.Event()

    def burn() -> None:
        bound, _, _ = counting(1)
        while not over.is_set():
            bound.repeat(100_000)

    threads = [threading.Thread(target=burn) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("cores", [2, 3])
def test_results_are_right_while_others_want_the_processors(cores: int) -> None:
    """A worker that comes late must not run a chunk of a job that is over, whose memory others use."""
    program = parse("C[m] = A[m] * 2", {"m": 4096})
    tree = lower(Parallel("m").apply(unscheduled(program)))
    kernel = Kernel(program, tree, compile_tree(tree), cores)
    with burning(usable_cores()):
        for i in range(1500):
            a, c = np.full(4096, i, np.float32), np.full(4096, -1, np.float32)
            kernel.bind({"A": a}, {"C": c})()
            kept = c.copy()
            c.fill(-1)  # a late chunk would write into it
            assert (kept == 2 * i).all()
            if i % 100 == 0:
                time.sleep(0.001)
            assert (c == -1).all()


def test_without_any_worker_all_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    bound, a, c = counting(7)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert threading.active_count() >= 1
    for i in range(3):
        a.fill(i)
        bound()
        assert (c == 2 * i).all()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers for signals")
def test_an_interrupt_leaves_the_team_as_it_was() -> None:
    def interrupt(*_: object) -> None:
        raise InterruptedError

    def go_on() -> None:
        while True:
            bound.repeat(100)

    bound, a, c = counting(2)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for i in range(10):
            signal.setitimer(signal.ITIMER_REAL, 0.0005)
            with pytest.raises(InterruptedError):  # raised after the job that runs, for machine code goes on
                go_on()
            a.fill(i)
            bound()
            assert (c == 2 * i).all()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_process_has_one_team_of_a_size() -> None:
    before = threading.active_count()
    made = {id(thread_team(2)) for _ in range(3)}
    assert len(made) == 1
    assert threading.active_count() <= before + 1


def test_callers_at_the_same_time_are_answered_alike() -> None:
    parts = [counting(2) for _ in range(4)]
    threads = [threading.Thread(target=bound.repeat, args=(200,)) for bound, _, _ in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((c == 2 * a).all() for _, a, c in parts)


def test_a_stopped_team_has_no_threads() -> None:
    before = threading.active_count()
    own = ThreadTeam(4)
    assert threading.active_count() == before + 3
    own.stop()
    assert threading.active_count() == before


def test_what_runs_after_the_workers_have_ended_is_done_all_the_same() -> None:
    bound, a, c = counting(11)
    thread_team(11).stop()  # of a size that no other test has
    a.fill(5)
    bound.repeat(20)
    assert (c == 10).all()


PROGRAM = """
import os, signal, sys, threading, time, warnings
sys.path.insert(0, {tests!r})
warnings.simplefilter("ignore", DeprecationWarning)
from levels.loops.test_threads import counting
bound, a, c = counting(3)
bound()
{body}
a.fill(7)
bound()
assert (c == 14).all()
print("right")
"""

BODIES = {
    "ends at once": "",
    "calls when it ends": """
import atexit
@atexit.register
def late():
    for i in range(3):
        a.fill(i)
        bound()
        assert (c == 2 * i).all()
""",
    "begins with several threads": """
parts = [counting(3) for _ in range(6)]
from planish.levels.loops.runtime import kernels
kernels._natives.clear()
kernels._teams.clear()
barrier = threading.Barrier(6)
def first(bound):
    barrier.wait()
    bound.repeat(2000)
several = [threading.Thread(target=first, args=(part[0],)) for part in parts]
[thread.start() for thread in several]
[thread.join() for thread in several]
assert all((c == 2 * a).all() for _, a, c in parts)
""",
    "sleeps first": "time.sleep(0.1)",
    "forks": """
child = os.fork()
if child == 0:
    a.fill(3)
    bound()
    os._exit(0 if (c == 6).all() and threading.active_count() == 3 else 1)
assert os.waitpid(child, 0)[1] == 0
""",
    "forks while another thread compiles": """
from planish.levels.loops.codegen.llvm import jit
parse, inside = jit.llvm.parse_assembly, threading.Event()
def slow(text):
    inside.set()
    time.sleep(0.2)
    return parse(text)
jit.llvm.parse_assembly = slow
thread = threading.Thread(target=counting, args=(4,))
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    bound, a, c = counting(5)
    bound()
    os._exit(0 if (c == 2 * a).all() else 1)
assert os.waitpid(child, 0)[1] == 0
thread.join()
""",
    "forks while other threads are in LLVM": """
from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.llvm.jit import host_machine
text = "define i32 @f() { ret i32 1 }"
ended = threading.Event()
def compile():
    while not ended.is_set():
        jit.assembly(text, host_machine())
threads = [threading.Thread(target=compile) for _ in range(2)]
[thread.start() for thread in threads]
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        jit.assembly(text, host_machine())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
ended.set()
[thread.join() for thread in threads]
""",
    "forks while another thread holds a lock": """
from planish.einsum.backends import PLANNING
from planish.levels.loops.runtime import kernels
for lock in (PLANNING, kernels._compiling):
    with lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if lock.acquire(timeout=1) else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert lock.locked()
""",
    "forks while another thread computes": """
thread = threading.Thread(target=bound.repeat, args=(500,))
thread.start()
child = os.fork()
if child == 0:
    a.fill(3)
    bound()
    os._exit(0 if (c == 6).all() else 1)
assert os.waitpid(child, 0)[1] == 0
thread.join()
""",
}


@pytest.mark.slow(after=4)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("name", BODIES)
def test_a_process_ends_cleanly(name: str) -> None:
    tests = str(Path(__file__).parents[2])
    text = PROGRAM.format(tests=tests, body=BODIES[name])
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")
