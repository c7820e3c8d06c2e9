"""Registry of operators: how each is translated from ONNX, and what computes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import add, and_, eq, ge, gt, invert, le, lt, mul, neg, or_, sub, xor

import numpy as np

from planish.network.ir import COPY_PART, JOIN, PART, STRIDED_SLICE, VIEW, Network, Node
from planish.network.onnx import arithmetic_rules as computing
from planish.network.onnx import movement_rules as moving
from planish.network.onnx.translator import FLOAT, Rule, Translator
from planish.network.operators import contractions, elementwise, movement, packed, reductions, winograd
from planish.network.operators import tiled_convolutions as tiled
from planish.network.operators.builder import KernelBuilder
from planish.network.operators.elementwise import WriteValue, fold, form
from planish.network.python_kernels import (
    copying,
    detection,
    quantizing,
    recurrent,
    resizing,
    scalars,
    selection,
)
from planish.network.python_kernels import pointwise as mapping
from planish.network.python_kernels.pointwise import Scalar, pointwise
from planish.network.python_kernels.program import PythonKernel
from planish.network.python_kernels.selection import integer_reduction

Build = Callable[[Network, Node], KernelBuilder]
Write = Callable[[Network, Node], PythonKernel]


@dataclass(frozen=True)
class Operator:
    """Operator of a network.

    Args:
        rule: translates its nodes from ONNX; None where they stay as they are.
        build: builds a kernel of `loops` that begins with it.
        value: writes it as a value of `loops`, where it is element-wise.
        reads_once: whether that value has each operand once, so that a computed one needs no name.
        write: writes it as a Python kernel.
        write_integers: likewise, where operands are integers.
        of_nothing: its result on no elements, where it has one.
        maps_elements: whether each element of its result is computed of those at its position alone.
    """

    rule: Rule | None = None
    build: Build | None = None
    value: WriteValue | None = None
    reads_once: bool = False
    write: Write | None = None
    write_integers: Write | None = None
    of_nothing: float | None = None
    maps_elements: bool = False


def _value(
    template: str, integers: Scalar | None = None, rule: Rule | None = None, **usual: float
) -> Operator:
    """Describe an element-wise operator by a template of its value, and its attributes' defaults."""
    once = all(template.count(f"{{{index}}}") <= 1 for index in range(3))
    write = pointwise(integers) if integers else None
    return Operator(rule, value=form(template, **usual), reads_once=once, write_integers=write)


def _folded(template: str, integers: Scalar) -> Operator:
    """Describe an element-wise operator of any number of operands."""
    return Operator(value=fold(template), reads_once=True, write_integers=pointwise(integers))


def _mapped(function: Scalar) -> Operator:
    """Describe an element-wise operator that is a Python kernel for floats and integers."""
    return Operator(write=pointwise(function), write_integers=pointwise(function), maps_elements=True)


def _reduced(of_nothing: float, integers: Write | None = None) -> Operator:
    return Operator(build=reductions.build_reduction, write_integers=integers, of_nothing=of_nothing)


_INFINITE = float("inf")
_VIEW, _COPY = Operator(moving.translate_view), Operator(moving.translate_copy)

OPERATORS: Mapping[str, Operator] = {
    "Abs": _value("abs({0})", abs),
    "Acos": _mapped(scalars.arccosine),
    "Acosh": _mapped(scalars.inverse_hyperbolic_cosine),
    "Add": _value("({0}+{1})", add),
    "And": _value("({0}*{1})"),
    "ArgMax": Operator(write=selection.write_arg_extreme),
    "ArgMin": Operator(write=selection.write_arg_extreme),
    "Asin": _mapped(scalars.arcsine),
    "Asinh": _mapped(scalars.inverse_hyperbolic_sine),
    "Atan": _mapped(scalars.arctangent),
    "Atanh": _mapped(scalars.inverse_hyperbolic_tangent),
    "AveragePool": Operator(build=reductions.build_pooling),
    "BatchNormalization": Operator(computing.translate_batch_normalization),
    "BiasGelu": Operator(computing.translate_gelu),
    "BitShift": Operator(write=mapping.write_bit_shift, maps_elements=True),
    "BitwiseAnd": _mapped(and_),
    "BitwiseNot": _mapped(invert),
    "BitwiseOr": _mapped(or_),
    "BitwiseXor": _mapped(xor),
    "Cast": Operator(computing.translate_cast, write_integers=mapping.write_cast, maps_elements=True),
    "CastLike": Operator(computing.translate_cast),
    "Ceil": _mapped(np.ceil),
    "Celu": _value("(max({0},0)+min({alpha}*(exp({0}/{alpha})-1),0))", alpha=1.0),
    "Clip": Operator(
        computing.translate_clip,
        value=elementwise.clip,
        reads_once=True,
        write_integers=pointwise(scalars.within),
    ),
    detection.COMPACT: Operator(write=detection.write_compact),
    "Compress": Operator(moving.translate_found, write=detection.write_compress),
    "Concat": Operator(moving.translate_concatenation, build=movement.build_concatenation),
    "ConstantOfShape": Operator(moving.translate_constant_of_shape),
    "Conv": Operator(build=contractions.build_convolution),
    "ConvTranspose": Operator(
        computing.translate_transposed_convolution, build=contractions.build_transposed_convolution
    ),
    copying.COPY: Operator(write=copying.write_copy),
    COPY_PART: _value("{0}"),
    "Cos": _mapped(scalars.cosine),
    "Cosh": _mapped(scalars.hyperbolic_cosine),
    "CumSum": Operator(write=selection.write_cumulative_sum),
    "DepthToSpace": Operator(moving.translate_depth_to_space),
    "DequantizeLinear": Operator(computing.translate_dequantize),
    "Div": _value("({0}/{1})", scalars.divide),
    "Dropout": Operator(moving.translate_dropout, maps_elements=True),
    "Einsum": Operator(build=contractions.build_einsum),
    "Elu": _value("where({0} < 0,{alpha}*(exp({0})-1),{0})", alpha=1.0),
    "Equal": _value("where({0} == {1},1,0)", eq),
    "Erf": _value("erf({0})"),
    "Exp": _value("exp({0})"),
    "Expand": _value("{0}", rule=moving.translate_copy),
    "EyeLike": Operator(moving.translate_shape),
    "FastGelu": Operator(computing.translate_gelu),
    "Flatten": _VIEW,
    "Floor": _mapped(np.floor),
    detection.FOUND_SHAPE: Operator(write=detection.write_found_shape),
    "GRU": Operator(computing.translate_recurrence, write=recurrent.write_recurrence),
    "Gather": Operator(moving.translate_gather, build=movement.build_gather),
    "GatherElements": Operator(write=copying.write_gather_elements),
    "GatherND": Operator(write=copying.write_gather_nd),
    "GatherRows": Operator(write=copying.write_gather),
    "Gelu": Operator(value=elementwise.gelu),
    "Gemm": Operator(build=contractions.build_gemm),
    "GlobalAveragePool": Operator(build=reductions.build_reduction),
    "GlobalMaxPool": Operator(build=reductions.build_reduction),
    "Greater": _value("where({0} > {1},1,0)", gt),
    "GreaterOrEqual": _value("where({0} >= {1},1,0)", ge),
    "GroupNormalization": Operator(computing.translate_group_normalization),
    "HardSigmoid": _value("max(0,min(1,{alpha}*{0}+{beta}))", alpha=0.2, beta=0.5),
    "HardSwish": _value("({0}*max(0,min(1,{0}*0.16666667+0.5)))"),
    "Hardmax": Operator(computing.translate_hardmax),
    "Identity": Operator(moving.translate_view, maps_elements=True),
    selection.INDEXED_POOL: Operator(write=selection.write_indexed_pooling),
    "InstanceNormalization": Operator(build=reductions.build_instance_normalization),
    "IsInf": Operator(value=elementwise.is_infinite),
    "IsNaN": _value("where({0} != {0},1,0)"),
    "Join": Operator(write=copying.write_concatenation),
    "LRN": Operator(computing.translate_local_response),
    "LSTM": Operator(computing.translate_recurrence, write=recurrent.write_recurrence),
    "LayerNormalization": Operator(
        computing.translate_layer_normalization, build=reductions.build_layer_normalization
    ),
    "LeakyRelu": _value("where({0} < 0,{alpha}*{0},{0})", alpha=0.01),
    "Less": _value("where({0} < {1},1,0)", lt),
    "LessOrEqual": _value("where({0} <= {1},1,0)", le),
    "Log": _value("log({0})"),
    "LogSoftmax": Operator(build=reductions.build_softmax),
    "LpNormalization": Operator(computing.translate_lp_normalization),
    detection.MASK: Operator(write=detection.write_mask),
    "MatMul": Operator(computing.translate_product, build=contractions.build_product, of_nothing=0.0),
    "Max": _folded("max({0},{1})", max),
    "MaxPool": Operator(computing.translate_pool, build=reductions.build_pooling),
    "Mean": Operator(computing.translate_mean),
    "Min": _folded("min({0},{1})", min),
    "Mish": _value("({0}*tanh(max({0},0)+log(1+exp(neg(abs({0}))))))"),
    "Mod": Operator(write=mapping.write_modulo, write_integers=mapping.write_modulo, maps_elements=True),
    "Mul": _value("({0}*{1})", mul),
    "Neg": _value("neg({0})", neg),
    "NonMaxSuppression": Operator(moving.translate_found, write=detection.write_suppressed_boxes),
    "NonZero": Operator(moving.translate_found, write=detection.write_nonzero),
    "Not": _value("(1-{0})"),
    "OneHot": Operator(write=copying.write_one_hot),
    "Or": _value("max({0},{1})"),
    "PRelu": _value("where({0} < 0,{1}*{0},{0})"),
    packed.PACKED_CONV: Operator(build=packed.build_packed_convolution),
    packed.PACKED_PRODUCT: Operator(build=packed.build_packed_product),
    "Pad": Operator(moving.translate_pad, build=movement.build_padding),
    "Pow": Operator(value=elementwise.power, write_integers=mapping.write_power),
    "Power": _mapped(scalars.float_power),
    "QuantizeLinear": Operator(computing.translate_quantize),
    quantizing.QUANTIZE: Operator(write=quantizing.write_quantize),
    "QuickGelu": _value("({0}*sigmoid({alpha}*{0}))", alpha=1.702),
    "RMSNormalization": Operator(computing.translate_rms_normalization),
    "RNN": Operator(computing.translate_recurrence, write=recurrent.write_recurrence),
    "Reciprocal": _value("(1/{0})"),
    "ReduceL1": _reduced(0.0, integer_reduction(0, add, abs)),
    "ReduceL2": _reduced(0.0),
    "ReduceLogSum": Operator(computing.translate_logarithm, of_nothing=-_INFINITE),
    "ReduceLogSumExp": Operator(computing.translate_logarithm, of_nothing=-_INFINITE),
    "ReduceMax": _reduced(-_INFINITE, integer_reduction(-(2**63), max)),
    "ReduceMean": Operator(build=reductions.build_reduction, write_integers=integer_reduction(0, add)),
    "ReduceMin": _reduced(_INFINITE, integer_reduction(2**63 - 1, min)),
    "ReduceProd": _reduced(1.0, integer_reduction(1, mul)),
    "ReduceSum": _reduced(0.0, integer_reduction(0, add)),
    "ReduceSumSquare": _reduced(0.0, integer_reduction(0, add, scalars.square)),
    "Relu": _value("relu({0})"),
    "Reshape": _VIEW,
    "Resize": Operator(moving.translate_resize, build=movement.build_resize),
    resizing.RESIZED: Operator(write=resizing.write_resized_axis),
    "ReverseSequence": Operator(write=selection.write_reversed_sequences),
    "Round": _mapped(np.rint),
    "ScatterElements": Operator(write=copying.write_scatter_elements),
    "ScatterND": Operator(write=copying.write_scatter_nd),
    "Selu": _value("({gamma}*where({0} > 0,{0},{alpha}*(exp({0})-1)))", alpha=1.6732632, gamma=1.0507010),
    "Shape": Operator(moving.translate_shape),
    "Shrink": Operator(value=elementwise.shrink),
    "Sigmoid": _value("sigmoid({0})"),
    "Sign": _value("where({0} > 0,1,where({0} < 0,-1,{0}))", scalars.sign),
    "SimplifiedLayerNormalization": Operator(computing.translate_rms_normalization),
    "Sin": _mapped(scalars.sine),
    "Sinh": _mapped(scalars.hyperbolic_sine),
    "Size": Operator(moving.translate_shape),
    "SkipLayerNormalization": Operator(computing.translate_skip_normalization),
    "SkipSimplifiedLayerNormalization": Operator(computing.translate_skip_normalization),
    "Slice": Operator(moving.translate_slice),
    "Softmax": Operator(build=reductions.build_softmax),
    "Softplus": _value("(max({0},0)+log(1+exp(neg(abs({0})))))"),
    "Softsign": _value("({0}/(1+abs({0})))"),
    "SpaceToDepth": Operator(moving.translate_space_to_depth),
    "Split": Operator(moving.translate_split),
    "Sqrt": _value("sqrt({0})"),
    "Squeeze": _VIEW,
    STRIDED_SLICE: Operator(build=movement.build_strided_slice),
    "Sub": _value("({0}-{1})", sub),
    "Sum": _folded("({0}+{1})", add),
    "Swish": _value("({0}*sigmoid({alpha}*{0}))", alpha=1.0),
    tiled.SUM: Operator(build=tiled.build_tap_sum),
    contractions.GATED: Operator(build=contractions.build_gated_convolution),
    "Tan": _mapped(scalars.tangent),
    "Tanh": _value("tanh({0})"),
    "ThresholdedRelu": _value("where({0} > {alpha},{0},0)", alpha=1.0),
    "Tile": _COPY,
    "TopK": Operator(computing.translate_top_k, write=selection.write_top_k),
    "Transpose": Operator(moving.translate_transpose, build=movement.build_transpose),
    "Trilu": Operator(write=selection.write_triangle),
    "Truth": _value("where({0} != 0,1,0)"),
    "Unique": Operator(moving.translate_found, write=detection.write_unique),
    "Unsqueeze": _VIEW,
    "Upsample": Operator(moving.translate_resize, build=movement.build_resize),
    "Where": _value("where({0} != 0,{1},{2})", scalars.choose, computing.translate_where),
    winograd.INPUT_TRANSFORM: Operator(build=winograd.build_input_transform),
    winograd.OUTPUT_TRANSFORM: Operator(build=winograd.build_output_transform),
    copying.WRAP: Operator(write=copying.write_wrapped_indices),
    "Xor": _value("where({0} != {1},1,0)"),
}
"""Operators by name: those of ONNX that are covered, and those of networks alone."""

_OF_ANY_SIZE = (moving.translate_concatenation, moving.translate_shape, moving.translate_constant_of_shape)
"""Rules that take operands without elements."""


def is_elementwise(operator: str) -> bool:
    """Return whether an operator is a value of `loops` of each element."""
    found = OPERATORS.get(operator)
    return found is not None and found.value is not None


def maps_elements(operator: str) -> bool:
    """Return whether an operator computes each element of its result of those at its position alone."""
    found = OPERATORS.get(operator)
    return found is not None and (found.maps_elements or found.value is not None)


def python_writer(operator: str) -> Write | None:
    """Return what writes an operator as a Python kernel; None where it is none."""
    base, _, kind = operator.partition(" ")
    found = OPERATORS.get(base)
    if found is None:
        return None
    return found.write_integers or found.write if kind else found.write


def has_integers(operator: str) -> bool:
    """Return whether an operator has a kernel for integers, beside the one for floats."""
    found = OPERATORS.get(operator)
    return found is not None and found.write_integers is not None


def is_covered(operator: str) -> bool:
    """Return whether an operator of a network is computed."""
    found = OPERATORS.get(operator)
    computed = found is not None and (found.build or found.value) is not None
    return computed or operator in (VIEW, PART, JOIN) or python_writer(operator) is not None


def translate(translator: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Translate a node of ONNX.

    Args:
        translator: of its network.
        node: as ONNX has it.
        outputs: all of its outputs, in their order; empty for those that are left out.

    Raises:
        ProgramError: it is not covered.
    """
    operator = OPERATORS.get(node.operator, Operator())
    empty = node.has(0) and not translator.types[node.inputs[0]].size
    if empty and operator.rule not in _OF_ANY_SIZE:
        _reduce_nothing(translator, node, operator.of_nothing)
    elif operator.rule is not None:
        yield from operator.rule(translator, node, outputs)
    else:
        yield from translator.typed(node)


def _reduce_nothing(translator: Translator, node: Node, result: float | None) -> None:
    """Make the result of an operator on no elements constant, where it has one."""
    if result is None:
        raise node.refuse("an operand without elements is not covered")
    kind = translator.types[node.output]
    if kind.dtype != FLOAT:
        limits = np.iinfo(kind.dtype)
        result = limits.min if result == -_INFINITE else limits.max if result == _INFINITE else int(result)
    elif node.output in translator.truths:
        result = float(result > 0)
    translator.constant(node.output, np.full(kind.shape, result, kind.dtype))
