"""Arrays as the arguments of a module take them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError, TargetError, did_you_mean, unnamed
from planish.core.damaged_files import DAMAGED, why
from planish.hlo.backend.element_types import numpy_type
from planish.hlo.ir import TensorType
from planish.hlo.workload.argument_roles import RoleCall
from planish.hlo.workload.data import digest_of
from planish.hlo.workload.spec import File, Images, Workload

_BLACK = 255.0


def shaped(images: NDArray[Any], type_: TensorType, how: Images) -> NDArray[Any]:
    """Give images as an argument takes them.

    Args:
        images: N x height x width (x channels), or flat; bytes are scaled to 0 to 1.
        type_: the argument's, of a batch.
        how: the mean and deviation of the pixels, and the order of the dimensions.

    Raises:
        ProgramError: they have more pixels than the argument takes, or fewer, or other channels.
    """
    pixels = images.astype(np.float32) / np.float32(_BLACK) if images.dtype == np.uint8 else images
    mean, deviation = (np.asarray(values, np.float32) for values in (how.mean, how.deviation))
    channels = images.shape[3] if images.ndim == 4 else 1
    if not {mean.size, deviation.size} <= {1, channels}:
        what = f"the mean has {mean.size} and the deviation {deviation.size} channels, the images {channels}"
        raise ProgramError(what, "Give one number for each channel, or one for all.")
    pixels = (pixels - mean) / deviation
    if how.layout == "NCHW" and pixels.ndim == 4:
        pixels = pixels.transpose(0, 3, 1, 2)
    wanted = type_.shape[1:]
    if math.prod(pixels.shape[1:]) != math.prod(wanted):
        what = f"the images are of shape {list(images.shape[1:])}, the module takes {list(wanted)}"
        raise ProgramError(what, "Give data of that size, or make the module for these images.")
    if len(wanted) == pixels.ndim - 1 and wanted != pixels.shape[1:]:
        what = f"the images are of shape {list(pixels.shape[1:])}, the module takes {list(wanted)}"
        raise ProgramError(what, "Set 'layout' of [images].")
    return np.ascontiguousarray(pixels.reshape(-1, *wanted), numpy_type(type_.element))


def labels_as(labels: NDArray[np.int64], type_: TensorType) -> NDArray[Any]:
    """Give labels as an argument takes them: numbers, or rows with one 1 where it has two dimensions."""
    if len(type_.shape) == 1:
        return labels.astype(numpy_type(type_.element))
    return np.eye(type_.shape[1], dtype=numpy_type(type_.element))[labels]


def first_parameters(workload: Workload, call: RoleCall) -> list[NDArray[Any]]:
    """Give the parameters that a function starts with, in the order of its arguments.

    They are those of the weights' file. Without it matrices are normal, with a variance of 2 over the number
    of inputs, and vectors are 0.

    Raises:
        ProgramError: the file lacks one, or has it in another shape or type, or the workload is an
            inference and names none.
    """
    types = call.types()
    if workload.weights is not None:
        found = read_weights(workload.weights)
        return [_checked(found, name, type_, workload.weights.path) for name, type_ in types.items()]
    if types and workload.training is None:
        what = f"function '{call.function}' takes {len(types)} parameters, and the workload has no weights"
        raise ProgramError(what, "Name a file: weights = 'FILE.safetensors'.")
    rng = np.random.default_rng(workload.training.seed if workload.training else 0)
    return [_drawn(type_, rng) for type_ in types.values()]


def _drawn(type_: TensorType, rng: np.random.Generator) -> NDArray[Any]:
    if len(type_.shape) < 2:
        return np.zeros(type_.shape, numpy_type(type_.element))
    inputs = math.prod(type_.shape[:-1])  # He and others, 2015
    return rng.normal(0, math.sqrt(2 / inputs), type_.shape).astype(numpy_type(type_.element))


def _checked(found: Mapping[str, NDArray[Any]], name: str, type_: TensorType, path: str) -> NDArray[Any]:
    if name not in found:
        raise ProgramError(f"'{path}' has no array '{name}'", did_you_mean(name, found))
    array = found[name]
    if array.shape != type_.shape or array.dtype != numpy_type(type_.element):
        what = f"'{name}' of '{path}' is {array.dtype} {list(array.shape)}, the module takes {type_}"
        raise ProgramError(what, "Give the weights of this module.")
    return array


def read_weights(file: File) -> Mapping[str, NDArray[Any]]:
    """Read arrays by name; raises ProgramError where the file is missing, another one, or malformed."""
    if not file.path:
        raise unnamed("the weights")
    path = Path(file.path)
    try:
        if digest_of(path) != file.digest:
            what = f"the weights '{path}' are not what they were when the program was read"
            raise ProgramError(what, "Tune again.")
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as found:
                return dict(found)
        return _safetensors(path)
    except DAMAGED as error:
        raise ProgramError(f"cannot read the weights '{path}': {why(error)}", "Write them again.") from error


def _safetensors(path: Path) -> Mapping[str, NDArray[Any]]:
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file
    except ImportError as error:
        raise TargetError("weights need safetensors", "Install it with: pip install safetensors") from error
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(str(error)) from error
