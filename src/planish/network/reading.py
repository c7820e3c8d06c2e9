"""Import of ONNX models: constant parts are folded, and all shapes are known."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from planish.core import ProgramError
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.source import load_checked
from planish.network.fusion import uncovered
from planish.network.model import TAKE, VIEW, Array, Network, Node, Shape, Value

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

OLDEST = 13
"""The first opset that is covered: some operators had other attributes before."""
MOST_NAMED = 8
"""Nodes that are named where many are not covered."""

_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout")
_FLOATS = ("float32", "bool")
_INDICES = ("int32", "int64")


def read_network(program: GraphProgram) -> tuple[Network, ModelProto]:
    """Read a model as a network.

    Args:
        program: from the level `graph`, with the shapes of its inputs.

    Returns:
        The network, and the model as it was, with static shapes.

    Raises:
        ProgramError: a node, a type or a shape is not covered; all such nodes are named.
    """
    model = load_checked(program)
    opset = max((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), default=0)
    newer = max(opset, OLDEST)
    _set_shapes(model, program)
    folded = _folded(model if opset == newer else _converted(model, program.path))
    network = _network(program.file.stem, folded)
    if missing := uncovered(network):
        more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
        named = ", ".join(missing[:MOST_NAMED])
        what = f"{len(missing)} nodes of '{program.path}' are not covered: {named}{more}"
        raise ProgramError(what, "The operators that are covered are listed in docs/how-to/compile.md.")
    return network, model


def _converted(model: ModelProto, path: str) -> ModelProto:
    """Convert a model of an older opset to the oldest that is covered."""
    from onnx.version_converter import convert_version

    try:
        return convert_version(model, OLDEST)
    except Exception as error:  # the converter raises whatever it likes
        what = f"'{path}' is of an opset before {OLDEST} and cannot be converted: {_first_line(error)}"
        raise ProgramError(what, "Export it again, for opset 17.") from error


def _set_shapes(model: ModelProto, program: GraphProgram) -> None:
    """Write the shapes of the inputs into a model."""
    shapes = {port.name: port.shape for port in program.inputs}
    for value in model.graph.input:
        if value.name in shapes:
            tensor = value.type.tensor_type
            tensor.ClearField("shape")
            for extent in shapes[value.name]:
                tensor.shape.dim.add().dim_value = extent or 0
    # What is known of other tensors may be of open shapes: it is inferred anew.
    del model.graph.value_info[:]


def _folded(model: ModelProto) -> ModelProto:
    """Fold what is constant, by ONNX Runtime's basic optimizations, and infer all shapes."""
    import onnx
    import onnxruntime
    from onnx.shape_inference import infer_shapes

    runtime: Any = onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "folded.onnx"
        options = runtime.SessionOptions()
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(path)
        options.log_severity_level = 4
        try:
            runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the runtime has an own class for each status
            raise ProgramError(f"ONNX Runtime does not load the model: {_first_line(error)}") from error
        folded = onnx.load(str(path))
    return infer_shapes(folded, data_prop=True)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _network(name: str, model: ModelProto) -> Network:
    from onnx import numpy_helper

    graph = model.graph
    constants: dict[str, Array] = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    nodes = list[Node]()
    values = dict(_types(graph))
    for index, node in enumerate(graph.node):
        attributes = {each.name: _attribute(each) for each in node.attribute}
        label = node.name or f"#{index}"
        if node.op_type == "Constant" and "value" in attributes:
            constants[node.output[0]] = attributes["value"]
        elif node.domain not in ("", "ai.onnx"):
            nodes.append(Node(f"{node.domain}.{node.op_type}", label, tuple(node.input), node.output[0]))
        else:
            nodes += _nodes(node, label, attributes, values, constants)
    inputs = tuple(each.name for each in graph.input if each.name not in constants)
    values |= {key: Value(array.shape, _dtype(key, array.dtype.name)) for key, array in constants.items()}
    network = Network(
        name, tuple(nodes), inputs, tuple(each.name for each in graph.output), values,
        {key: _as_float(array) for key, array in constants.items()},
    )  # fmt: skip
    _check(network)
    return network


def _as_float(array: Array) -> Array:
    return np.ascontiguousarray(array, np.float32) if array.dtype.name in (*_FLOATS, "float64") else array


def _attribute(attribute: Any) -> Any:
    from onnx import helper, numpy_helper

    value = helper.get_attribute_value(attribute)
    if attribute.type == attribute.TENSOR:
        return numpy_helper.to_array(value)
    return value.decode() if isinstance(value, bytes) else list(value) if isinstance(value, tuple) else value


def _types(graph: GraphProto) -> Iterator[tuple[str, Value]]:
    from onnx.helper import tensor_dtype_to_np_dtype

    for info in (*graph.input, *graph.value_info, *graph.output):
        tensor = info.type.tensor_type
        dims = tensor.shape.dim
        if tensor.elem_type and tensor.HasField("shape") and all(d.HasField("dim_value") for d in dims):
            dtype = tensor_dtype_to_np_dtype(tensor.elem_type).name
            yield info.name, Value(tuple(d.dim_value for d in dims), _dtype(info.name, dtype))


def _dtype(name: str, dtype: str) -> str:
    """Return the type in which a tensor is stored; truth values are numbers."""
    del name
    return "float32" if dtype in _FLOATS else dtype


def _nodes(
    node: NodeProto,
    label: str,
    attributes: Mapping[str, Any],
    values: dict[str, Value],
    constants: Mapping[str, Array],
) -> Iterator[Node]:
    """Translate a node; one of several outputs becomes several nodes."""
    outputs = [name for name in node.output if name]
    if any(name not in values for name in node.output[:1]):
        raise ProgramError(
            f"node '{label}' ({node.op_type}) has an output whose shape is not known ahead of time",
            "Shapes must follow from those of the inputs.",
        )
    inputs = tuple(node.input)
    if node.op_type in _VIEWS:
        yield Node(VIEW, label, inputs[:1], outputs[0])
    elif node.op_type == "Transpose" and _moves_nothing(attributes, values[inputs[0]].shape):
        yield Node(VIEW, label, inputs, outputs[0])
    elif node.op_type == "Split":
        yield from _split(label, inputs, outputs, attributes, values)
    elif node.op_type == "Slice":
        yield _slice(label, inputs, outputs[0], values, constants)
    elif node.op_type == "Constant":
        yield Node("Constant", label, (), outputs[0])
    else:
        yield Node(node.op_type, label, inputs, outputs[0], attributes)


def _moves_nothing(attributes: Mapping[str, Any], shape: Shape) -> bool:
    order = attributes.get("perm") or list(range(len(shape)))[::-1]
    long = [d for d in order if shape[d] > 1]
    return long == sorted(long)


def _split(
    label: str,
    inputs: tuple[str, ...],
    outputs: list[str],
    attributes: Mapping[str, Any],
    values: Mapping[str, Value],
) -> Iterator[Node]:
    rank = len(values[inputs[0]].shape)
    d, start = attributes.get("axis", 0) % rank, 0
    for output in outputs:
        starts = [0] * rank
        starts[d] = start
        start += values[output].shape[d]
        yield Node(TAKE, label, inputs[:1], output, {"starts": starts, "steps": [1] * rank})


def _slice(
    label: str,
    inputs: tuple[str, ...],
    output: str,
    values: Mapping[str, Value],
    constants: Mapping[str, Array],
) -> Node:
    node, shape = Node("Slice", label, inputs, output), values[inputs[0]].shape
    given = [constants.get(name) if name else None for name in inputs[1:]]
    if any(name and each is None for name, each in zip(inputs[1:], given, strict=True)):
        raise node.refuse("bounds that are computed are not covered")
    first = [int(n) for n in np.atleast_1d(given[0])] if given[0] is not None else []
    axes = given[2] if len(given) > 2 and given[2] is not None else range(len(first))
    steps = given[3] if len(given) > 3 and given[3] is not None else [1] * len(first)
    starts, strides = [0] * len(shape), [1] * len(shape)
    for d, start, step in zip(axes, first, steps, strict=True):
        if step < 1:
            raise node.refuse("a slice backwards is not covered")
        n = shape[d]
        starts[int(d)] = min(max(start + n if start < 0 else start, 0), n)
        strides[int(d)] = int(step)
    return Node(TAKE, label, inputs[:1], output, {"starts": starts, "steps": strides})


def _check(network: Network) -> None:
    """Refuse types that are not covered, and tensors without elements."""
    for name in network.inputs:
        value = network.values.get(name)
        if value is None or value.dtype not in ("float32", *_INDICES):
            raise ProgramError(
                f"input '{name}' is of type {value.dtype if value else 'unknown'}, which is not covered",
                "Inputs are float32, or whole numbers that are looked up with.",
            )
    for node in network.nodes:
        value = network.values[node.output]
        if value.dtype != "float32" and node.operator != VIEW:
            raise node.refuse(f"results of type {value.dtype} are not covered")
        if not value.size:
            raise node.refuse("tensors without elements are not covered")
