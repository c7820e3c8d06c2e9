"""Answers of a model in float64, by ONNX's own implementation of each operator.

They share no code with planish or ONNX Runtime, and have no rounding that matters: where the answers of the
two differ, those in float64 decide which of them is off.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from planish.network.ir import Array

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

_NARROW = ("FLOAT", "FLOAT16")
"""Types of ONNX that are computed in float64."""


def float64_answers(model: ModelProto, feed: Mapping[str, Array]) -> Sequence[Array] | None:
    """Compute a model in float64; None where ONNX's reference does not cover one of its operators.

    Args:
        model: with its weights.
        feed: inputs by name.
    """
    from onnx.reference import ReferenceEvaluator

    wide = {
        name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in feed.items()
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ReferenceEvaluator(_widen(model)).run(None, wide)
    except Exception:  # noqa: BLE001 (the reference of an operator raises whatever it likes)
        return None
    return [np.asarray(each) for each in found]


def _widen(model: ModelProto) -> ModelProto:
    """Return a model whose floats are float64."""
    from onnx import ModelProto, TensorProto

    narrow = {getattr(TensorProto, name) for name in _NARROW}
    wide = ModelProto()
    wide.CopyFrom(model)
    del wide.graph.value_info[:]
    for port in (*wide.graph.input, *wide.graph.output):
        if port.type.tensor_type.elem_type in narrow:
            port.type.tensor_type.elem_type = TensorProto.DOUBLE
    for tensor in wide.graph.initializer:
        _widen_tensor(tensor, narrow)
    for node in wide.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _widen_tensor(attribute.t, narrow)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i in narrow:
                attribute.i = TensorProto.DOUBLE
    return wide


def _widen_tensor(tensor: TensorProto, narrow: set[Any]) -> None:
    from onnx import numpy_helper

    if tensor.data_type in narrow:
        array = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
