"""Worker processes that do not outlive us, nor do the compilers that they run."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait


@contextmanager
def crew(jobs: int) -> Generator[ProcessPoolExecutor]:
    """Give so many worker processes; at an error they are killed with all that they started."""
    context = multiprocessing.get_context("spawn")
    lifeline, held = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, context, initializer=_settle, initargs=(lifeline,))
    try:
        yield pool
        pool.shutdown()
    finally:
        held.close()
        lifeline.close()
        pool.shutdown(cancel_futures=True)


def _settle(lifeline: Connection) -> None:
    """Leave Ctrl-C to the parent, as a process group of its own, and end it when the parent lets go."""
    os.setpgrp()
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    wait([lifeline])
    os.killpg(0, signal.SIGKILL)
