"""Short time slices of the scheduler for threads that work in short bursts."""

from __future__ import annotations

import ctypes
import os
import platform

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
    """Ask for the calling thread to run soon after it is woken, for a short time.

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
