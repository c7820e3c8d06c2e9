"""Finding out what a folder holds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from planish.core import ProgramError
from planish.hlo.workload.data import arrays, batches, idx, pictures
from planish.hlo.workload.data.examples import Examples, Group

_READERS: Sequence[Callable[[Path, Group], Examples | None]] = (
    idx.open_group,
    batches.open_group,
    pictures.open_group,
    arrays.open_group,
)
_KNOWN = "IDX files, CIFAR-10 batches, train and test folders or tars of images, or .npz files"
_SMALL = 1 << 30


def open_data(path: Path, group: Group) -> Examples | None:
    """Open one group of a data set; None where it has no test group.

    Args:
        path: a folder, or a `.npz` file.
        group: which; no file of the other is opened, unless one file holds both.

    Raises:
        ProgramError: nothing known is there, or a file is malformed.
        TargetError: it takes a library that is not installed.
    """
    for read in _READERS:
        found = read(path, group)
        if found is not None:
            return found
    if group == "train":
        raise ProgramError(f"'{path}' holds no data set", f"Known: {_KNOWN}.")
    return None


def digest_of(path: Path) -> str:
    """Name the content of a folder's files, or of a file; in subfolders, names and sizes count alone."""
    digest = hashlib.sha256()
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    for file in files:
        if not file.is_file():
            continue
        size = file.stat().st_size
        digest.update(f"{file.relative_to(path.parent if path == file else path)} {size}\n".encode())
        if size < _SMALL and file.parent == (path if path.is_dir() else path.parent):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:32]
