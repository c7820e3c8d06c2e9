"""Locks that a forked child finds free."""

from __future__ import annotations

import os
from threading import Lock


def free_after_fork() -> Lock:
    """Return a lock that is free in a forked child, also where another thread holds it meanwhile.

    A child has the forking thread alone: a lock that another one held would never be released there.
    """
    lock = Lock()

    def free() -> None:
        if lock.locked():
            lock.release()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=free)
    return lock
