"""Folders of the user's own, for locks and caches: nobody else can have put something into them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from planish.core.errors import PlanishError


def private_folder(path: Path) -> Path:
    """Make a folder that only this user can write to, or close one of theirs to others.

    Args:
        path: the folder; it is made where it is missing, for this user alone.

    Returns:
        The same path.

    Raises:
        OSError: it is a link, belongs to somebody else, or stands where others could replace it.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found, around = path.lstat(), path.parent.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(f"{path} is no folder")
    if found.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to another user")
    if around.st_uid not in (0, os.geteuid()) or around.st_mode & 0o002:
        raise PermissionError(f"others may write to {path.parent}")
    if found.st_mode & 0o022:
        path.chmod(stat.S_IMODE(found.st_mode) & ~0o022)
    return path


def cache_folder(name: str = "") -> Path:
    """Give a folder of planish's caches, in the user's.

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
