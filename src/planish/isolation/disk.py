"""Which errors concern one file, and which the whole disk: those end the work, since all else would fail."""

import errno
import os

_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_FULL = os.strerror(errno.ENOSPC)


def is_no_room(error: OSError) -> bool:
    """Tell whether nothing more can be written, whatever it is."""
    return error.errno in _NO_ROOM


def check_room(program: str, messages: str) -> None:
    """Look whether a program that failed says that the disk is full, in English.

    Raises:
        OSError: it does.
    """
    if _FULL in messages:
        raise OSError(errno.ENOSPC, _FULL, program)
