"""Linux mechanisms of the sandbox: seccomp filters, Landlock, namespaces and privileges.

A seccomp filter is a program for a small virtual machine in the kernel: it loads a word of the system call
(its number, the processor's architecture, or half an argument) and compares it; see seccomp(2), and
linux/filter.h for the codes. Filters cannot be removed again. Landlock restricts access to files without
needing privileges; see landlock(7). The kernel reports by a number, its ABI, how much of it is supported.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path


def threads(pid: int | str) -> list[Path]:
    """List the folders of a process's threads; none where it has ended."""
    with suppress(OSError):
        return list(Path(f"/proc/{pid}/task").iterdir())
    return []


def children(pid: int | str = "self") -> list[int]:
    """List the children of a process; none where it has ended, or this kernel does not show them."""
    found: list[int] = []
    for thread in threads(pid):
        with suppress(OSError):  # the thread ended meanwhile
            found += map(int, (thread / "children").read_text(encoding="ascii").split())
    return found


def descendants(pid: int) -> list[int]:
    """List a process, and all processes below it."""
    found = [pid]
    for each in found:  # grows
        found += children(each)
    return found


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


_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Machine to its number in a filter, and to the column below."""
_Numbers = dict[str, tuple[int | None, int | None]]
_NUMBERS: _Numbers = {
    # into other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    # out of the process group, which is killed whole
    "setsid": (112, 157),
    "setpgid": (109, 154),
    # into the kernel
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    # into other namespaces and file systems
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
}
_LASTING: _Numbers = {
    # permissions, owners, times and attributes of files: Landlock knows nothing of them
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "mknod": (133, None),
    "mknodat": (259, 33),
    # what outlives its process: System V's shared memory, semaphores and queues, and POSIX's queues. Those of
    # other processes need no `get`: their numbers can be guessed.
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    # the machine's clock and name
    "clock_settime": (227, 112),
    "settimeofday": (164, 170),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
}
"""System calls that change something that lasts, beside the contents of files."""
_HIDDEN: _Numbers = {"memfd_create": (319, 279), "memfd_secret": (447, 447)}
"""Memory that no limit of a process counts."""
_LOCKS: _Numbers = {"flock": (73, 32)}
"""Locks of files that may only be read, such as the lock of timed runs."""
_SIGNALS: _Numbers = {
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434),
}
_SOCKET, _CLONE, _KILL, _TGKILL = (41, 198), (56, 220), (62, 129), (234, 131)
_CLONE3 = 435
_IOCTL, _SET_ATTRIBUTES = (16, 29), (0x40086602, 0x401C5820)  # FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR
_SET_SOCKET_OWNER = (0x8901, 0x8902)  # FIOSETOWN, SIOCSPGRP
_FCNTL, _SET_OWNER = (72, 25), (8, 15)  # F_SETOWN, F_SETOWN_EX: the kernel then signals the owner
_LIMITS, _PRIORITIES = (302, 261), ((141, 140), (251, 30))  # prlimit64; setpriority and ioprio_set
_NAMESPACES = 0x7E020000  # CLONE_NEWUSER, NEWNET and the others of their kind
_UNIX = 1
_ABORT = 6
_FOREIGN = 0x40000000  # x32's numbers begin here

_LOAD, _EQUAL, _GREATER, _ANY, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_REFUSE = (_RETURN, 0, 0, _ERROR | errno.EPERM)
_SET_NO_NEW_PRIVILEGES, _SET_FILTER, _NO_SLOWDOWN, _GET_SECCOMP = 38, 1, 4, 21
_SECCOMP = {"x86_64": 317, "aarch64": 277}

Code = list[tuple[int, int, int, int]]
"""Instructions: code, how many are skipped where a comparison holds and where it does not, and a number."""


def is_there() -> bool:
    """Return whether this system has filters of calls, and we know its numbers."""
    known = sys.platform == "linux" and platform.machine() in _ARCHITECTURES
    return known and ctypes.CDLL(None).prctl(_GET_SECCOMP, 0, 0, 0, 0) >= 0


def restrict_calls(worker: int | None = None, *, sockets: bool = True, code: bool = False) -> str:
    """Forbid this process, and all that it will start, what candidates have no business with.

    That is the network, other processes' memory, sessions and process groups of their own, namespaces,
    mounts, and parts of the kernel that are known for holes. Forbidden calls fail with EPERM.

    Args:
        worker: the process that starts programs; they may then not signal it.
        sockets: whether Unix sockets may be opened; others never.
        code: whether what is confined is code in this process: then it may change nothing that lasts either.

    Returns:
        Why it is not done; empty where it is.
    """
    forbidden = [_NUMBERS, *([_LASTING] if code else []), *([] if worker is None else [_SIGNALS])]

    def by_argument(column: int) -> Code:
        own = _own_limits(column) if code or worker is not None else []
        attributes = _requests(column, _SET_ATTRIBUTES) if code else []
        return [*_by_argument(column, worker, sockets=sockets), *own, *attributes]

    return _filter(forbidden, by_argument)


def restrict_programs() -> str:
    """Forbid this thread, and the programs that it will start, what lasts, and what no limit bounds.

    That is memory that no limit counts, and locks, which would keep the machine from timed runs.

    Returns:
        Why it is not done; empty where it is.
    """
    return _filter([_LASTING, _HIDDEN, _LOCKS], lambda column: _requests(column, _SET_ATTRIBUTES))


def _filter(forbidden: Sequence[_Numbers], by_argument: Callable[[int], Code]) -> str:
    """Put a filter on this thread: the calls that are forbidden, then those that depend on arguments."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in _ARCHITECTURES:
        return "not on this system"
    architecture, column = _ARCHITECTURES[machine]
    code = _program(architecture, [each[column] for numbers in forbidden for each in numbers.values()])
    code += [*by_argument(column), (_RETURN, 0, 0, _ALLOW)]
    packed = b"".join(struct.pack("<HBBI", *each) for each in code)
    content = ctypes.create_string_buffer(packed)
    whole = ctypes.create_string_buffer(struct.pack("<H6xQ", len(code), ctypes.addressof(content)))
    # Without new privileges users may put filters on: else one could mislead a set-user-ID program.
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return os.strerror(ctypes.get_errno())
    # Kernels before 5.16 would otherwise slow down all that is measured, against Spectre.
    if library.syscall(_SECCOMP[machine], _SET_FILTER, _NO_SLOWDOWN, whole):
        return os.strerror(ctypes.get_errno())
    return ""


def _program(architecture: int, forbidden: Sequence[int | None]) -> Code:
    code: Code = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        # First the architecture: the same numbers mean other calls in 32-bit code, which could pass a filter
        # for 64 bits.
        (_EQUAL, 1, 0, architecture),
        _REFUSE,
        (_LOAD, 0, 0, _NUMBER),
        (_GREATER, 0, 1, _FOREIGN),
        _REFUSE,
    ]
    for number in forbidden:
        # Not each architecture has each call.
        code += [] if number is None else [(_EQUAL, 0, 1, number), _REFUSE]
    return code


def _by_argument(column: int, worker: int | None, *, sockets: bool) -> Code:
    # glibc then asks by clone(), whose flags can be seen.
    code: Code = [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    code += _where(_CLONE[column], [_argument(0), (_ANY, 0, 1, _NAMESPACES), _REFUSE])
    code += _where(_SOCKET[column], [*([_argument(0), (_EQUAL, 1, 0, _UNIX)] if sockets else []), _REFUSE])
    if worker is not None:
        # Not the worker, its group (0, or a negative number), nor all processes (-1).
        own_group = [(_EQUAL, 2, 0, worker), (_EQUAL, 1, 0, 0), (_GREATER, 0, 1, 0x80000000)]
        code += _where(_KILL[column], [_argument(0), *own_group, _REFUSE])
        own = [_argument(0), (_EQUAL, 0, 3, worker), _argument(2), (_EQUAL, 1, 0, _ABORT), _REFUSE]
        code += _where(_TGKILL[column], own)
        code += _where(_FCNTL[column], _refused(1, _SET_OWNER))
        code += _requests(column, _SET_SOCKET_OWNER)
    return code


def _requests(column: int, requests: Sequence[int]) -> Code:
    """Refuse some requests of ioctl()."""
    return _where(_IOCTL[column], _refused(1, requests))


def _refused(index: int, values: Sequence[int]) -> Code:
    """Refuse some values of an argument."""
    return [_argument(index), *(line for each in values for line in ((_EQUAL, 0, 1, each), _REFUSE))]


def _own_limits(column: int) -> Code:
    """Refuse to set limits and priorities of other processes: a limit of 0 seconds kills.

    0 is the calling process, or thread. The kinds that are not those of a process begin with 1 for
    setpriority() and with 2 for ioprio_set(), of which 1 is a process.
    """
    code = _where(_LIMITS[column], [_argument(0), (_EQUAL, 1, 0, 0), _REFUSE])
    for call, kind in zip(_PRIORITIES, (0, 1), strict=True):
        process = [_argument(0), (_EQUAL, 0, 2, kind), _argument(1), (_EQUAL, 1, 0, 0), _REFUSE]
        code += _where(call[column], process)
    return code


def _where(number: int, then: Sequence[tuple[int, int, int, int]]) -> Code:
    """Do something for one call, and go on with its number loaded again."""
    return [(_EQUAL, 0, len(then) + 1, number), *then, (_LOAD, 0, 0, _NUMBER)]


def _argument(index: int) -> tuple[int, int, int, int]:
    """Load the lower half of an argument."""
    return _LOAD, 0, 0, _ARGUMENTS + 8 * index


_CREATE, _ADD, _RESTRICT = 444, 445, 446
_GET_ABI, _PATH_BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38

EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8
_CHANGES = 0x1FF0  # remove and make what there is of files, folders, devices, pipes and links
_NAMED = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11  # make character devices, sockets, pipes, block devices
_REFER, _TRUNCATE, _CONTROL = 1 << 13, 1 << 14, 1 << 15
_SCOPES = 3  # no signals and no abstract sockets to processes outside
_TCP = 3  # bind and connect

ALL, LOOK = -1, EXECUTE | READ | LIST
"""Rights beneath a path: all, or to read and execute."""
_OF_FILES = EXECUTE | WRITE | READ | _TRUNCATE | _CONTROL
SCOPED, _NETWORKED = 6, 4  # the ABIs from which on there are these


def abi() -> int:
    """Return the ABI of Landlock that the kernel has; 0 without it."""
    if sys.platform != "linux":
        return 0
    return max(0, ctypes.CDLL(None).syscall(_CREATE, None, 0, _GET_ABI))


def restrict_files(beneath: Iterable[tuple[Path, int]]) -> str:
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
    handled = EXECUTE | WRITE | READ | LIST | _CHANGES
    handled |= (
        (_REFER if known >= 2 else 0) | (_TRUNCATE if known >= 3 else 0) | (_CONTROL if known >= 5 else 0)
    )
    allowed: dict[Path, int] = {}
    for path, rights in beneath:
        # A path may be both read and written; the kernel adds up rules, we add up rights first.
        allowed[path] = allowed.get(path, 0) | rights
    return _restrict(library, known, handled, allowed)


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


def _add(library: ctypes.CDLL, rules: int, path: Path, rights: int) -> None:
    with suppress(OSError):  # not there
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            # For a file the kernel refuses a rule with rights that only folders have.
            allowed = rights if path.is_dir() else rights & _OF_FILES
            library.syscall(_ADD, rules, _PATH_BENEATH, struct.pack("<Qi", allowed, folder), 0)
        finally:
            os.close(folder)


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
    with suppress(OSError):  # without it the user has no name, and fewer rights
        # First: no process may map groups that could still leave one (user_namespaces(7)).
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    return ""
