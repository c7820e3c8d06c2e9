"""Functions of Python kernels that have instructions of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from planish.network.python_kernels.emitter import (
    FLOAT_TYPES,
    SUFFIXES,
    Constant,
    Entity,
    FunctionEmitter,
    Operand,
    float_literal,
)

# Functions


def fused(a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, align_up once where the processor can."""
    return a * b + c


def sigmoid(a: Any) -> Any:
    """Return 1 / (1 + exp(-a))."""
    return 1 / (1 + np.exp(-a))


def bits_of_float(a: Any) -> Any:
    """Return the bits of a float32 as a number."""
    return int(np.float32(a).view(np.uint32))


def float_of_bits(n: Any) -> Any:
    """Return the float32 of 32 bits."""
    return np.uint32(n).view(np.float32)


def power_of_two(n: Any) -> Any:
    """Return 2 ** n in double, for n from -1022 to 1023."""
    return np.ldexp(1.0, n)


def _converted(kind: str) -> Callable[[FunctionEmitter, Sequence[Entity]], Entity]:
    def write(of: FunctionEmitter, args: Sequence[Entity]) -> Entity:
        (found,) = args
        if isinstance(found, Constant):
            if kind in FLOAT_TYPES:
                return Operand(kind, float_literal(float(found.value), kind))
            return Constant(int(found.value))
        value = of.value(found)
        if kind == "i64" and value.type in FLOAT_TYPES:
            return of.intrinsic("fptosi.sat", "i64", [value], f"i64.{SUFFIXES[value.type]}")
        return of.converted(value, kind)

    return write


def _of_one(name: str) -> Callable[[FunctionEmitter, Sequence[Entity]], Entity]:
    def write(of: FunctionEmitter, args: Sequence[Entity]) -> Entity:
        value = of.number(args[0])
        return of.intrinsic(name, value.type, [value])

    return write


def _rounding(name: str) -> Callable[[FunctionEmitter, Sequence[Entity]], Entity]:
    """Write a rounding to whole numbers without the functions of C that processors without SSE4.1 need."""

    def write(of: FunctionEmitter, args: Sequence[Entity]) -> Entity:
        x = of.number(args[0])
        t, bits = x.type, 23 if x.type == "float" else 52
        # Its neighbors are whole numbers: adding it rounds, to even.
        magic = float_literal(1.5 * 2.0**bits, t)
        moved = of.define(f"fadd {t} {x.text}, {magic}")
        whole = of.define(f"fsub {t} {moved}, {magic}")
        one, negative = float_literal(1.0, t), of.define(f"fcmp olt {t} {x.text}, {float_literal(0.0, t)}")
        low = of.define(f"fsub {t} {whole}, {one}")
        above = of.define(f"fcmp ogt {t} {whole}, {x.text}")
        low = of.define(f"select i1 {above}, {t} {low}, {t} {whole}")
        high = of.define(f"fadd {t} {whole}, {one}")
        below = of.define(f"fcmp olt {t} {whole}, {x.text}")
        high = of.define(f"select i1 {below}, {t} {high}, {t} {whole}")
        inwards = of.define(f"select i1 {negative}, {t} {high}, {t} {low}")
        whole = {"rint": whole, "floor": low, "ceil": high, "trunc": inwards}[name]
        size = of.intrinsic("fabs", t, [x])
        small = of.define(f"fcmp olt {t} {size.text}, {float_literal(2.0 ** (bits - 1), t)}")
        return Operand(t, of.define(f"select i1 {small}, {t} {whole}, {t} {x.text}"))

    return write


def _extreme(integers: str, floats: str) -> Callable[[FunctionEmitter, Sequence[Entity]], Entity]:
    def write(of: FunctionEmitter, args: Sequence[Entity]) -> Entity:
        if all(isinstance(each, Constant) for each in args):
            return Constant((min if integers == "smin" else max)(each.value for each in args))  # type: ignore[union-attr]
        a, b = of.common(*args)
        if a.type == "i1":
            a, b = of.converted(a, "i64"), of.converted(b, "i64")
        return of.intrinsic(floats if a.type in FLOAT_TYPES else integers, a.type, [a, b])

    return write


def _absolute(of: FunctionEmitter, args: Sequence[Entity]) -> Entity:
    if isinstance(args[0], Constant):
        return Constant(abs(args[0].value))
    value = of.value(args[0])
    if value.type in FLOAT_TYPES:
        return of.intrinsic("fabs", value.type, [value])
    return of.intrinsic("smax", "i64", [value, of.value(of.negative(value))])


def _mathematics(name: str) -> Callable[[FunctionEmitter, Sequence[Entity]], Entity]:
    def write(of: FunctionEmitter, args: Sequence[Entity]) -> Entity:
        return of.mathematics(name, of.number(args[0]))

    return write


def _fused(of: FunctionEmitter, args: Sequence[Entity]) -> Entity:
    values = of.common(*args)
    return of.intrinsic("fmuladd", values[0].type, values)


def _is_nan(of: FunctionEmitter, args: Sequence[Entity]) -> Entity:
    value = of.number(args[0])
    return Operand("i1", of.define(f"fcmp uno {value.type} {value.text}, {value.text}"))


def _length(_of: FunctionEmitter, args: Sequence[Entity]) -> Entity:
    (found,) = args
    assert isinstance(found, Constant)
    return Constant(len(found.value))


def _power_of_two(of: FunctionEmitter, args: Sequence[Entity]) -> Entity:
    value = of.converted(of.value(args[0]), "i64")
    biased = of.define(f"add i64 {value.text}, 1023")
    bits = of.define(f"shl i64 {biased}, 52")
    return Operand("double", of.define(f"bitcast i64 {bits} to double"))


def _bits_of_float(of: FunctionEmitter, args: Sequence[Entity]) -> Entity:
    value = of.converted(of.value(args[0]), "float")
    bits = of.define(f"bitcast float {value.text} to i32")
    return Operand("i64", of.define(f"zext i32 {bits} to i64"))


def _float_of_bits(of: FunctionEmitter, args: Sequence[Entity]) -> Entity:
    value = of.converted(of.value(args[0]), "i64")
    bits = of.define(f"trunc i64 {value.text} to i32")
    return Operand("float", of.define(f"bitcast i32 {bits} to float"))


INTRINSICS: Mapping[Any, Callable[[FunctionEmitter, Sequence[Entity]], Entity]] = {
    abs: _absolute,
    bits_of_float: _bits_of_float,
    float_of_bits: _float_of_bits,
    float: _converted("float"),
    fused: _fused,
    int: _converted("i64"),
    len: _length,
    max: _extreme("smax", "maximum"),
    min: _extreme("smin", "minimum"),
    np.ceil: _rounding("ceil"),
    np.exp: _mathematics("exp"),
    np.float32: _converted("float"),
    np.float64: _converted("double"),
    np.floor: _rounding("floor"),
    np.isnan: _is_nan,
    np.log: _mathematics("log"),
    np.rint: _rounding("rint"),
    np.sqrt: _of_one("sqrt"),
    np.tanh: _mathematics("tanh"),
    np.trunc: _rounding("trunc"),
    power_of_two: _power_of_two,
    sigmoid: _mathematics("sigmoid"),
}
"""Function of Python to what writes a call of it."""
