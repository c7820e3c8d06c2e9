"""CIFAR-10's batches: pickles of Python (`data_batch_1`) or records (`data_batch_1.bin`)."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError
from planish.core.regular_files import read_regular
from planish.hlo.workload.data.examples import Examples, Group, examples_of

_PATTERNS = {"train": "data_batch_?", "test": "test_batch"}
_PIXELS = 3 * 32 * 32


def open_group(folder: Path, group: Group) -> Examples | None:
    """Read a group; None where the folder, or one inside it as it is unpacked, has no such files."""
    for place in (folder, *sorted(folder.glob("cifar-10-batches-*"))):
        pattern = _PATTERNS[group]
        pickles, records = (sorted(place.glob(pattern + suffix)) for suffix in ("", ".bin"))
        if pickles or records:
            read = [_of_pickle(path) for path in pickles] or [_of_records(path) for path in records]
            images, labels = (np.concatenate(arrays) for arrays in zip(*read, strict=True))
            shaped = images.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
            return examples_of(shaped, labels, f"'{place}' ({group})")
    return None


def _of_records(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        data = np.frombuffer(read_regular(path), np.uint8)
    except OSError as error:
        raise ProgramError(f"cannot read '{path}': {error.strerror}", "Fetch it again.") from error
    if len(data) % (1 + _PIXELS):
        raise ProgramError(f"'{path}' has no whole number of records", "Fetch it again.")
    records = data.reshape(-1, 1 + _PIXELS)
    return records[:, 1:], records[:, 0]


def _of_pickle(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        batch = _Arrays(io.BytesIO(read_regular(path)), encoding="bytes").load()
        images, labels = np.asarray(batch[b"data"], np.uint8), np.asarray(batch[b"labels"])
        return images.reshape(-1, _PIXELS), labels
    except (OSError, EOFError, pickle.UnpicklingError, KeyError, TypeError, ValueError) as error:
        raise ProgramError(f"'{path}' is no batch of CIFAR-10: {error}", "Fetch it again.") from error


class _Arrays(pickle.Unpickler):
    """Reads arrays and what Python has built in, and calls nothing else: a pickle may run any code."""

    def find_class(self, module: str, name: str, /) -> Any:
        from numpy._core import multiarray

        known = {
            ("multiarray", "_reconstruct"): getattr(multiarray, "_reconstruct"),  # noqa: B009
            ("numpy", "ndarray"): np.ndarray,
            ("numpy", "dtype"): np.dtype,
            ("_codecs", "encode"): _encode,
        }
        found = known.get((module.rpartition(".")[2], name))
        if found is None:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return found


def _encode(text: str, _encoding: str) -> bytes:
    return text.encode("latin-1")
