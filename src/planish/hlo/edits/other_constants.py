"""The values of constants, and other ones in their place."""

from __future__ import annotations

import math
from typing import Any

from planish.core import ScheduleError
from planish.hlo.ir import context, ir, tensor_type

LARGEST = 4096
"""Elements of a constant that is scaled; each new value stays in memory as long as the process."""


def splat_value(op: ir.Operation | ir.OpView) -> float | None:
    """Give the value that all elements of a constant have; None where they differ or are no plain number."""
    value = op.attributes["value"]
    if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
        return None
    splat = value.get_splat_value()
    if isinstance(splat, ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr):
        return float(splat.value)
    return None


def can_scale(op: ir.Operation | ir.OpView) -> bool:
    """Whether a constant is one of floats that can be scaled."""
    type_ = tensor_type(op.results[0].type)
    if type_ is None or not type_.plain or "f" not in type_.element:
        return False
    if not isinstance(op.attributes["value"], ir.DenseElementsAttr):
        return False
    return splat_value(op) is not None or (
        type_.element in {"f32", "f64"} and math.prod(type_.shape) <= LARGEST
    )


def scaled(op: ir.Operation, factor: float) -> None:
    """Multiply a constant; raises ScheduleError where it is none of floats."""
    _check(op)
    if not can_scale(op):
        raise ScheduleError(
            f"a constant of {op.results[0].type} cannot be scaled", "It has floats, and is not large."
        )
    value = splat_value(op)
    if value is not None:
        _splat(op, value * factor)
        return
    import numpy as np

    type_ = op.results[0].type
    values: Any = np.array(op.attributes["value"]) * factor
    element, shape = type_.element_type, type_.shape
    op.attributes["value"] = ir.DenseElementsAttr.get(values, type=element, shape=shape, context=context())


def replaced(op: ir.Operation, value: float) -> None:
    """Give all elements of a constant one value; raises ScheduleError where it does not fit them."""
    _check(op)
    type_ = tensor_type(op.results[0].type)
    whole = float(value).is_integer()  # no number that is not finite is one
    if type_ is None or not type_.plain or not (whole or "f" in type_.element):
        raise ScheduleError(f"{value} cannot be a constant of {op.results[0].type}")
    _splat(op, value)


def _check(op: ir.Operation) -> None:
    if op.name != "stablehlo.constant":
        raise ScheduleError(f"{op.name} is no constant")


def _splat(op: ir.Operation, value: float) -> None:
    type_ = tensor_type(op.results[0].type)
    assert type_ is not None
    if not math.isfinite(value):
        raise ScheduleError(f"{value} is no finite number")
    if type_.element == "i1":
        text = str(value != 0).lower()
    else:
        text = _float_text(value) if "f" in type_.element else str(int(value))
    try:
        attribute = ir.Attribute.parse(f"dense<{text}> : {type_}", context())
    except ir.MLIRError as error:
        raise ScheduleError(f"{value} cannot be a constant of {type_}") from error
    op.attributes["value"] = attribute


def _float_text(value: float) -> str:
    """Write a number as MLIR reads it: with a point, even before an exponent."""
    digits, e, exponent = repr(float(value)).partition("e")
    return f"{digits if '.' in digits else f'{digits}.0'}{e}{exponent}"
