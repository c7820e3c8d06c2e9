"""Forked processes: how they end."""

import subprocess
import sys

import pytest

EXITING = """
import ctypes, os
from planish.sandbox.fork_pool import ForkLimits, in_child
libc = ctypes.CDLL(None)
libc.on_exit(libc.pause, None)
print(in_child(lambda: libc.exit(3), None, ForkLimits(seconds=0.2)).cause, flush=True)
os._exit(0)
"""
"""A process in which native code has registered what waits at exit, as thread pools of libraries do."""

KILLED_AT_ONCE = """
import os, sys, time
from planish.sandbox.protocol import Setup
from planish.sandbox.workers import WorkerProcess
os.register_at_fork(after_in_child=lambda: time.sleep(0.5))
worker = WorkerProcess(Setup((), 1 << 30, None), forks=True)
worker.kill()
print("alive" if worker.is_alive() else "ended")
"""
"""A process that ends a child before that has a session of its own."""


@pytest.mark.skipif(sys.platform != "linux", reason="other C libraries have no on_exit()")
@pytest.mark.parametrize(("script", "printed"), [(EXITING, "exited with code 3"), (KILLED_AT_ONCE, "ended")])
def test_a_forked_process_ends_at_once(script: str, printed: str) -> None:
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=240, check=True)
    assert ran.stdout.decode().strip() == printed
