"""Arrays of a user's file, and random ones, as the arguments of a module take them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError, did_you_mean, unnamed
from planish.core.damaged_files import DAMAGED, why
from planish.core.regular_files import check_regular
from planish.hlo.backend.element_types import numpy_type
from planish.hlo.ir import TensorType
from planish.hlo.workload.data import digest_of
from planish.hlo.workload.spec import Data

TARGETS = "targets"
"""The name of the array that answers are scored by."""

Arrays = Mapping[str, NDArray[Any]]


def given_arrays(data: Data) -> Arrays:
    """Read the arrays of a workload's data; none where it has no data.

    Raises:
        ProgramError: the file is missing, malformed, or other than when it was located.
    """
    if not data.digest:
        return {}
    if not data.folder:
        raise unnamed("the inputs")
    path = Path(data.folder)
    try:
        if digest_of(path) != data.digest:
            raise ProgramError(f"the inputs '{path}' are not what they were", "Tune again.")
        files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
        if len(files) != 1:
            raise ProgramError(f"'{path}' has {len(files)} .npz files", "Name one file with --data.")
        check_regular(files[0])
        with np.load(files[0], allow_pickle=False) as found:
            return dict(found)
    except (*DAMAGED, AttributeError) as error:
        raise ProgramError(f"cannot read the inputs '{path}': {why(error)}", "Use numpy.savez.") from error


def check_names(arguments: Collection[str], given: Arrays, others: Collection[str]) -> None:
    """Raise ProgramError where an argument has no array, or an array belongs to none."""
    known = [*arguments, TARGETS]
    for name in given:
        if name not in known:
            raise ProgramError(
                f"the module has no argument '{name}', which the inputs have", did_you_mean(name, known)
            )
    for name in arguments:
        if name not in given and name not in others:
            has = f"They have {', '.join(given) or 'none'}."
            raise ProgramError(
                f"the inputs have no array '{name}'",
                f"{has} A file of weights alone is named by 'weights' in a workload: inputs are random then.",
            )


def drawn(type_: TensorType, rng: np.random.Generator, below: int) -> NDArray[Any]:
    """Draw an array: normal floats, whole numbers from 0 to `below` - 1, truth values."""
    dtype = numpy_type(type_.element)
    if dtype.kind == "b":
        return rng.integers(0, 2, type_.shape).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, min(below, int(np.iinfo(dtype).max) + 1), type_.shape).astype(dtype)
    return rng.standard_normal(type_.shape).astype(dtype)


def taken_as(array: NDArray[Any], type_: TensorType, name: str) -> NDArray[Any]:
    """Give an array of elements that an argument takes; raises ProgramError where some would change."""
    dtype = numpy_type(type_.element)
    if array.dtype == dtype:
        return np.ascontiguousarray(array)
    whole = array.dtype.kind in "biu"
    if dtype.kind in "biu" and not (whole and _within(array, dtype)):
        raise ProgramError(
            f"'{name}' of the inputs is {array.dtype}, the module takes {type_}", "Convert it."
        )
    return np.ascontiguousarray(array.astype(dtype))


def _within(array: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    return bool((array.astype(dtype) == array).all())


def rows_of(array: NDArray[Any], type_: TensorType, name: str) -> int | None:
    """Tell how an argument takes an array: None: as it is; 0: one value a call; else so many rows a call.

    Raises:
        ProgramError: it is of another shape.
    """
    if array.shape == type_.shape:
        return None
    if array.shape[1:] == type_.shape and array.ndim:
        return 0
    if array.ndim and array.shape[1:] == type_.shape[1:] and type_.shape and math.prod(type_.shape):
        return type_.shape[0]
    what = f"'{name}' of the inputs is of shape {list(array.shape)}, the module takes {type_}"
    raise ProgramError(what, "Give that shape, N x that shape, or N rows of it.")
