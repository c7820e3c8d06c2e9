"""Files that the user named: what a stored program refers to is looked up here, and nowhere else.

A store is data. A path that stands in it may be anybody's, so it is never opened. What is opened is a file
that this user named on a command line, or in Python, and that has the content which the stored program
names by its digest.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from planish.core.errors import ProgramError

_DIGEST = re.compile("[0-9a-f]{32,64}")
_named: dict[str, str] = {}


def remember(digest: str, path: Path | str) -> None:
    """Note that the user named a file.

    Args:
        digest: of its content, in hexadecimal.
        path: where it is.
    """
    _named[digest] = str(Path(path).absolute())
    entry = _folder() / digest
    new = entry.with_name(f"{digest}.{os.getpid()}")
    with suppress(OSError):  # where no folder can be written, the next process is to be told again
        entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new.write_bytes(os.fsencode(_named[digest]))
        new.replace(entry)


def place_of(digest: object) -> str:
    """Tell where the file of a content is, as the user named it last; empty where it was never named.

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


def unnamed(what: str) -> ProgramError:
    """Make the error of a stored program that refers to a file which this user never named.

    Args:
        what: it is: "the weights".
    """
    return ProgramError(
        f"{what} are known from the store alone: nobody named them here", "Name each: --file PATH."
    )


def _folder() -> Path:
    from platformdirs import user_data_path

    return user_data_path("planish", appauthor=False) / "files"
