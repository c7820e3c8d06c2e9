"""Sensitivity of a model to rounding: its answers with weights and inputs that are rounded otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import rng
from planish.graph.nested import all_tensors
from planish.graph.running.feeds import Feed
from planish.graph.running.runtimes import open_session

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray
    from onnx import ModelProto

    from planish.graph.running.ort_session import SessionSettings

_SEED = 20_220_519
_FEWEST_AXES = 2
"""Weights of fewer axes stay: sizes, exponents, bounds and the like are stored so, and mean what they say."""
_TYPES = ("float16", "float32", "float64")


def moved_answers(
    model: ModelProto, feeds: Sequence[Feed], settings: SessionSettings, scratch: Path
) -> list[Sequence[Any]]:
    """Run a model, not optimised, where each weight and each input is the next number up or down, at random.

    Its answers are as right as those of the model itself, whose numbers were rounded too; so what they differ
    by is what rounding comes to in this model. Monte Carlo arithmetic (Parker, 1997) moves each result.

    Args:
        model: stays as it is.
        feeds: its inputs.
        settings: of the session.
        scratch: a file to write; it is removed.

    Raises:
        RefusedError: the runtime does not run it.
    """
    generator = rng(_SEED, 0)
    moved = [{name: _moved(array, generator) for name, array in feed.items()} for feed in feeds]
    scratch.write_bytes(_with_moved_weights(model, generator).SerializeToString())
    try:
        session = open_session(scratch, settings, as_it_is=True)
        return [session.run(feed) for feed in moved]
    finally:
        scratch.unlink()


def _with_moved_weights(model: ModelProto, generator: Generator) -> ModelProto:
    from onnx import ModelProto
    from onnx.helper import tensor_dtype_to_np_dtype
    from onnx.numpy_helper import from_array, to_array

    copy = ModelProto()
    copy.CopyFrom(model)
    for tensor in all_tensors(copy):
        if len(tensor.dims) >= _FEWEST_AXES and tensor_dtype_to_np_dtype(tensor.data_type).name in _TYPES:
            tensor.CopyFrom(from_array(_moved(to_array(tensor), generator), tensor.name))
    return copy


def _moved(array: NDArray[Any], generator: Generator) -> NDArray[Any]:
    """Give the next numbers up or down; a 0 stays, and so does what has no fraction."""
    import numpy as np

    if array.dtype.name not in _TYPES:
        return array
    towards = np.where(generator.random(array.shape) < 0.5, np.inf, -np.inf).astype(array.dtype)
    return np.where((array == 0) | ~np.isfinite(array), array, np.nextafter(array, towards))
