"""Numbers of type bfloat16 in and out of ONNX Runtime, which has no array of NumPy's for them."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPE = "tensor(bfloat16)"


def has_bfloat16(session: Any) -> bool:
    """Whether a session of the runtime takes or gives a tensor of this type."""
    return any(port.type == _TYPE for port in [*session.get_inputs(), *session.get_outputs()])


def values_of(feed: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Make the runtime's own values of arrays."""
    return {name: _value(array) for name, array in feed.items()}


def arrays_of(values: Sequence[Any]) -> list[NDArray[Any]]:
    """Copy tensors of the runtime into arrays."""
    return [_array(value) for value in values]


def _value(array: NDArray[Any]) -> Any:
    import onnx
    import onnxruntime as ort

    if array.dtype.name != "bfloat16":
        return ort.OrtValue.ortvalue_from_numpy(array)
    bits = np.ascontiguousarray(array).view(np.uint16)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, onnx.TensorProto.BFLOAT16)


def _array(value: Any) -> NDArray[Any]:
    import ml_dtypes

    if value.data_type() != _TYPE:
        return value.numpy()
    shape = value.shape()
    # A copy, since the memory goes with the runtime's value.
    content = ctypes.string_at(value.data_ptr(), math.prod(shape) * 2)
    return np.frombuffer(content, ml_dtypes.bfloat16).reshape(shape)
