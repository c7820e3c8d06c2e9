"""Files: written as a whole, private, locked, or named by the user.

A store is data: a path in it may have been written by anybody, so it is never opened. What is opened is a
file that this user named on a command line, or in Python, and whose content has the digest by which the
stored program names it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tokenize import TokenError
from typing import BinaryIO

from planish.core.errors import MissingFileError, PlanishError

StrPath = str | os.PathLike[str]
"""A path as public functions take it."""


def private_folder(path: StrPath) -> Path:
    """Make a folder that only this user can write to, or close one of theirs to others.

    Args:
        path: the folder; it is made where it is missing, for this user alone.

    Returns:
        The path.

    Raises:
        OSError: it is a link, belongs to another user, or stands where others could replace it.
    """
    path = Path(path)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found, around = path.lstat(), path.parent.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(f"{path} is not a folder")
    if found.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to another user")
    if around.st_uid not in (0, os.geteuid()) or around.st_mode & 0o002:
        raise PermissionError(f"others may write to {path.parent}")
    if found.st_mode & 0o022:
        path.chmod(stat.S_IMODE(found.st_mode) & ~0o022)
    return path


def cache_folder(name: str = "") -> Path:
    """Return a folder of planish's caches, in the user's.

    Args:
        name: of a folder within; empty for the whole.

    Raises:
        PlanishError: it cannot be made, or is not safe from others.
    """
    from platformdirs import user_cache_path

    try:
        whole = private_folder(user_cache_path("planish", appauthor=False))
        return private_folder(whole / name) if name else whole
    except OSError as error:
        raise PlanishError(
            f"the folder of caches cannot be used: {error}", "Name another: XDG_CACHE_HOME."
        ) from error


def is_locked(path: StrPath) -> bool:
    """Return whether a process has a file under an exclusive `flock`, which ends with the process.

    Raises:
        OSError: the file is there, and cannot be opened.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Generator[Path]:
    """Provide the path to write to within the block; what is there then replaces the file.

    Where the block fails, as on a full disk, the old file is as it was, and nothing else is left. A link
    stays one, and what it names is replaced. What is not a plain file, as a pipe, is written to itself.

    Args:
        path: of the file, in a folder that is there.
        durable: whether the content is on the disk before the file is replaced, and the mode stays; a cache
            needs neither.

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
        if durable:
            with suppress(FileNotFoundError):
                part.chmod(stat.S_IMODE(whole.stat().st_mode))
            # The content before the name: else a power cut could leave the name with nothing.
            with part.open("rb") as file:
                os.fsync(file.fileno())
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


_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def check_regular(path: Path) -> None:
    """Check that a path leads to a regular file, before something else opens it.

    To open a FIFO waits until another process writes to it, and a device may have no end.

    Raises:
        OSError: it is of another kind, which `strerror` names, or is missing.
    """
    _check(path, path.stat())


PART_BYTES = 1 << 22
"""Bytes of a file that are read at a time."""


def read_regular(path: Path) -> bytes:
    """Read a regular file.

    Raises:
        OSError: as `check_regular`, or it cannot be read.
    """
    with _open_regular(path) as file:
        return file.read()


def regular_parts(path: Path) -> Iterator[bytes]:
    """Read a regular file part by part.

    Raises:
        OSError: as `check_regular`, or it cannot be read.
    """
    with _open_regular(path) as file:
        while part := file.read(PART_BYTES):
            yield part


def _open_regular(path: Path) -> BinaryIO:
    check_regular(path)
    # It may have been replaced since: such an open does not wait either.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")
    try:
        _check(path, os.fstat(file.fileno()))
    except OSError:
        file.close()
        raise
    return file


def copy_regular(path: Path, to: Path) -> None:
    """Copy a regular file that a process wrote which is not trusted: a link is refused.

    Raises:
        OSError: as `read_regular`, or it cannot be written.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags), "rb") as file, to.open("wb") as copied:
        _check(path, os.fstat(file.fileno()))
        shutil.copyfileobj(file, copied)


def _check(path: Path, found: os.stat_result) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind != stat.S_IFREG:
        raise OSError(
            errno.EINVAL, f"it is {_KINDS.get(kind, 'of another kind')}, not a regular file", str(path)
        )


_DIGEST = re.compile("[0-9a-f]{32,64}")
_named: dict[str, str] = {}


def register_file(digest: str, path: StrPath) -> None:
    """Note that the user named a file.

    Args:
        digest: of its content, in hexadecimal.
        path: where it is.
    """
    _named[digest] = str(Path(path).absolute())
    entry = _folder() / digest
    with suppress(OSError):  # where no folder can be written, the user names the file to the next process
        entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(entry, durable=False) as part:
            part.write_bytes(os.fsencode(_named[digest]))


def resolve_file(digest: object) -> str:
    """Return the path of the file of a content, as the user named it last; empty for an unknown content.

    Args:
        digest: of its content; what is none, as a damaged or crafted store may have it, names nothing.
    """
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        return ""
    if digest in _named:
        return _named[digest]
    with suppress(OSError):
        return os.fsdecode((_folder() / digest).read_bytes())
    return ""


def unresolved_file(what: str) -> MissingFileError:
    """Make the error of a stored program that refers to a file which this user never named.

    Args:
        what: it is: "the weights".
    """
    return MissingFileError(
        f"{what} are known from the store alone: they were not named here", 'Name each: files=["PATH"].'
    )


def _folder() -> Path:
    from platformdirs import user_data_path

    return user_data_path("planish", appauthor=False) / "files"


# NumPy lets through what the layers below it say: zipfile of the directory and of what it does not support,
# zlib of what is compressed, tokenize of a header that does not parse; json and NumPy speak of what is in it.
DAMAGED = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    RuntimeError,
    TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def why(error: Exception) -> str:
    """Describe an error that is one of `DAMAGED`."""
    match error:
        case OSError() if error.strerror:
            return error.strerror
        case KeyError():
            return f"it lacks {error}"
        case ValueError() if "pickled" in str(error):  # NumPy's name for whatever it does not know
            return "it is not a file of arrays"
        case _:
            return str(error)
