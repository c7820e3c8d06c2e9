"""Whether a process holds a file."""

import fcntl
import os
from pathlib import Path


def is_locked(path: Path) -> bool:
    """Tell whether a process has a file under an exclusive `flock`; it ends with that process.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it cannot be opened.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
