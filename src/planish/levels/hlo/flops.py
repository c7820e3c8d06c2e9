"""FLOPs and bytes of operations, counted by their shapes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Literal, get_args

from planish.levels.hlo.edits import EditableModule, OpInfo
from planish.levels.hlo.edits.op_index import Types
from planish.levels.hlo.ir.mlir import conv_numbers, dot_axes, ir

Group = Literal["convolution", "contraction", "reduction", "data movement", "constant", "elementwise"]
GROUPS: tuple[Group, ...] = get_args(Group)
"""Kinds of operations; data movement computes nothing, a contraction is a dot product."""
HEAVY = ("convolution", "contraction")

_DATA_MOVEMENT = (
    *("bitcast_convert", "broadcast", "broadcast_in_dim", "case", "concatenate", "dynamic_slice"),
    *("dynamic_update_slice", "gather", "get_tuple_element", "if", "pad", "reshape", "return", "reverse"),
    *("scatter", "slice", "transpose", "tuple", "while"),
)
_GROUP: Mapping[str, Group] = {
    "convolution": "convolution",
    **dict.fromkeys(("dot_general", "dot"), "contraction"),
    **dict.fromkeys(("reduce", "reduce_window", "select_and_scatter"), "reduction"),
    **dict.fromkeys(("constant", "iota"), "constant"),
    **dict.fromkeys(_DATA_MOVEMENT, "data movement"),
}


def group(info: OpInfo) -> Group:
    """Return the kind of an operation."""
    return _GROUP.get(info.name.partition(".")[2], "elementwise")


def flops_of(module: EditableModule, uid: str) -> int:
    """Count the additions, multiplications and the like of an operation; in a loop, of one iteration.

    A contraction takes two for each element of its result and each that is summed, a convolution two for each
    element of its result and each of a kernel; a reduction takes one for each element that goes in, however
    often a window meets it, and all else one for each that comes out.
    """
    info = module.infos[uid]
    results = _elements(info.results)
    match group(info):
        case "contraction":
            return 2 * results * _summed(module.op(uid), info)
        case "convolution":
            return 2 * results * _kernel(module.op(uid), info)
        case "reduction":
            return _elements(info.operands)
        case "elementwise":
            return results
        case _:
            return 0


def bytes_of(info: OpInfo) -> int:
    """Count the bytes of an operation's results; elements of types without a width count as four."""
    return sum(prod(type_.shape) * _width(type_.element) for type_ in info.results if type_ is not None)


def _elements(types: Types) -> int:
    return sum(prod(type_.shape) for type_ in types if type_ is not None)


def _width(element: str) -> int:
    bits = "".join(character for character in element if character.isdigit())
    return max(1, int(bits) // 8) if bits else 4


def _summed(op: ir.Operation, info: OpInfo) -> int:
    left = info.operands[0]
    if left is None or "dot_dimension_numbers" not in op.attributes:
        return left.shape[-1] if left is not None and left.shape else 1
    return prod(left.shape[axis] for axis in dot_axes(op).summed[0])


def _kernel(op: ir.Operation, info: OpInfo) -> int:
    kernel = info.operands[1]
    if kernel is None:
        return 1
    # Each element of the result meets the kernel of one output feature.
    return prod(kernel.shape) // max(1, kernel.shape[conv_numbers(op).kernel_output_feature_dimension])
