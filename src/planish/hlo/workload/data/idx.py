"""IDX files, as of MNIST: `train-images-idx3-ubyte`, `t10k-labels-idx1-ubyte`, also compressed."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError
from planish.core.regular_files import read_regular
from planish.hlo.workload.data.examples import Examples, Group, examples_of

_PREFIXES = {"train": ("train",), "test": ("t10k", "test")}
_BYTES = 8  # the element type in the third byte of the magic number


def open_group(folder: Path, group: Group) -> Examples | None:
    """Read a group; None where the folder has no such files."""
    images, labels = (_find(folder, group, what) for what in ("images", "labels"))
    if images is None or labels is None:
        return None
    return examples_of(read_idx(images), read_idx(labels), f"'{folder}' ({group})")


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an array of bytes.

    Raises:
        ProgramError: the file cannot be read, or is none.
    """
    try:
        data = read_regular(path)
        if path.suffix == ".gz":
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise ProgramError(f"cannot read '{path}': {error}", "Fetch it again.") from error
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] != _BYTES or len(data) < 4 + 4 * data[3]:
        raise ProgramError(f"'{path}' is no IDX file of bytes", "Fetch it again.")
    shape = np.frombuffer(data, ">u4", data[3], 4).tolist()
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * data[3])
    if len(values) != math.prod(shape):
        raise ProgramError(f"'{path}' has {len(values)} bytes for a shape of {shape}", "Fetch it again.")
    return values.reshape(shape)


def _find(folder: Path, group: Group, what: str) -> Path | None:
    patterns = (f"{prefix}*{what}*idx?*" for prefix in _PREFIXES[group])
    return next((path for pattern in patterns for path in sorted(folder.glob(pattern))), None)
