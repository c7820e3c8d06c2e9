"""Waiting for threads: `rest` returns when those that work are asleep, and no later."""

import hashlib
import threading
import time

from planish.measure import wait_for_idle_threads


def _work(seconds: float, began: threading.Event) -> None:
    data, end = bytes(1 << 22), time.monotonic() + seconds
    began.set()
    while time.monotonic() < end:
        hashlib.sha256(data)  # releases the lock of the interpreter for some milliseconds


def _working(seconds: float) -> threading.Thread:
    began = threading.Event()
    thread = threading.Thread(target=_work, args=(seconds, began))
    thread.start()
    began.wait()
    return thread


def test_it_waits_for_a_thread_that_works() -> None:
    thread = _working(0.3)
    assert wait_for_idle_threads(60)
    assert not thread.is_alive()


def test_threads_that_sleep_are_not_waited_for() -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    wait_for_idle_threads(60)  # until it waits, and whatever other tests have left
    assert not wait_for_idle_threads(60)
    over.set()
    thread.join()


def test_it_gives_up_after_a_while() -> None:
    thread = _working(1.0)
    assert wait_for_idle_threads(0.01)
    assert thread.is_alive()
    thread.join()
