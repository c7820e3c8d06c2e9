"""Worker processes that do not outlive us, and leave Ctrl-C to us."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait


@contextmanager
def crew(jobs: int) -> Generator[ProcessPoolExecutor]:
    """Give so many worker processes; at an error, what waits for them is dropped."""
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_settle)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _settle() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
