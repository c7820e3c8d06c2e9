"""Files that are whole or as before, whoever ends the process that writes them."""

from __future__ import annotations

import os

_SHARED = 0o066
"""What others may do with a file, as far as they may with the folder it is in."""


def share(file: int, folder: str) -> None:
    """Let others read a new file of the cache where they may read its folder, whatever the umask says."""
    os.fchmod(file, os.fstat(file).st_mode & 0o700 | os.stat(folder).st_mode & _SHARED)


def write_whole(path: str, data: bytes, mode: int = 0o666, *, shared: bool = False) -> None:
    """Write a file so that it is whole or as before, whoever ends this process.

    Args:
        path: where.
        data: its content.
        mode: of a new file, before the umask.
        shared: whether those may read it who may read its folder.

    Raises:
        OSError: it cannot be written.
    """
    folder = os.path.dirname(path)
    # Not by the number of the process: those of containers repeat, and one may have left its part here.
    part = os.path.join(folder, f".planish-{os.urandom(8).hex()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            if shared:
                share(descriptor, folder)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)
        os.replace(part, path)
    except BaseException:
        try:
            os.unlink(part)
        except FileNotFoundError:
            pass  # an interrupt came when it had its place already
        raise
