"""Teams of threads: every iteration runs once, whoever sleeps, and nothing outlives the process."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from planish.core import usable_cores
from planish.loops.codegen.llvm import compile_tree
from planish.loops.ir.schedule import unscheduled
from planish.loops.lang.parse import parse
from planish.loops.lower.lowering import lower
from planish.loops.runtime.affinity import beside_caller
from planish.loops.runtime.kernels import Bound, Kernel
from planish.loops.runtime.threads import Team, team
from planish.loops.steps import Parallel


def counting(cores: int, size: int = 64) -> tuple[Bound, np.ndarray, np.ndarray]:
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


@pytest.mark.skipif(usable_cores() < 2, reason="there is one processor")
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system places threads itself")
def test_threads_keep_off_the_processor_of_the_caller_while_it_waits_for_them() -> None:
    """Linux would leave one that is woken on the caller's processor for some tenths of a second."""
    allowed = os.sched_getaffinity(0)
    ready, over = threading.Event(), threading.Event()
    other = threading.Thread(target=lambda: (ready.set(), over.wait()))
    other.start()
    number = other.native_id or 0
    with beside_caller([number]):
        placed = os.sched_getaffinity(number)
    freed = os.sched_getaffinity(number)
    over.set()
    other.join()
    assert placed < allowed
    assert len(placed) == len(allowed) - 1
    assert freed == allowed


def test_threads_stay_where_they_are_where_processors_are_few() -> None:
    before = os.sched_getaffinity(0)
    with beside_caller([os.getpid()] * 10000):
        assert os.sched_getaffinity(0) == before


def test_a_process_has_one_team_of_a_size() -> None:
    before = threading.active_count()
    made = {id(team(2)) for _ in range(3)}
    assert len(made) == 1
    assert threading.active_count() <= before + 1


def test_callers_take_turns() -> None:
    parts = [counting(2) for _ in range(4)]
    threads = [threading.Thread(target=bound.repeat, args=(200,)) for bound, _, _ in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((c == 2 * a).all() for _, a, c in parts)


def test_a_stopped_team_has_no_threads() -> None:
    before = threading.active_count()
    own = Team(4)
    assert threading.active_count() == before + 3
    own.stop()
    assert threading.active_count() == before


PROGRAM = """
import os, sys, threading, time, warnings
sys.path.insert(0, {tests!r})
warnings.simplefilter("ignore", DeprecationWarning)
from loops.test_threads import counting
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
    "sleeps first": "time.sleep(0.1)",
    "forks": """
child = os.fork()
if child == 0:
    a.fill(3)
    bound()
    os._exit(0 if (c == 6).all() and threading.active_count() == 3 else 1)
assert os.waitpid(child, 0)[1] == 0
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("name", BODIES)
def test_a_process_ends_cleanly(name: str) -> None:
    tests = str(Path(__file__).parent.parent)
    text = PROGRAM.format(tests=tests, body=BODIES[name])
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")
