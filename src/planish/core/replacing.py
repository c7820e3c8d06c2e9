"""Files that are written beside the old ones, and take their places."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Give the path to write to within the block; what is there then replaces the file.

    Where the block fails, as on a full disk, the old file is as it was, and nothing else is left. A link
    stays one, and what it names is replaced. What is no plain file, as a pipe, is written to itself.

    Args:
        path: of the file, in a folder that is there.

    Raises:
        OSError: it cannot be replaced.
    """
    if _is_stream(path):
        yield path
        return
    whole = path.resolve()
    if whole.exists() and not os.access(whole, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    # A name of its own, or two processes would write into one part; and a short one.
    part = whole.with_name(f".planish-{os.urandom(4).hex()}.part")
    try:
        yield part
        _settle(part, whole)
        part.replace(whole)
    finally:
        part.unlink(missing_ok=True)


def replace_text(path: Path, text: str, errors: str = "strict") -> None:
    """Write a text in UTF-8 such that it is there as a whole, or as it was.

    Args:
        path: of the file, in a folder that is there.
        text: its content.
        errors: what becomes of halves of characters, as for `str.encode`.

    Raises:
        OSError: it cannot be written.
    """
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8", errors=errors)


def _is_stream(path: Path) -> bool:
    # A shell that sent its output to a file holds that file, and not its name.
    is_output = path.is_symlink() and str(path).startswith(("/dev/", "/proc/"))
    return is_output or (path.exists() and not path.is_file() and not path.is_dir())


def _settle(part: Path, whole: Path) -> None:
    """Bring a part to the disk before the name is: else a power cut could leave the name with nothing."""
    with suppress(FileNotFoundError):
        part.chmod(stat.S_IMODE(whole.stat().st_mode))
    with part.open("rb") as file:
        os.fsync(file.fileno())
