"""Privileges of a confined process: it has no capabilities of root, and is closed to others of its user."""

from __future__ import annotations

import ctypes
import struct
import sys

_SET_DUMPABLE, _DROP_BOUND, _AMBIENT, _CLEAR = 4, 24, 47, 4
_VERSION = 0x20080522
_KEPT = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: root reads files of other users, within Landlock's rules."""
_MOST = 64  # capabilities that there can be


def hide(*, on: bool = True) -> None:
    """Close this process's memory, descriptors and environment in /proc to other processes of the same user.

    Those with CAP_SYS_PTRACE still see them; see `drop_capabilities`.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, int(not on), 0, 0, 0)


def drop_capabilities() -> None:
    """Drop root's capabilities from this thread and from all that it will start; others have none.

    Without CAP_SYS_PTRACE even a program of root sees nothing of a process that hides itself. Without the
    others it sets no clock and no name of the machine, makes no devices, and changes no owners.
    """
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    for number in range(_MOST):
        if not _KEPT >> number & 1:
            library.prctl(_DROP_BOUND, number, 0, 0, 0)
    library.prctl(_AMBIENT, _CLEAR, 0, 0, 0)
    head = ctypes.create_string_buffer(struct.pack("<Ii", _VERSION, 0))
    # Twice effective, permitted and inheritable: for the lower and for the upper 32 capabilities.
    body = ctypes.create_string_buffer(24)
    if library.capget(head, body):
        return
    effective, permitted, _ = struct.unpack_from("<III", body.raw)
    library.capset(head, struct.pack("<IIIIII", effective & _KEPT, permitted & _KEPT, 0, 0, 0, 0))
