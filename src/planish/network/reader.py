"""Import of ONNX models: constant parts are folded, and all shapes are known."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from planish.core import ProgramError
from planish.levels.graph.model_protos import all_tensors
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.sessions import (
    ModelSession,
    RefusedError,
    SessionSettings,
    first_line,
    open_session,
)
from planish.levels.graph.source import LARGEST, load_checked
from planish.network.fusion import uncovered
from planish.network.ir import VIEW, Array, Network, Node, TensorType
from planish.network.onnx.control_flow import refuse_control, unroll
from planish.network.onnx.data_dependent import DataDependentNodes
from planish.network.onnx.quantized import write_as_floats
from planish.network.onnx.translator import CONTRIBUTED, FLOAT, Translator, stored, tensor_types, type_of
from planish.network.registry import OPERATORS, has_integers, maps_elements, translate

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

OLDEST = 13
"""The first opset that is covered: some operators had other attributes before."""
MOST_ROUNDS = 12
"""Rounds of folding constants and repeating loops: a loop in a loop takes a round of its own."""
MOST_NAMED = 8
"""Nodes that are named where many are not covered."""

PORTS = (
    "float32", "float64", "float16", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64",
)  # fmt: skip
"""Element types of inputs and outputs."""


@dataclass(frozen=True)
class SourceModel:
    """The model that a network was read from.

    Args:
        proto: with static shapes; where `folder` is set, its large weights are in files.
        folder: of these files; None where all weights are in the model, as those of 2 GiB and less are.
    """

    proto: ModelProto
    folder: Path | None = None

    def open(self, settings: SessionSettings, **options: Any) -> ModelSession:
        """Make a session of it; `options` are those of `open_session`."""
        return open_session(self.proto.SerializeToString(), settings, weights=self.folder, **options)


def read_network(program: GraphProgram) -> tuple[Network, SourceModel]:
    """Read a model as a network.

    Args:
        program: from the level `graph`, with the shapes of its inputs.

    Returns:
        The network, and the model as it was, with static shapes.

    Raises:
        ProgramError: a node, a type or a shape is not covered; all such nodes are named.
    """
    is_large = program.size > LARGEST
    model = load_checked(program, with_weights=not is_large)
    opset = max((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), default=0)
    newer = max(opset, OLDEST)
    _set_shapes(model, program)
    source, weights = SourceModel(model), dict[str, Array]()
    if is_large:
        folder = program.file.parent
        _read_small_weights(model, folder)
        source, model = SourceModel(model, folder), deepcopy(model)
        weights = _take_weights_out(model, folder)
    folded, shapes = _fold(model if opset == newer else _convert_opset(model, program.path), weights)
    network = replace(_network(program.file.stem, folded, weights), shape_outputs=shapes)
    if missing := uncovered(network):
        more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
        named = ", ".join(missing[:MOST_NAMED])
        what = f"{len(missing)} nodes of '{program.path}' are not covered: {named}{more}"
        raise ProgramError(what, "The operators that are covered are listed in docs/how-to/compile.md.")
    return network, source


SMALL_BYTES = 1024
"""Bytes of weights up to which they are read with a large model: shapes may follow from them."""


def _read_small_weights(model: ModelProto, folder: Path) -> None:
    """Read the small ones of the weights that are in files, in place."""
    from onnx.external_data_helper import load_external_data_for_tensor

    for tensor in all_tensors(model):
        if tensor.external_data and type_of(tensor).bytes <= SMALL_BYTES:
            load_external_data_for_tensor(tensor, str(folder))
            tensor.data_location = tensor.DEFAULT
            del tensor.external_data[:]


def _take_weights_out(model: ModelProto, folder: Path) -> dict[str, Array]:
    """Make inputs of the weights that are in files, in place; return them, mapped and not read.

    So models are rewritten whose weights take more bytes than a message may have.

    Raises:
        ProgramError: a file is too short for a weight, or of one the type is not covered.
    """
    from onnx import helper

    found, graph = dict[str, Array](), model.graph
    ports = {each.name for each in graph.input}
    for tensor in [each for each in graph.initializer if each.external_data]:
        kind, entries = type_of(tensor), {each.key: each.value for each in tensor.external_data}
        file, offset = folder / entries["location"], int(entries.get("offset", 0))
        if kind.dtype not in (*PORTS, "bfloat16") or offset + kind.bytes > file.stat().st_size:
            what = f"weight '{tensor.name}' is of type {kind.dtype}, or '{file}' is too short for it"
            raise ProgramError(what, "Export the model again.")
        found[tensor.name] = np.asarray(np.memmap(file, kind.dtype, "r", offset, kind.shape))
        if tensor.name not in ports:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        graph.initializer.remove(tensor)
    return found


def _convert_opset(model: ModelProto, path: str) -> ModelProto:
    """Convert a model of an older opset to the oldest that is covered."""
    from onnx.version_converter import convert_version

    try:
        return convert_version(model, OLDEST)
    except Exception as error:  # the converter raises whatever it likes
        what = f"'{path}' is of an opset before {OLDEST} and cannot be converted: {first_line(error)}"
        raise ProgramError(what, "Export it again, for opset 17.") from error


def _set_shapes(model: ModelProto, program: GraphProgram) -> None:
    """Write the shapes of the inputs into a model."""
    shapes = {port.name: port.shape for port in program.inputs}
    for value in model.graph.input:
        if value.name in shapes:
            tensor = value.type.tensor_type
            tensor.ClearField("shape")
            tensor.shape.SetInParent()
            for extent in shapes[value.name]:
                tensor.shape.dim.add().dim_value = extent or 0
    # What is known of other tensors may be of open shapes: it is inferred anew.
    del model.graph.value_info[:]


EXPANDED = (
    "AffineGrid", "Attention", "CastLike", "CausalConvWithState", "CenterCropPad", "DynamicQuantizeLinear",
    "LinearAttention", "MeanVarianceNormalization", "NegativeLogLikelihoodLoss", "RotaryEmbedding",
    "SequenceMap", "SoftmaxCrossEntropyLoss", "SwiGLU",
)  # fmt: skip
"""Operators that are replaced by what ONNX defines them by."""


def _fold(model: ModelProto, weights: dict[str, Array]) -> tuple[ModelProto, Mapping[str, str]]:
    """Fold what is constant, repeat loops, choose branches, and infer all shapes.

    Args:
        model: to be rewritten.
        weights: inputs of it that are constant; those that are computed of them are added.

    Returns:
        The model, and outputs whose shapes depend on data, each with the output that receives its shape.
    """
    from onnx.inliner import inline_selected_functions

    model = write_as_floats(model)
    if any(node.op_type in EXPANDED for node in model.graph.node):
        listed = [("", name) for name in EXPANDED]
        with suppress(RuntimeError):  # of some it cannot infer the types: they are named as not covered
            model = inline_selected_functions(model, listed, inline_schema_functions=True)
    finders = DataDependentNodes(maps_elements)
    for _ in range(MOST_ROUNDS):
        count = len(model.graph.node)
        model = _infer_shapes(_optimize(model))
        computed = _compute_constants(model, weights)
        changes = unroll(model) or finders.take_out(model)
        if not changes and not computed and len(model.graph.node) == count:
            break
    refuse_control(model)
    return model, finders.put_back(model)


def _optimize(model: ModelProto) -> ModelProto:
    """Apply ONNX Runtime's basic optimizations."""
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "folded.onnx"
        try:
            open_session(model.SerializeToString(), SessionSettings(optimization="basic"), keep=path)
        except RefusedError as error:
            raise ProgramError(f"ONNX Runtime does not load the model: {error.message}") from error
        return onnx.load(str(path))


def _infer_shapes(model: ModelProto) -> ModelProto:
    """Infer shapes anew: what is known of them may be of a time when they were open."""
    from onnx.shape_inference import infer_shapes

    del model.graph.value_info[:]
    return infer_shapes(model, data_prop=True)


def _fold_shapes(model: ModelProto) -> None:
    """Make constants of the shapes that nodes `Shape` return, as far as they are known."""
    from onnx import helper, numpy_helper

    known = {name: value.shape for name, value in tensor_types(model.graph)}
    for node in [each for each in model.graph.node if each.op_type == "Shape" and each.input[0] in known]:
        bounds = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        shape = known[node.input[0]][bounds.get("start", 0) : bounds.get("end")]
        model.graph.initializer.append(numpy_helper.from_array(np.array(shape, np.int64), node.output[0]))
        model.graph.node.remove(node)


def _compute_constants(model: ModelProto, weights: dict[str, Array]) -> bool:
    """Compute nodes all of whose inputs are constant, in place; return whether there were any.

    ONNX Runtime leaves some, such as `Range`, to the time when the model is run.

    Args:
        model: is changed.
        weights: inputs of it that are constant; results of them are added.
    """
    from onnx import ModelProto, ValueInfoProto, helper, numpy_helper

    _fold_shapes(model)
    known = {each.name for each in model.graph.initializer} | weights.keys()
    found = list[Any]()
    for node in model.graph.node:
        random = node.op_type.startswith(("Random", "Multinomial", "Bernoulli"))
        bodies = any(each.HasField("g") for each in node.attribute)
        inputs = set(filter(None, node.input))
        if (inputs or node.op_type == "Constant") and inputs <= known and not random and not bodies:
            found.append(node)
            known.update(node.output)
    outputs = [name for node in found for name in node.output if name]
    if not any(node.op_type != "Constant" for node in found) or not outputs:
        return False
    part = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    part.graph.name = "constants"
    used = {name for node in found for name in node.input}
    part.graph.initializer.extend(each for each in model.graph.initializer if each.name in used)
    part.graph.input.extend(each for each in model.graph.input if each.name in used & weights.keys())
    part.graph.node.extend(found)
    part.graph.output.extend(ValueInfoProto(name=name) for name in outputs)
    try:
        feed = {name: weights[name] for name in used & weights.keys()}
        values = open_session(part.SerializeToString(), SessionSettings()).run(feed)
    except RefusedError:  # sequences, or what the runtime lacks: the nodes stay
        return False
    if not all(isinstance(each, np.ndarray) for each in values):
        return False
    made = set(outputs)
    kept = [node for node in model.graph.node if made.isdisjoint(node.output)]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    for name, value in zip(outputs, values, strict=True):
        if feed and value.nbytes > SMALL_BYTES:
            weights[name] = value
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            model.graph.input.append(helper.make_tensor_value_info(name, kind, value.shape))
        else:
            model.graph.initializer.append(numpy_helper.from_array(value, name))
    return True


def _network(name: str, model: ModelProto, weights: Mapping[str, Array]) -> Network:
    from onnx import numpy_helper

    graph = model.graph
    constants: dict[str, Array] = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    constants |= weights
    declared = dict(tensor_types(graph))
    inputs = tuple(each.name for each in graph.input if each.name not in constants)
    for node in graph.node:
        if node.op_type == "Constant" and (value := _constant(node)) is not None:
            constants[node.output[0]] = value
    declared |= {key: TensorType(array.shape, array.dtype.name) for key, array in constants.items()}
    # Truth values and numbers of float64 are stored as float32, but in inputs and outputs.
    ports = [each for each in (*inputs, *(each.name for each in graph.output)) if each in declared]
    within = {
        each: f"{each} as float32" for each in ports if declared[each].dtype in ("bool", "float16", "float64")
    }
    types = {
        within.get(key, key): TensorType(each.shape, stored(each.dtype)) for key, each in declared.items()
    }
    truths = {within.get(key, key) for key, each in declared.items() if each.dtype == "bool"}
    kept = {within.get(key, key): _store_as_float(array) for key, array in constants.items()}
    translator = Translator(types, kept, truths, has_integers)
    nodes = [
        Node(f"Cast {declared[each].dtype}", each, (each,), within[each])
        for each in dict.fromkeys(inputs)
        if each in within
    ]
    read = {within.get(name, name) for node in graph.node for name in node.input}
    read |= {within.get(each.name, each.name) for each in graph.output}
    for index, node in enumerate(graph.node):
        if node.op_type != "Constant" or node.output[0] not in constants:
            nodes += _translate(translator, node, node.name or f"#{index}", within, read)
    outputs = tuple(each.name for each in graph.output)
    nodes += [
        Node(f"Cast {declared[each].dtype}", each, (within[each],), each)
        for each in dict.fromkeys(outputs)
        if each in within and each not in inputs
    ]
    types |= {each: declared[each] for each in within}
    network = Network(name, tuple(nodes), inputs, outputs, types, translator.constants)
    _check(network)
    return _without_unused(network)


def _constant(node: NodeProto) -> Array | None:
    """Return the value of a node `Constant`; None for one that is not of numbers."""
    ((key, value),) = [(each.name, _attribute(each)) for each in node.attribute]
    if key == "value":
        return value
    dtypes = {
        "value_float": np.float32,
        "value_floats": np.float32,
        "value_int": np.int64,
        "value_ints": np.int64,
    }
    return np.asarray(value, dtypes[key]) if key in dtypes else None


def _translate(
    t: Translator, node: NodeProto, label: str, within: Mapping[str, str], read: Set[str]
) -> Iterator[Node]:
    """Translate a node; one of several outputs may become several nodes, and all that are read must."""
    operator = node.op_type
    if node.domain not in ("", "ai.onnx") and operator not in CONTRIBUTED:
        operator = f"{node.domain}.{operator}"
    outputs = [within.get(name, name) for name in node.output]
    attributes = {each.name: _attribute(each) for each in node.attribute}
    made = Node(operator, label, tuple(within.get(name, name) for name in node.input), outputs[0], attributes)
    if "." in operator:
        yield made
        return
    if any(name and name not in t.types for name in (*outputs[:1], *made.inputs)):
        if operator in OPERATORS:
            raise ProgramError(
                f"node '{label}' ({node.op_type}) has an output whose shape is not known ahead of time",
                "Shapes must follow from those of the inputs.",
            )
        yield made
        return
    if all(name in t.types and not t.types[name].size for name in outputs if name):
        return
    known = {outputs[0], *t.constants}
    for each in translate(t, made, outputs):
        known.update((each.output, *each.more))
        yield each
    for index, name in enumerate(outputs):
        if name and name not in known and name not in t.constants and (name in read or index == 0):
            raise made.refuse(f"output {index} is not covered")


def _store_as_float(array: Array) -> Array:
    return (
        np.ascontiguousarray(array, np.float32).reshape(array.shape)
        if stored(array.dtype.name) == FLOAT
        else array
    )


def _without_unused(network: Network) -> Network:
    """Drop nodes whose results nothing reads, or have no elements."""

    def has_elements(node: Node) -> bool:
        names = (name for name in (node.output, *node.more) if name in network.types)
        sizes = [network.types[name].size for name in names]
        return any(sizes) or not sizes

    return replace(network, nodes=tuple(filter(has_elements, network.nodes))).without_unread()


def _attribute(attribute: Any) -> Any:
    from onnx import helper, numpy_helper

    value = helper.get_attribute_value(attribute)
    if attribute.type == attribute.TENSOR:
        return numpy_helper.to_array(value)
    if isinstance(value, list | tuple):
        return [each.decode() if isinstance(each, bytes) else each for each in value]
    return value.decode() if isinstance(value, bytes) else value


def _check(network: Network) -> None:
    """Refuse types that are not covered."""
    for name in network.inputs:
        value = network.types.get(name)
        if value is None or value.dtype not in PORTS:
            raise ProgramError(
                f"input '{name}' is of type {value.dtype if value else 'unknown'}, which is not covered",
                f"Inputs are of {', '.join(PORTS)}.",
            )
    for node in network.nodes:
        value = network.types.get(node.output)
        if value is not None and value.dtype not in PORTS and node.operator != VIEW:
            raise node.refuse(f"results of type {value.dtype} are not covered")
