"""Extents that depend on data: bounded while a model is compiled, and counted while it runs.

Compress, NonMaxSuppression, NonZero and Unique find elements. A library has room for as many as can be found
at most, and counts those that are found. What is behind them repeats the last one, so that indices which are
computed of it stay within their tensors. Operators that compute each element by itself pass the extent on;
others get what is behind replaced by a number that changes nothing, or are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from planish.core import ProgramError
from planish.network.ir import Array, Shape, TensorType
from planish.network.onnx.translator import attributes_of, tensor_types, type_of
from planish.network.python_kernels.detection import COMPACT, FOUND_SHAPE, MASK

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

FINDERS = ("Compress", "NonMaxSuppression", "NonZero", "Unique")
"""Operators whose results have extents that depend on data."""


@dataclass(frozen=True)
class Extent:
    """An extent that depends on data.

    Args:
        dimension: which one.
        count: name of the tensor of one number that it is.
    """

    dimension: int
    count: str


class _Result(NamedTuple):
    """A result of an operator that finds elements: the shape of most of them, and which extent is counted."""

    shape: Shape
    dtype: str
    dimension: int | None


@dataclass(frozen=True)
class _Finder:
    """A node that finds elements, while it is not in its model."""

    node: NodeProto
    results: Sequence[_Result]


class DataDependentNodes:
    """Nodes that find elements: they are not in their model while its shapes are inferred.

    Their results are inputs of the model then, with the shapes of as many elements as can be found.

    Args:
        maps_elements: whether an operator computes each element of its result by itself.
    """

    def __init__(self, maps_elements: Callable[[str], bool]) -> None:
        self._maps_elements = maps_elements
        self._finders: list[_Finder] = []
        self._kept: set[str] = set()
        self._constants: dict[str, TensorProto] = {}

    def take_out(self, model: ModelProto) -> bool:
        """Take nodes out whose operands have known shapes, in place; return whether there were any.

        Raises:
            ProgramError: the number of elements is read as a value.
        """
        from onnx import numpy_helper

        graph = model.graph
        nodes = [node for node in graph.node if node.op_type in FINDERS]
        if not nodes:
            return False
        constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
        if _select_by_constants(graph, constants):
            return True
        types, found = _known_types(graph), list[_Finder]()
        for node in nodes:
            if (results := _results(node, types, constants)) is not None:
                found.append(_Finder(_described(node, constants), results))
                # Results that are left out are computed all the same.
                found[-1].node.output.extend([""] * (len(results) - len(node.output)))
        _check_shape_values(graph, {name for each in found for name in each.node.output if name})
        for port in graph.output:
            # What an exporter named an open extent is a bound from now on.
            if not all(dim.HasField("dim_value") for dim in port.type.tensor_type.shape.dim):
                port.type.tensor_type.ClearField("shape")
        taken = {each.node.output[0] for each in found}
        for node in [each for each in nodes if each.output[0] in taken]:
            graph.node.remove(node)
        for finder in found:
            self._declare_results(graph, finder)
            if prod(finder.results[0].shape):
                self._finders.append(finder)
                self._keep_operands(graph, finder.node)
        return bool(found)

    def _declare_results(self, graph: GraphProto, finder: _Finder) -> None:
        """Make inputs of results; those that never have elements are constant."""
        from onnx import helper, numpy_helper

        for name, result in zip(finder.node.output, finder.results, strict=False):
            if name and prod(result.shape):
                kind = helper.np_dtype_to_tensor_dtype(np.dtype(result.dtype))
                info = helper.make_tensor_value_info(name, kind, result.shape)
                graph.input.append(info)
                for port in (each for each in graph.output if each.name == name):
                    port.CopyFrom(info)
            elif name:
                nothing = np.zeros(result.shape, result.dtype)
                graph.initializer.append(numpy_helper.from_array(nothing, name))

    def _keep_operands(self, graph: GraphProto, node: NodeProto) -> None:
        """Make outputs of operands, which no other node may read, and remember constants likewise."""
        from onnx import ValueInfoProto

        self._constants |= {each.name: each for each in graph.initializer if each.name in node.input}
        known = {each.name for each in (*graph.output, *graph.input, *graph.initializer)}
        for name in dict.fromkeys(node.input):
            if name and name not in known:
                self._kept.add(name)
                graph.output.append(ValueInfoProto(name=name))

    def put_back(self, model: ModelProto) -> Mapping[str, str]:
        """Put the nodes back, in place, with the shapes of what they find.

        Returns:
            Outputs whose shapes depend on data, each with the output that receives its shape.

        Raises:
            ProgramError: an operator computes with all elements of a tensor, and no number changes nothing.
        """
        if not self._finders:
            return {}
        graph, extents = model.graph, dict[str, Extent]()
        inputs = {name for finder in self._finders for name in finder.node.output}
        for listed, names in ((graph.input, inputs), (graph.output, self._kept)):
            kept = [each for each in listed if each.name not in names]
            graph.value_info.extend(each for each in listed if each.name in names and each.HasField("type"))
            del listed[:]
            listed.extend(kept)
        known = {each.name for each in graph.initializer}
        graph.initializer.extend(each for name, each in self._constants.items() if name not in known)
        nodes = list(graph.node)
        for finder in self._finders:
            count = f"{finder.node.output[0]} count"
            _declare(graph, count, TensorType((), "int64"))
            for name, result in zip(finder.node.output, finder.results, strict=False):
                if name and result.dimension is not None:
                    extents[name] = Extent(result.dimension, count)
            finder.node.output.append(count)
            nodes.append(finder.node)
        passing = _Passing(graph, extents, self._maps_elements)
        made = [each for node in _in_order(graph, nodes) for each in passing.nodes(node)]
        shapes = _add_shapes(graph, made, extents)
        del graph.node[:]
        graph.node.extend(made)
        return shapes


def _known_types(graph: GraphProto) -> dict[str, TensorType]:
    return dict(tensor_types(graph)) | {each.name: type_of(each) for each in graph.initializer}


def _declare(graph: GraphProto, name: str, value: TensorType) -> None:
    from onnx import helper

    kind = helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype))
    graph.value_info.append(helper.make_tensor_value_info(name, kind, value.shape))


def _results(
    node: NodeProto, types: Mapping[str, TensorType], constants: Mapping[str, Array]
) -> Sequence[_Result] | None:
    """Return the results with as many elements as can be found; None where a shape is not known."""
    if any(name and name not in types for name in node.input):
        return None
    first, axis = types[node.input[0]], attributes_of(node).get("axis")
    match node.op_type:
        case "NonZero":
            if not first.shape:
                raise _refusal(node, "an operand without dimensions is not covered")
            return [_Result((len(first.shape), first.size), "int64", 1)]
        case "NonMaxSuppression":
            batches, classes, boxes = types[node.input[1]].shape
            most = _number(node, constants, 2)
            rows = batches * classes * max(0, min(int(most or 0), boxes))
            return [_Result((rows, 3), "int64", 0)]
        case "Compress":
            d = 0 if axis is None else axis % len(first.shape)
            shape = (first.size,) if axis is None else first.shape
            rows = min(shape[d], types[node.input[1]].size)
            return [_Result((*shape[:d], rows, *shape[d + 1 :]), first.dtype, d)]
        case _:
            if axis is not None or not attributes_of(node).get("sorted", 1):
                raise _refusal(node, "an axis, or an order of first occurrence, is not covered")
            counted, whole = _Result((first.size,), "int64", 0), _Result((first.size,), "int64", None)
            return [counted._replace(dtype=first.dtype), counted, whole, counted]


def _select_by_constants(graph: GraphProto, constants: Mapping[str, Array]) -> bool:
    """Gather what a constant condition selects, in place; return whether there was one."""
    from onnx import helper, numpy_helper

    if not any(node.op_type == "Compress" and node.input[1] in constants for node in graph.node):
        return False
    nodes = list["NodeProto"]()
    for node in graph.node:
        if node.op_type != "Compress" or node.input[1] not in constants:
            nodes.append(node)
            continue
        x, axis, chosen = node.input[0], attributes_of(node).get("axis"), f"{node.output[0]} chosen"
        index = np.flatnonzero(constants[node.input[1]]).astype(np.int64)
        graph.initializer.append(numpy_helper.from_array(index, chosen))
        if axis is None:
            flat = numpy_helper.from_array(np.array([-1]), f"{node.output[0]} all")
            graph.initializer.append(flat)
            x = f"{node.output[0]} flat"
            nodes.append(helper.make_node("Reshape", [node.input[0], flat.name], [x], x))
        nodes.append(helper.make_node("Gather", [x, chosen], node.output, node.name, axis=axis or 0))
    del graph.node[:]
    graph.node.extend(nodes)
    return True


def _number(node: NodeProto, constants: Mapping[str, Array], index: int) -> float | None:
    """Return a constant input of one number; None where it is left out."""
    if index >= len(node.input) or not node.input[index]:
        return None
    if node.input[index] not in constants:
        raise _refusal(node, f"input {index} is computed, which is not covered")
    return constants[node.input[index]].reshape(()).item()


def _described(node: NodeProto, constants: Mapping[str, Array]) -> NodeProto:
    """Return a node with its constant operands as attributes."""
    from onnx import helper

    if node.op_type != "NonMaxSuppression":
        return deepcopy(node)
    limits = {"most": _number(node, constants, 2), "overlap": _number(node, constants, 3)}
    limits["threshold"] = _number(node, constants, 4)
    given: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    centered = attributes_of(node).get("center_point_box", 0)
    return helper.make_node(
        node.op_type, node.input[:2], node.output, node.name, center_point_box=centered, **given
    )


def _refusal(node: NodeProto, why: str) -> ProgramError:
    what = f"node '{node.name or node.output[0]}' ({node.op_type}): {why}"
    return ProgramError(what, "Cut the model before it, and compute the rest elsewhere.")


def _in_order(graph: GraphProto, nodes: Sequence[NodeProto]) -> Iterator[NodeProto]:
    """Return nodes in an order in which they can be computed."""
    done = {"", *(each.name for each in (*graph.input, *graph.initializer))}
    while nodes:
        later = list["NodeProto"]()
        for node in nodes:
            if done.issuperset(node.input):
                done.update(node.output)
                yield node
            else:
                later.append(node)
        assert len(later) < len(nodes), "a graph has no circles"
        nodes = later


# Shapes that are read as values

_OF_SHAPES = (
    "Add", "Cast", "Concat", "ConstantOfShape", "Div", "Equal", "Gather", "Identity", "Max", "Min", "Mul",
    "ReduceProd", "Slice", "Split", "Squeeze", "Sub", "Unsqueeze", "Where",
)  # fmt: skip
"""Operators that compute shapes of shapes."""


def _check_shape_values(graph: GraphProto, outputs: set[str]) -> None:
    """Refuse shapes of what is found that are used otherwise than as shapes: they are folded to bounds."""
    dependent, shapes = set(outputs), set[str]()
    for node in graph.node:
        if node.op_type in ("Shape", "Size") and node.input[0] in dependent:
            shapes.update(node.output)
        elif not shapes.isdisjoint(node.input):
            if node.op_type in ("Expand", "Reshape") and node.input[0] not in shapes:
                dependent.update(node.output)
            elif node.op_type in _OF_SHAPES and dependent.isdisjoint(node.input):
                shapes.update(node.output)
            else:
                raise _refusal(node, "it computes with the number of elements that were found")
        elif not dependent.isdisjoint(node.input):
            dependent.update(node.output)
    if not shapes.isdisjoint(each.name for each in graph.output):
        raise ProgramError("an output is the number of elements that were found, which is not covered")


# Extents of results

_NEUTRAL: Mapping[str, float] = {
    "ReduceL1": 0, "ReduceL2": 0, "ReduceSum": 0, "ReduceSumSquare": 0, "ReduceProd": 1,
    "ReduceMax": -np.inf, "ReduceMin": np.inf, "ArgMax": -np.inf, "ArgMin": np.inf, "Compress": 0,
    "NonZero": 0,
}  # fmt: skip
"""Number that changes nothing in the result of an operator."""
_REDUCTIONS = ("Reduce", "Arg")


class _Passing:
    """Passes extents on from operands to results.

    Args:
        graph: whose shapes are known.
        extents: by tensor; those of results are added.
        maps_elements: whether an operator computes each element by itself.
    """

    def __init__(
        self, graph: GraphProto, extents: dict[str, Extent], maps_elements: Callable[[str], bool]
    ) -> None:
        from onnx import numpy_helper

        self.graph, self.extents, self.maps_elements = graph, extents, maps_elements
        self.types = _known_types(graph)
        self.constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}

    def nodes(self, node: NodeProto) -> Iterator[NodeProto]:
        """Return a node, with what it needs before it; what it computes has its extents from now on."""
        operands = {i: self.extents[name] for i, name in enumerate(node.input) if name in self.extents}
        if not operands:
            yield node
            return
        if len({extent.count for extent in operands.values()}) > 1:
            raise _refusal(node, "its operands have different extents that depend on data")
        if node.op_type == "ScatterND" and {1, 2}.issuperset(operands):
            # It writes only what was found.
            node.input.append(operands[1].count)
            yield node
            return
        if node.op_type == "Slice" and (limit := self._limit(node, operands)) is not None:
            yield from self._first_ones(node, operands[0], limit)
            return
        dimensions = {self._dimension(node, i, extent.dimension) for i, extent in operands.items()}
        if dimensions == {None}:
            yield from self._masked(node, operands)
            return
        if len(dimensions) > 1:
            raise _refusal(node, "an extent of its operands depends on data, and is none of its result")
        (dimension,) = dimensions
        assert dimension is not None
        for name in node.output:
            if name:
                self.extents[name] = Extent(dimension, next(iter(operands.values())).count)
        yield node

    def _masked(self, node: NodeProto, operands: Mapping[int, Extent]) -> Iterator[NodeProto]:
        """Return a node on an operand in which nothing that was not found changes the result."""
        from onnx import helper

        value = _NEUTRAL.get(node.op_type)
        index = 1 if node.op_type == "Compress" else 0
        if value is None or set(operands) != {index}:
            raise _refusal(node, "it computes with all elements, of which there are as many as data have")
        name = node.input[index]
        masked, kind = f"{node.output[0]} mask", self.types[name]
        if np.isinf(value) and kind.dtype.startswith(("int", "uint")):
            limits = np.iinfo(kind.dtype)
            value = limits.min if value < 0 else limits.max
        _declare(self.graph, masked, kind)
        self.types[masked] = kind
        extent = operands[index]
        yield helper.make_node(
            MASK, [name, extent.count], [masked], node.name, dimension=extent.dimension, value=value
        )
        node.input[index] = masked
        yield node

    def _limit(self, node: NodeProto, operands: Mapping[int, Extent]) -> int | None:
        """Return how many elements a slice of the first ones has at most; None for other slices."""
        if 0 not in operands:
            return None
        starts, ends, axes, steps = (self._numbers(node, index) for index in (1, 2, 3, 4))
        rank = len(self.types[node.input[0]].shape)
        axes = list(range(len(starts or ()))) if axes is None else axes
        if [d % rank for d in axes] != [operands[0].dimension] or starts != [0] or steps not in (None, [1]):
            return None
        return ends[0] if ends is not None and ends[0] >= 0 else None

    def _first_ones(self, node: NodeProto, extent: Extent, limit: int) -> Iterator[NodeProto]:
        """Return a slice of the first elements, and how many these are."""
        from onnx import helper, numpy_helper

        most, count = f"{node.output[0]} most", f"{node.output[0]} count"
        self.graph.initializer.append(numpy_helper.from_array(np.array(limit, np.int64), most))
        _declare(self.graph, count, TensorType((), "int64"))
        self.extents[node.output[0]] = Extent(extent.dimension, count)
        yield helper.make_node("Min", [extent.count, most], [count], node.name)
        yield node

    def _dimension(self, node: NodeProto, index: int, dimension: int) -> int | None:  # noqa: C901, PLR0911, PLR0912 (a rule each)
        """Return the dimension of the result that one of an operand becomes; None where it is none."""
        shape, out = self.types[node.input[index]].shape, self.types[node.output[0]].shape
        attributes, operator, rank = attributes_of(node), node.op_type, len(shape)
        axis = attributes.get("axis", 0)
        if self.maps_elements(operator):
            return dimension + len(out) - rank
        match operator:
            case "Transpose":
                return list(attributes.get("perm") or range(rank)[::-1]).index(dimension)
            case "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Expand" if index == 0:
                return _same_elements_before(shape, out, dimension)
            case "Gather" if index == 1:
                return axis % len(self.types[node.input[0]].shape) + dimension
            case "Gather":
                between = len(self.types[node.input[1]].shape) - 1 if dimension > axis % rank else 0
                return None if dimension == axis % rank else dimension + between
            case "GatherND" if index == 1 and not attributes.get("batch_dims"):
                return dimension if dimension < rank - 1 else None
            case "Slice" if index == 0:
                axes = self._numbers(node, 3)
                axes = range(len(self._numbers(node, 1) or ())) if axes is None else axes
                return None if dimension in {d % rank for d in axes} else dimension
            case "Concat" | "Split" if index == 0 or operator == "Concat":
                return None if axis % rank == dimension else dimension
            case "Softmax" | "LogSoftmax":
                return None if attributes.get("axis", -1) % rank == dimension else dimension
            case "MatMul":
                return len(out) - 2 if index == 0 and dimension == rank - 2 and len(out) > 1 else None
            case "Gemm" if index == 2:
                return dimension + 2 - rank
            case "Gemm":
                return 0 if index == 0 and dimension == 0 and not attributes.get("transA") else None
            case "Compress" if index == 0 and attributes.get("axis") not in (None, dimension):
                return None
            case _ if operator.startswith(_REDUCTIONS) and index == 0:
                return self._kept(node, attributes, rank, dimension)
            case _:
                return None

    def _numbers(self, node: NodeProto, index: int) -> list[int] | None:
        if index >= len(node.input) or not node.input[index]:
            return None
        return [int(n) for n in self.constants[node.input[index]].reshape(-1)]

    def _kept(self, node: NodeProto, attributes: Mapping[str, Any], rank: int, dimension: int) -> int | None:
        """Return the dimension behind a reduction."""
        given = attributes.get("axes", self._numbers(node, 1))
        if node.op_type.startswith("Arg"):
            given = [attributes.get("axis", 0)]
        reduced = {d % rank for d in given} if given else set(range(rank))
        if dimension in reduced:
            return None
        gone = 0 if attributes.get("keepdims", 1) else sum(d < dimension for d in reduced)
        return dimension - gone


def _same_elements_before(shape: Shape, out: Shape, dimension: int) -> int | None:
    """Return the dimension of a view that has the same elements before it, and the same extent."""
    for d, extent in enumerate(out):
        if extent == shape[dimension] and prod(out[:d]) == prod(shape[:dimension]):
            return d
    return None


# Outputs


def _add_shapes(
    graph: GraphProto, nodes: list[NodeProto], extents: Mapping[str, Extent]
) -> Mapping[str, str]:
    """Add the shapes of outputs to a model's outputs, and nodes that make their elements contiguous."""
    from onnx import helper

    found, types = dict[str, str](), _known_types(graph)
    for port in [each for each in graph.output if each.name in extents]:
        name, extent = port.name, extents[port.name]
        shape = types[name].shape
        if prod(shape[: extent.dimension]) > 1:
            wide = f"{name} with room"
            _declare(graph, wide, types[name])
            for node in nodes:
                for listed in (node.input, node.output):
                    listed[:] = [wide if each == name else each for each in listed]
            nodes.append(
                helper.make_node(COMPACT, [wide, extent.count], [name], name, dimension=extent.dimension)
            )
        found[name] = f"{name} shape"
        facts: dict[str, Any] = {"dimension": extent.dimension, "most": shape}
        nodes.append(helper.make_node(FOUND_SHAPE, [extent.count], [found[name]], found[name], **facts))
        _declare(graph, found[name], TensorType((len(shape),), "int64"))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype("int64"))
    graph.output.extend(
        helper.make_tensor_value_info(made, kind, (len(types[name].shape),)) for name, made in found.items()
    )
    return found
