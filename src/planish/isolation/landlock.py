"""Which files a worker, and what it starts, may use: Linux's Landlock, which needs no rights to be put on.

See landlock(7); the kernel tells by a number, its ABI, how much of it there is.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_TELL_ABI, _PATH_BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38

EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8
_CHANGES = 0x1FF0  # remove and make what there is of files, folders, devices, pipes and links
_NAMED = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11  # make character devices, sockets, pipes, block devices
_REFER, _TRUNCATE, _CONTROL = 1 << 13, 1 << 14, 1 << 15
_SCOPES = 3  # no signals and no abstract sockets to whoever is outside
_TCP = 3  # bind and connect

ALL, LOOK = -1, EXECUTE | READ | LIST
"""What may be done beneath a path: all, or to read and execute."""
_OF_FILES = EXECUTE | WRITE | READ | _TRUNCATE | _CONTROL
SCOPED, _NETWORKED = 6, 4  # the ABIs from which on there are these


def abi() -> int:
    """Tell the ABI that the kernel has; 0 without Landlock."""
    if sys.platform != "linux":
        return 0
    return max(0, ctypes.CDLL(None).syscall(_CREATE, None, 0, _TELL_ABI))


def restrict(beneath: Iterable[tuple[Path, int]]) -> str:
    """Allow this process, and all that it will start, the files beneath some paths alone.

    From ABI 6 on they may also signal each other alone, from 4 on they have no TCP.

    Args:
        beneath: paths, and what may be done there; what is missing is passed over.

    Returns:
        Why it is not done; empty where it is.
    """
    known = abi()
    if not known:
        return "this kernel has none"
    library = ctypes.CDLL(None, use_errno=True)
    return _restrict(library, known, _handled(known), _widest(beneath))


def _restrict(library: ctypes.CDLL, known: int, handled: int, allowed: Mapping[Path, int]) -> str:
    network, scopes = _TCP if known >= _NETWORKED else 0, _SCOPES if known >= SCOPED else 0
    attributes = struct.pack("<QQQ", handled, network, scopes)
    # The kernel refuses a structure that is longer than the one it knows, unless the rest is 0.
    size = 24 if known >= SCOPED else 16 if known >= _NETWORKED else 8
    rules = library.syscall(_CREATE, attributes, size, 0)
    if rules < 0:
        return os.strerror(ctypes.get_errno())
    try:
        for path, rights in allowed.items():
            _add(library, rules, path, handled & rights)
        # Without privileges a process may restrict itself only if it can gain none by a set-user-ID program.
        done = library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or library.syscall(_RESTRICT, rules, 0)
        return os.strerror(ctypes.get_errno()) if done else ""
    finally:
        os.close(rules)


def nest() -> None:
    """Put this thread, and all that it will start, into a domain within the one that it is in.

    From there nothing outside can be traced, opened by way of /proc, or signalled (ABI 6). Its rules forbid
    what no program needs: to make devices, sockets and pipes with names.
    """
    known = abi()
    if known:
        library = ctypes.CDLL(None, use_errno=True)
        _restrict(library, known, _NAMED, {})


def _handled(known: int) -> int:
    rights = EXECUTE | WRITE | READ | LIST | _CHANGES
    rights |= _REFER if known >= 2 else 0
    rights |= _TRUNCATE if known >= 3 else 0
    return rights | (_CONTROL if known >= 5 else 0)


def _widest(beneath: Iterable[tuple[Path, int]]) -> Mapping[Path, int]:
    found: dict[Path, int] = {}
    for path, rights in beneath:
        # A path may be both read and written; the kernel adds up rules, we add up rights first.
        found[path] = found.get(path, 0) | rights
    return found


def _add(library: ctypes.CDLL, rules: int, path: Path, rights: int) -> None:
    with suppress(OSError):  # not there
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            # For a file the kernel refuses a rule with rights that only folders have.
            allowed = rights if path.is_dir() else rights & _OF_FILES
            library.syscall(_ADD, rules, _PATH_BENEATH, struct.pack("<Qi", allowed, place), 0)
        finally:
            os.close(place)
