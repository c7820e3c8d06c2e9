"""Finding out what a folder holds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from planish.core import ProgramError
from planish.core.regular_files import check_regular
from planish.hlo.workload.data import arrays, batches, idx, pictures
from planish.hlo.workload.data.examples import Examples, Group

_READERS: Sequence[Callable[[Path, Group], Examples | None]] = (
    idx.open_group,
    batches.open_group,
    pictures.open_group,
    arrays.open_group,
)
_KNOWN = "IDX files, CIFAR-10 batches, train and test folders or tars of images, or .npz files"


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
    """Name the content of a folder's files, or of a file; in subfolders, names and sizes count alone.

    Raises:
        OSError: a file cannot be read; what was named is neither a folder nor a regular file.
    """
    if not path.is_dir():
        check_regular(path)
    folder = path if path.is_dir() else path.parent
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(folder)} {file.stat().st_size}\n".encode())
        if file.parent == folder:
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()[:32]
