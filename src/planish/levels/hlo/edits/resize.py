"""Resizing of tensors from one type to another, as the paper repairs (section 4.1 and figure 3).

Dimensions are aligned at the last one. One that is too large loses its edges, one that is too small is padded
with 1; the old values stay in the center. Missing dimensions are broadcast, surplus ones shrink to 1 and are
reshaped away. Unlike the paper's, elements of another type are converted, last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planish.core import ScheduleError
from planish.levels.hlo.ir.mlir import TensorType, context, ir, mlir_type, tensor_type
from planish.levels.hlo.ir.parsing import first_line

Resize = tuple[tuple[Any, ...], ...]
"""Operations in order: ("slice", starts, limits), ("pad", lows, highs), ("broadcast", shape, dimensions),
("reshape", shape), ("convert", element)."""


def plan_resize(source: TensorType, target: TensorType) -> Resize:
    """List the operations that make one type of another; none for equal types.

    ::

        3x4x4 -> 2x2   slice to 1x2x2, reshape to 2x2   (figure 3)
    """
    if source == target:
        return ()
    surplus = len(source.shape) - len(target.shape)
    aligned = (1,) * surplus + target.shape[max(0, -surplus) :]
    steps: list[tuple[Any, ...]] = []
    smaller = tuple(map(min, source.shape, aligned))
    # Cut before it is padded: each dimension needs one of the two at most.
    if smaller != source.shape:
        starts = tuple((old - new) // 2 for old, new in zip(source.shape, smaller, strict=True))
        steps.append(("slice", starts, tuple(map(sum, zip(starts, smaller, strict=True)))))
    if smaller != aligned:
        missing = [new - old for old, new in zip(smaller, aligned, strict=True)]
        steps.append(("pad", tuple(n // 2 for n in missing), tuple(n - n // 2 for n in missing)))
    if surplus > 0:
        steps.append(("reshape", target.shape))
    if surplus < 0:
        steps.append(("broadcast", target.shape, tuple(range(-surplus, len(target.shape)))))
    # Last, so that the padding of 1 is made in the type of what it stands beside.
    if source.element != target.element:
        steps.append(("convert", target.element))
    return tuple(steps)


def resized_type(source: TensorType, step: Sequence[Any]) -> TensorType:
    """Return the type after one operation of a resize."""
    match step:
        case ("slice", starts, limits):
            bounds = zip(source.shape, starts, limits, strict=True)
            return TensorType(tuple(end - start for _, start, end in bounds), source.element)
        case ("pad", lows, highs):
            sizes = zip(source.shape, lows, highs, strict=True)
            return TensorType(tuple(map(sum, sizes)), source.element)
        case ("broadcast", shape, _) | ("reshape", shape):
            return TensorType(tuple(shape), source.element)
        case ("convert", element):
            converted = TensorType(source.shape, element)
            if not (source.plain and converted.plain):
                raise ValueError(f"{source} cannot be converted to '{element}'")
            return converted
        case _:
            raise ValueError(f"unknown resize {step}")


def check_resize(source: TensorType | None, step: Sequence[Any]) -> None:
    """Raise ScheduleError where a type cannot be resized so; `build_resize` verifies the rest."""
    try:
        legal = source is not None and all(extent >= 0 for extent in resized_type(source, step).shape)
    except (ValueError, TypeError):
        legal = False
    if not legal:
        raise ScheduleError(f"cannot resize {source} by {step}")


def build_resize(
    value: ir.Value[Any], step: Sequence[Any], created: Callable[[ir.Operation], None]
) -> ir.Value[Any]:
    """Make one operation of a resize at the current insertion point.

    Raises:
        ScheduleError: the operation is not valid.
    """

    def make(
        name: str, type_: TensorType, operands: list[ir.Value[Any]], attributes: Mapping[str, str]
    ) -> Any:
        parsed = {key: ir.Attribute.parse(text, context()) for key, text in attributes.items()}
        try:
            op = ir.Operation.create(f"stablehlo.{name}", [mlir_type(type_)], operands, parsed)
            op.verify()
        except ir.MLIRError as error:
            raise ScheduleError(f"cannot resize {source} by {step}: {first_line(error)}") from error
        created(op)
        return op.results[0]

    source = tensor_type(value.type)
    assert source is not None
    result = resized_type(source, step)
    match step:
        case ("slice", starts, limits):
            ones = (1,) * len(starts)
            bounds = {"start_indices": starts, "limit_indices": limits, "strides": ones}
            return make("slice", result, [value], {key: _array(axes) for key, axes in bounds.items()})
        case ("pad", lows, highs):
            scalar = TensorType((), source.element)
            number = {"i1": "true"}.get(source.element, "1.0" if "f" in source.element else "1")
            one = make("constant", scalar, [], {"value": f"dense<{number}> : {scalar}"})
            edges = {
                "edge_padding_low": lows,
                "edge_padding_high": highs,
                "interior_padding": (0,) * len(lows),
            }
            return make("pad", result, [value, one], {key: _array(axes) for key, axes in edges.items()})
        case ("broadcast", _, dimensions):
            return make("broadcast_in_dim", result, [value], {"broadcast_dimensions": _array(dimensions)})
        case _:
            return make(str(step[0]), result, [value], {})


def _array(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"
