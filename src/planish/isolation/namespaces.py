"""No network by a namespace of one's own: for systems without filters of calls, where users may have it."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

from planish.isolation.privileges import hide

_USER, _NETWORK = 0x10000000, 0x40000000


def leave_network() -> str:
    """Take the network from this process, and all that it will start; it must have one thread.

    Returns:
        Why it is not done; empty where it is.
    """
    if sys.platform != "linux":
        return "not on this system"
    user, group = os.geteuid(), os.getegid()
    library = ctypes.CDLL(None, use_errno=True)
    # root needs no namespace of users, in which it would lose its rights over files.
    if user == 0 and not library.unshare(_NETWORK):
        return ""
    if library.unshare(_USER | _NETWORK):
        return os.strerror(ctypes.get_errno())
    hide(on=False)  # else the files below belong to root
    with suppress(OSError):  # without it we are nobody, who may do even less
        # First: the kernel lets nobody map groups who could still leave one (user_namespaces(7)).
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    return ""
