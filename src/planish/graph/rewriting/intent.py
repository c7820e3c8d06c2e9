"""The passes that change results, which a user has to ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_NARROW = ("Conv", "ConvTranspose", "Gemm", "MatMul")


def apply_intent(model: ModelProto, name: str) -> ModelProto:
    """Apply a pass.

    Args:
        model: stays as it is.
        name: "fp16", "mixed" or "int8".
    """
    if name == "int8":
        return _int8(model)
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


def _int8(model: ModelProto) -> ModelProto:
    import tempfile
    from pathlib import Path

    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        plain = onnx.ModelProto()
        plain.CopyFrom(model)
        del plain.graph.value_info[:]  # exporters leave shapes there that the quantiser takes for wrong
        onnx.save(plain, before)
        quantize_dynamic(before, after, weight_type=QuantType.QInt8)
        return onnx.load(after)
