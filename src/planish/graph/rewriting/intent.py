"""The passes that change results, which a user has to ask for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

    from planish.graph.running import Feed

NEEDS_INPUTS = frozenset({"intent.int8_static"})
"""The passes that look at what a model computes."""
_MOST = 32
"""Batches of inputs that are looked at."""
_AROUND = ("Add", "Relu", "Clip", "MaxPool", "GlobalAveragePool", "Concat")
"""What stays in 8 bits between convolutions."""
_NARROW = ("Conv", "ConvTranspose", "Gemm", "MatMul")


def apply_intent(model: ModelProto, name: str, feeds: Sequence[Feed] = ()) -> ModelProto:
    """Apply a pass.

    Args:
        model: stays as it is.
        name: "fp16", "mixed", "int8" or "int8_static".
        feeds: inputs of the model, for those of `NEEDS_INPUTS`.

    Raises:
        ValueError: there are no inputs, and it needs some.
    """
    if name == "int8":
        return _through_files(model, _dynamic)
    if name == "int8_static":
        if not feeds:
            raise ValueError("there are no inputs to find ranges by")
        return _through_files(model, partial(_static, feeds=feeds))
    from onnx import ModelProto
    from onnxruntime.transformers.float16 import convert_float_to_float16

    copy = ModelProto()
    copy.CopyFrom(model)
    types = {node.op_type for node in model.graph.node}
    wide = sorted(types.difference(_NARROW)) if name == "mixed" else None
    return _without_twins(convert_float_to_float16(copy, keep_io_types=True, op_block_list=wide))


def _without_twins(model: ModelProto) -> ModelProto:
    """Keep one of each cast that was made for several uses of a value: they have one name."""
    made: dict[tuple[str, ...], NodeProto] = {}
    for node in model.graph.node:
        made.setdefault(tuple(node.output), node)
    firsts = list(made.values())
    del model.graph.node[:]
    model.graph.node.extend(firsts)
    return model


def _through_files(model: ModelProto, quantise: Callable[[Path, Path], None]) -> ModelProto:
    """Have a quantiser read one file and write another."""
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        plain = onnx.ModelProto()
        plain.CopyFrom(model)
        del plain.graph.value_info[:]  # exporters leave shapes there that the quantiser takes for wrong
        onnx.save(plain, before)
        quantise(before, after)
        return onnx.load(after)


def _dynamic(before: Path, after: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(before, after, weight_type=QuantType.QInt8)


def _static(before: Path, after: Path, feeds: Sequence[Feed]) -> None:
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter(feeds[:_MOST])

        def get_next(self) -> Any:
            return next(self.rest, None)

    operators = {node.op_type for node in onnx.load(before, load_external_data=False).graph.node}
    quantize_static(
        before,
        after,
        Reader(),
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=["Conv", "MatMul", "Gemm", *(_AROUND if "Conv" in operators else ())],
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
