"""Application of rewriting passes to ONNX models; those of planish join parallel convolutions or products."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import PlanishError
from planish.levels.graph.feeds import Feed
from planish.levels.graph.model_protos import all_nodes, bodies, names_read
from planish.levels.graph.passes import find_pass

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto, NodeProto, TensorProto
    from onnxscript import ir
    from onnxscript.rewriter import RewriteRuleSet


@dataclass(frozen=True)
class Branch:
    """A node that may be joined with those of the same key.

    Args:
        key: what joined nodes have in common: the value, the attributes, types, and whether there is a bias.
        joined: index of a constant input to the axis along which it is joined with the others'.
        axis: of the result, along which it is cut again.
        width: the result's extent there.
        bias: whether an addition of constants of one dimension, right after it, may be joined too.
    """

    node: NodeProto
    key: Hashable
    joined: Mapping[int, int]
    axis: int
    width: int
    bias: bool = False


Constants = Mapping[str, "TensorProto"]
"""The weights, but those that a caller may replace by an input of his own: name to tensor."""
Describe = Callable[["NodeProto", Constants, int], Branch | None]
"""Returns the branch of a node, by the model's constants and its opset; None where it may not be joined."""


def _attributes(node: NodeProto) -> dict[str, Any]:
    """Return a node's attributes: name to value."""
    from onnx import helper

    return {each.name: helper.get_attribute_value(each) for each in node.attribute}


def _is_standard(node: NodeProto, *operators: str) -> bool:
    """Return whether a node is one of ONNX's own operators."""
    return node.op_type in operators and node.domain in ("", "ai.onnx")


_CHANNELS = 1


def convolution(node: NodeProto, constants: Constants, _opset: int) -> Branch | None:
    """Describe a convolution that may be joined with others along its output channels.

    Kernel sizes, strides, dilations and paddings have to be the same, and all of them have a bias, or none.
    Grouped convolutions are left alone: more output channels would belong to other groups. So are quantized
    ones, whose weights come with scales.
    """
    named = _attributes(node)
    weights = [constants.get(name) for name in node.input[1:]]
    known = [each for each in weights if each is not None]
    if not _is_standard(node, "Conv") or named.get("group", 1) != 1 or len(known) < len(weights):
        return None
    filters, *rest = known
    sides = len(filters.dims) - 2
    window = (
        tuple(filters.dims[2:]),
        tuple(named.get("strides", [1] * sides)),
        tuple(named.get("dilations", [1] * sides)),
        tuple(named.get("pads", [0] * 2 * sides)),
        named.get("auto_pad", b"NOTSET"),
    )
    key = (node.input[0], window, tuple(filters.dims[1:2]), filters.data_type, len(rest))
    return Branch(node, key, dict.fromkeys(range(1, 1 + len(weights)), 0), _CHANNELS, filters.dims[0])


_NEGATIVE_AXES = 11
"""The first opset whose Split counts axes from the end."""


def product(node: NodeProto, constants: Constants, opset: int) -> Branch | None:
    """Describe a product that may be joined with others along its columns.

    A bias is joined where each has one of its own columns' length; products of quantized numbers are other
    operators, and are left alone.
    """
    weights = constants.get(node.input[1]) if len(node.input) > 1 else None
    if weights is None or len(weights.dims) != 2:
        return None
    if _is_standard(node, "MatMul") and opset >= _NEGATIVE_AXES:
        key = (node.input[0], "MatMul", weights.dims[0], weights.data_type)
        return Branch(node, key, {1: 1}, -1, weights.dims[1], bias=True)
    if not _is_standard(node, "Gemm"):
        return None
    named = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0} | _attributes(node)
    columns = 0 if named["transB"] else 1
    key = (node.input[0], "Gemm", weights.dims[1 - columns], weights.data_type, *sorted(named.items()))
    width = weights.dims[columns]
    if len(node.input) < 3 or not node.input[2]:
        return Branch(node, (*key, 0), {1: columns}, 1, width)
    bias = constants.get(node.input[2])
    if bias is None or not bias.dims or bias.dims[-1] != width or max(bias.dims[:-1], default=1) > 1:
        return None
    return Branch(node, (*key, len(bias.dims)), {1: columns, 2: len(bias.dims) - 1}, 1, width)


_POINTWISE = (
    *("Relu", "LeakyRelu", "Elu", "Selu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Softplus"),
    *("Softsign", "Erf", "Gelu", "Clip", "Mish", "Celu"),
)
"""Operators that compute each number by itself: they may come before a split as well as after it."""
_SPLIT_BY_INPUT = 13
"""The first opset whose Split takes the extents as an input."""


def join(model: ModelProto, describe: Describe) -> ModelProto:
    """Join nodes that read the same value, with the functions and biases that follow each of them.

    Returns:
        A new model; the one that was given, where there is nothing to join.
    """
    opset = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)
    given = {value.name for value in model.graph.input}
    constants = {each.name: each for each in model.graph.initializer if each.name not in given}
    groups: defaultdict[Hashable, list[Branch]] = defaultdict(list)
    for node in model.graph.node:
        branch = describe(node, constants, opset)
        if branch is not None:
            groups[branch.key].append(branch)
    several = [group for group in groups.values() if len(group) > 1]
    return _Joining(model, constants, opset).joined(several) if several else model


class _Joining:
    """Puts wide nodes at the indices of the first of those that they stand for."""

    def __init__(self, model: ModelProto, constants: Constants, opset: int) -> None:
        self._model, self._constants, self._opset = model, constants, opset
        self._readers: defaultdict[str, list[NodeProto]] = defaultdict(list)
        for node in model.graph.node:
            for name in node.input:
                self._readers[name].append(node)
        inner = [names_read(body) for node in model.graph.node for body in bodies(node)]
        # What a caller or a body of a loop reads by its name has to stay there.
        self._seen = {value.name for value in model.graph.output}.union(*inner)
        # Those within bodies too, for a body sees the names of the graph around it.
        self._names = Counter(
            name for node in all_nodes(model) for name in (*node.input, *node.output)
        ) + Counter(each.name for each in model.graph.initializer)
        self._placed: dict[str, list[NodeProto]] = {}
        self._gone: set[str] = set()
        self._tensors: list[TensorProto] = []

    def joined(self, groups: Sequence[Sequence[Branch]]) -> ModelProto:
        """Join each group; return a new model."""
        from onnx import ModelProto

        for group in groups:
            self._join(group)
        made = ModelProto()
        made.CopyFrom(self._model)
        del made.graph.node[:], made.graph.initializer[:]
        for node in self._model.graph.node:
            made.graph.node.extend(self._placed.get(node.output[0], []))
            if node.output[0] not in self._gone:
                made.graph.node.append(node)
        made.graph.initializer.extend(self._tensors)
        used = {name for node in all_nodes(made) for name in node.input} | self._seen
        # What is still read, or may be given by a caller.
        made.graph.initializer.extend(
            each
            for each in self._model.graph.initializer
            if each.name in used or each.name not in self._constants
        )
        there = {name for node in made.graph.node for name in node.output}
        shapes = [each for each in made.graph.value_info if each.name in there or each.name not in self._gone]
        del made.graph.value_info[:]
        made.graph.value_info.extend(shapes)
        return made

    def _join(self, group: Sequence[Branch]) -> None:
        import numpy as np
        from onnx import helper

        first, widths = group[0], [branch.width for branch in group]
        nodes = [branch.node for branch in group]
        wide = [self._wide(nodes, first.joined, {})]
        while (following := self._following(nodes, group)) is not None:
            before, (nodes, joined) = nodes[0].output[0], following
            wide.append(self._wide(nodes, joined, {before: wide[-1].output[0]}))
        value, outputs = wide[-1].output[0], [node.output[0] for node in nodes]
        if self._opset < _SPLIT_BY_INPUT:
            split = helper.make_node("Split", [value], outputs, axis=first.axis, split=widths)
        else:
            extents = self._tensor(f"{value}_widths", np.array(widths, np.int64))
            split = helper.make_node("Split", [value, extents], outputs, axis=first.axis)
        self._placed[first.node.output[0]] = [*wide, split]

    def _wide(
        self, nodes: Sequence[NodeProto], joined: Mapping[int, int], renamed: Mapping[str, str]
    ) -> NodeProto:
        """Make one node of several, which reads some values by other names than the first of them."""
        import numpy as np
        from onnx import NodeProto, numpy_helper

        made = NodeProto()
        made.CopyFrom(nodes[0])
        for index, name in enumerate(nodes[0].input):
            if index in joined:
                parts = [numpy_helper.to_array(self._constants[node.input[index]]) for node in nodes]
                made.input[index] = self._tensor(f"{name}_joined", np.concatenate(parts, joined[index]))
            else:
                made.input[index] = renamed.get(name, name)
        made.output[0] = self._name(f"{nodes[0].output[0]}_joined")
        made.name = self._name(f"{nodes[0].name}_joined") if nodes[0].name else ""
        self._gone.update(node.output[0] for node in nodes)
        return made

    def _following(
        self, nodes: Sequence[NodeProto], group: Sequence[Branch]
    ) -> tuple[list[NodeProto], Mapping[int, int]] | None:
        """Find the same function, or an addition of a bias, after each node and nowhere else."""
        values = [node.output[0] for node in nodes]
        readers = [self._readers[name] for name in values]
        if any(len(each) != 1 or name in self._seen for each, name in zip(readers, values, strict=True)):
            return None
        after = [each[0] for each in readers]
        first = after[0]
        alike = all(
            (node.op_type, node.domain, len(node.input)) == (first.op_type, first.domain, len(first.input))
            and list(node.attribute) == list(first.attribute)
            for node in after
        )
        if not alike:
            return None
        if _is_standard(first, *_POINTWISE):
            bounds = [list(node.input[1:]) for node in after]
            # What is computed may come too late: the wide node stands where the first branch was.
            fixed = all(not name or name in self._constants for name in bounds[0])
            return (after, {}) if fixed and all(each == bounds[0] for each in bounds) else None
        if group[0].bias and _is_standard(first, "Add"):
            for index in (0, 1):
                found = [self._constants.get(node.input[index]) for node in after]
                if all(
                    each is not None and tuple(each.dims) == (branch.width,)
                    for each, branch in zip(found, group, strict=True)
                ):
                    return after, {index: 0}
        return None

    def _tensor(self, wanted: str, array: NDArray[Any]) -> str:
        """Add a tensor; return its name."""
        from onnx import numpy_helper

        name = self._name(wanted)
        self._tensors.append(numpy_helper.from_array(array, name))
        return name

    def _name(self, wanted: str) -> str:
        name, number = wanted, 0
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._names[name] += 1
        return name


PASSES = {"combine_parallel_conv": convolution, "combine_parallel_dense": product}
"""Name of a pass, without its library's, to a function that finds the nodes it joins."""


class RewriteError(PlanishError):
    """A pass failed, or what it made is not a model with the same inputs and outputs."""

    exit_code = 3


def rewrite(model: ModelProto, names: Iterable[str]) -> ModelProto:
    """Apply passes in their order; the model that is given stays as it is.

    Raises:
        RewriteError: a pass fails.
    """
    for name in names:
        model = apply_pass(model, name)
    return model


def apply_pass(model: ModelProto, name: str, feeds: Sequence[Feed] = ()) -> ModelProto:
    """Apply one pass; return a new model. `feeds` are inputs for the passes of `NEEDS_INPUTS`.

    Raises:
        RewriteError: it fails, or changes the names of inputs or outputs.
    """
    kind, own = find_pass(name).kind, name.partition(".")[2]
    try:
        # Each library is imported when it is first needed.
        match kind:
            case "onnxoptimizer":
                made = _by_onnxoptimizer(model, own)
            case "onnxscript":
                made = _by_onnxscript(model, own)
            case "planish":
                made = join(model, PASSES[own])
            case _:
                made = _by_intent(model, own, feeds)
    except Exception as error:
        raise RewriteError(f"{name} fails: {type(error).__name__}: {error}".splitlines()[0]) from error
    # By other names the user's own calls would fail.
    if _interface(made) != _interface(model):
        raise RewriteError(f"{name} changes the model's inputs or outputs")
    return made


def _interface(model: ModelProto) -> tuple[list[str], list[str]]:
    # Old models list weights among their inputs; passes may drop them there.
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = sorted(value.name for value in model.graph.input if value.name not in weights)
    return inputs, [value.name for value in model.graph.output]


def _by_onnxoptimizer(model: ModelProto, name: str) -> ModelProto:
    """Call the compiled function: the one around it tries again by files, which it leaves behind."""
    from onnx import ModelProto

    compiled = import_module("onnxoptimizer.onnx_opt_cpp2py_export")
    return ModelProto.FromString(compiled.optimize(model.SerializeToString(), [name]))


NEEDS_INPUTS = frozenset({"intent.int8_static"})
"""The passes that look at what a model computes."""
_MOST = 32
"""Batches of inputs that are looked at."""
_AROUND = ("Add", "Relu", "Clip", "MaxPool", "GlobalAveragePool", "Concat")
"""Operators that stay in 8 bits between convolutions."""
_NARROW = ("Conv", "ConvTranspose", "Gemm", "MatMul")


def _by_intent(model: ModelProto, name: str, feeds: Sequence[Feed]) -> ModelProto:
    """Apply a pass that changes results; `feeds` are inputs of the model, for those of `NEEDS_INPUTS`."""
    from onnx import ModelProto

    if name == "int8":
        return _through_files(model, _dynamic)
    if name == "int8_static":
        if not feeds:
            raise ValueError("there are no inputs to find ranges by")
        return _through_files(model, partial(_static, feeds=feeds))
    from onnxruntime.transformers.float16 import convert_float_to_float16

    copy = ModelProto()
    copy.CopyFrom(model)
    types = {node.op_type for node in model.graph.node}
    wide = sorted(types.difference(_NARROW)) if name == "mixed" else None
    made = convert_float_to_float16(copy, keep_io_types=True, op_block_list=wide)
    # One of each cast that was made for several uses of a value: they have one name.
    firsts: dict[tuple[str, ...], NodeProto] = {}
    for node in made.graph.node:
        firsts.setdefault(tuple(node.output), node)
    del made.graph.node[:]
    made.graph.node.extend(firsts.values())
    return made


def _through_files(model: ModelProto, quantize: Callable[[Path, Path], None]) -> ModelProto:
    """Run a quantizer that reads one file and writes another."""
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        plain = onnx.ModelProto()
        plain.CopyFrom(model)
        del plain.graph.value_info[:]  # exporters leave shapes there that the quantizer takes for wrong
        onnx.save(plain, before)
        quantize(before, after)
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


Change = Callable[["ir.Model"], object]
"""Changes a model; its result says whether it did: by a count, or by its attribute `modified`."""
_opened: list[tuple[ModelProto, ir.Model]] = []
"""The last model on which a rule did not apply: opening a model takes longer than trying a rule."""


def _by_onnxscript(model: ModelProto, name: str) -> ModelProto:
    """Apply a pass; return the given model itself where the pass reports that it changed nothing."""
    from onnxscript import ir

    special = _special().get(name)
    last = _opened.pop() if special is None and _opened else (None, None)
    changed = last[1] if last[0] is model and last[1] else ir.serde.deserialize_model(model)
    result = (special or _rule(name))(changed)
    if result == 0 if isinstance(result, int) else getattr(result, "modified", None) is False:
        if special is None:
            _opened.append((model, changed))
        return model
    return ir.serde.serialize_model(changed)


def _rule(name: str) -> Change:
    """Find a rewrite rule, or set of rules, by its name."""
    from onnxscript.rewriter import RewriteRuleSet
    from onnxscript.rewriter.rules import common

    found: Any = getattr(common, f"{name}_rule", None) or getattr(common, f"{name}_rules")
    # The library exports this one as what makes it.
    rules = found() if name == "fuse_hardswish" else found
    return _tidied(rules if isinstance(rules, RewriteRuleSet) else RewriteRuleSet([rules]))


def _tidied(rules: RewriteRuleSet) -> Change:
    """Apply rules, then remove the nodes that are not used any more; the change returns their count."""
    from onnx_ir.passes.common import RemoveUnusedNodesPass

    def change(model: ir.Model) -> int:
        count = rules.apply_to_model(model)
        if count:
            RemoveUnusedNodesPass()(model)
        return count

    return change


@cache
def _special() -> Mapping[str, Change]:
    """Return all that is not a rewrite rule."""
    import onnx_ir.passes.common as common
    from onnxscript import optimizer
    from onnxscript.rewriter import ort_fusions
    from onnxscript.rewriter.ort_fusions import (
        _core,
        bias_gelu,
        erfgelu,
        fused_matmul_rule_sets,
        gelu,
        rms_normalization,
        shape_optimization,
        skip_normalization,
        softmax,
    )

    return {
        "fold_constants": optimizer.fold_constants_ir,
        "inline": common.InlinePass(),
        "optimize": optimizer.optimize_ir,
        "eliminate_common_subexpressions": common.CommonSubexpressionEliminationPass(),
        "eliminate_identity": common.IdentityEliminationPass(),
        "deduplicate_initializers": common.DeduplicateInitializersPass(),
        "lift_constants": common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        "lift_subgraph_initializers": common.LiftSubgraphInitializersToMainGraphPass(),
        "remove_unused_nodes": common.RemoveUnusedNodesPass(),
        "remove_unused_functions": common.RemoveUnusedFunctionsPass(),
        "optimize_for_ort": ort_fusions.optimize_for_ort,
        "fuse_transformers": _core.fuse_xformers,
        "fuse_erf_gelu": erfgelu.fuse_erfgelu,
        "fuse_gelu": gelu.fuse_gelu,
        "fuse_bias_gelu": bias_gelu.fuse_bias_gelu,
        "fuse_rms_normalization": rms_normalization.fuse_rms_normalization,
        "fuse_skip_layer_normalization": skip_normalization.fuse_skip_layer_normalization,
        "fuse_skip_rms_normalization": skip_normalization.fuse_skip_rms_normalization,
        "fuse_softmax": _tidied(softmax.rules),
        "fuse_matmul": _tidied(fused_matmul_rule_sets.fused_matmul_rule_sets()),
        "optimize_shapes": _tidied(shape_optimization.rules),
    }
