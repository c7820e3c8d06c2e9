"""Answers of programs in float64, and how far a right kernel may be off.

They are made from the statements alone, and slowly: every read is a look-up of every point's subscripts.
Nothing of the level's own reference, interpreter or error bounds is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.levels.loops.lang.program import (
    GATHER,
    POSITIONS,
    Access,
    Apply,
    Const,
    Expr,
    Program,
    Statement,
)

Array = NDArray[Any]


@dataclass(frozen=True)
class Inexact:
    """Values, and for each the greatest distance of a right answer; inf where nothing is known."""

    value: Array
    error: Array


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


_erf: Callable[[Array], Array] = np.vectorize(math.erf, otypes=[np.float64])
_EXACT: dict[str, Callable[[Array], Array]] = {"neg": np.negative, "abs": np.abs, "relu": _relu}
_MONOTONE: dict[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "erf": _erf,
}
_TESTS: dict[str, Callable[[Array, Array], Array]] = {
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def _choosing(test: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def choose(a: Array, b: Array, yes: Array, no: Array) -> Array:
        return np.where(test(a, b), yes, no)

    return choose


_FUNCTION_ERROR = 6
"""Units in the last place that an elementary function may be off."""


def applied(function: str, args: Sequence[Inexact], dtype: np.dtype[Any]) -> Inexact:
    """Apply an element-wise function, as NumPy does, and round."""
    if dtype == np.int32:
        return _exactly(_WHOLE[function](*(a.value.astype(np.int64) for a in args)))
    (a, *_), unit = args, float(np.finfo(dtype).eps)
    if function in _EXACT:
        return Inexact(_EXACT[function](a.value), a.error)
    if function in _MONOTONE:
        f = _MONOTONE[function]
        value = f(a.value)
        ends = [np.abs(f(a.value + sign * a.error) - value) for sign in (-1, 1)]
        spread = np.where(a.error == 0, 0.0, np.maximum(*ends))
        return _rounded(value, spread, _FUNCTION_ERROR * unit, args, dtype)
    if function in _TESTS:
        return _chosen(_TESTS[function], *args)
    b = args[1]
    if function in ("max", "min"):
        value = (np.maximum if function == "max" else np.minimum)(a.value, b.value)
        return Inexact(value, np.maximum(*np.broadcast_arrays(a.error, b.error)))
    match function:
        case "add" | "sub":
            value = a.value + b.value if function == "add" else a.value - b.value
            error = a.error + b.error
        case "mul":
            value = a.value * b.value
            error = _times(np.abs(a.value), b.error) + _times(np.abs(b.value) + b.error, a.error)
        case "div":
            value = a.value / b.value
            least = np.abs(b.value) - b.error
            error = np.where(
                (a.error == 0) & (b.error == 0),
                0.0,
                np.where(least > 0, (a.error + _times(np.abs(value), b.error)) / least, np.inf),
            )
        case _:
            raise KeyError(function)
    return _rounded(value, error, unit, args, dtype)


def _chosen(test: Callable[[Array, Array], Array], a: Inexact, b: Inexact, x: Inexact, y: Inexact) -> Inexact:
    """Either value is right where the operands may be equal and are not exact."""
    holds = test(a.value, b.value)
    exact = (a.error == 0) & (b.error == 0)
    clear = (a.value - a.error > b.value + b.error) | (a.value + a.error < b.value - b.error)
    apart = np.abs(x.value - y.value) + x.error + y.error
    either = np.where(np.isnan(apart), np.inf, apart)
    error = np.where(exact | clear, np.where(holds, x.error, y.error), either)
    value = np.where(holds, x.value, y.value)
    return Inexact(value, np.broadcast_to(error, value.shape))


def _times(size: Array, error: Array) -> Array:
    """A product that is 0 where there is no error, whatever the size."""
    return np.where(np.asarray(error) == 0, 0.0, size * error)


def _rounded(
    value: Array, error: Array, unit: float, args: Sequence[Inexact], dtype: np.dtype[Any]
) -> Inexact:
    """Add the rounding of a result; one that finite numbers overflow to, or nearly, is not known."""
    kind = np.finfo(dtype)
    finite = reduce(np.logical_and, [np.isfinite(a.value) for a in args])
    error = error + unit * np.where(np.isfinite(value), np.abs(value), 0) + float(kind.tiny) * 64
    lost = np.isnan(error) | (finite & ~(np.abs(value) < float(kind.max) / 1024))
    # What is not a number of finite ones is known: the root of -1.
    lost = lost & ~(np.isnan(value) & finite & reduce(np.logical_and, [a.error == 0 for a in args]))
    return Inexact(value, np.where(lost, np.inf, np.where(np.isfinite(value), error, 0.0)))


def reduced(function: str, terms: Inexact, outputs: int, dtype: np.dtype[Any]) -> Inexact:
    """Reduce all but the first dimensions, in any order."""
    inner = tuple(range(outputs, terms.value.ndim))
    if dtype == np.int32:
        return _exactly(_WHOLE[function].reduce(terms.value.astype(np.int64), axis=inner))
    value, error, unit = terms.value, terms.error, float(np.finfo(dtype).eps)
    count = int(np.prod([value.shape[i] for i in inner]))
    if function in ("max", "min"):
        made = (np.max if function == "max" else np.min)(value, axis=inner)
        return Inexact(made, error.max(axis=inner))
    size = np.abs(np.where(np.isfinite(value), value, 0))
    # Rounding errors of a long sum partly cancel; a wrong term is of the size of a term.
    steps = min(count, 8 + 4 * count**0.5) * unit
    if function == "add":
        spread = error.sum(axis=inner) + steps * size.sum(axis=inner)
        return _rounded(value.sum(axis=inner), spread, unit, [_whole(terms, inner)], dtype)
    relative = np.where(error == 0, 0.0, error / size)
    made = value.prod(axis=inner)
    grown = np.expm1(np.log1p(relative).sum(axis=inner) + count * unit)
    small = float(np.finfo(dtype).tiny) * 64 * np.maximum(size, 1).prod(axis=inner)
    return _rounded(made, _times(np.abs(made), grown) + small, unit, [_whole(terms, inner)], dtype)


_WHOLE: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "neg": np.negative,
    "abs": np.abs,
    "relu": _relu,
    **{name: _choosing(test) for name, test in _TESTS.items()},
}


def _exactly(value: Array) -> Inexact:
    """Integers, of which the lowest 32 bits are kept; 64 bits are enough for any operation on those."""
    kept = np.asarray(((value + 2**31) & 0xFFFFFFFF) - 2**31, np.float64)
    return Inexact(kept, np.zeros(kept.shape))


_NARROW = {"float16": (10, -14, 65504.0), "bfloat16": (7, -126, 3.3895e38)}
"""Bits of the fraction, the exponent of the smallest normal number, and the largest one."""


def stored(result: Inexact, dtype: str) -> Inexact:
    """Round to the nearest number of a narrow type, which is off by half a unit in the last place at most."""
    if dtype not in _NARROW:
        return result
    fraction, least, most = _NARROW[dtype]
    value, error = result.value, result.error
    with np.errstate(all="ignore"):
        size = np.where(np.isfinite(value), np.abs(value), 0.0) + error
        exponent = np.maximum(np.floor(np.log2(np.maximum(size, 2.0**least))), least)
        rounding = 2.0 ** (exponent - fraction - 1) + (2.0**least if dtype == "bfloat16" else 0.0)
    error = np.where(size > most, np.inf, error + rounding)
    return Inexact(value, np.where(np.isfinite(value), error, result.error))


def _whole(terms: Inexact, inner: tuple[int, ...]) -> Inexact:
    """Stands for all terms of a reduction: finite and exact where all are."""
    return Inexact(
        np.where(np.isfinite(terms.value).all(axis=inner), 0.0, np.inf), terms.error.max(axis=inner)
    )


@dataclass(frozen=True)
class _Points:
    """A statement's iteration space; its arrays have a dimension for each axis."""

    axes: tuple[str, ...]
    size: Mapping[str, int]
    tensors: Mapping[str, Inexact]
    dtype: np.dtype[Any]

    def walk(self, axis: str) -> Array:
        shape = [self.size[a] if a == axis else 1 for a in self.axes]
        return np.arange(self.size[axis]).reshape(shape)

    def value(self, expr: Expr) -> Inexact:
        match expr:
            case Const(value=number):
                if self.dtype == np.int32:
                    number = float(np.clip(number, -(2**31), 2**31 - 1))
                return Inexact(np.full([1] * len(self.axes), number), np.zeros([1] * len(self.axes)))
            case Apply(function=function, args=(Access() as table, Access() as by)) if function.startswith(
                GATHER
            ):
                return self.gathered(table, int(function.removeprefix(GATHER)), by)
            case Apply(function=function, args=args):
                return applied(function, [self.value(arg) for arg in args], self.dtype)
            case Access():
                return self.read(expr)

    def gathered(self, access: Access, dimension: int, by: Access) -> Inexact:
        """Look an index up: an integer is brought into range, what is not a number is 0."""
        index, extent = self.read(by), self.tensors[access.tensor].value.shape[dimension]
        found = np.where(np.isnan(index.value), 0, np.clip(index.value, 0, extent - 1)).astype(int)
        made = self.read(access, {dimension: found})
        return Inexact(made.value, np.where(index.error > 0, np.inf, made.error))

    def read(self, access: Access, instead: Mapping[int, Array] | None = None) -> Inexact:
        tensor = self.tensors[access.tensor]
        inside: Array = np.ones([1] * len(self.axes), bool)
        positions: list[Array] = []
        for d, (index, extent) in enumerate(zip(access.index, tensor.value.shape, strict=True)):
            at = np.full([1] * len(self.axes), index.offset)
            for axis, coefficient in index.terms:
                at = at + coefficient * self.walk(axis)
            at = (instead or {}).get(d, at)
            inside = inside & (at >= 0) & (at < extent)
            positions.append(np.clip(at, 0, extent - 1))
        pad = 0.0 if access.pad is None else access.pad
        assert access.pad is not None or inside.all()
        found = np.broadcast_arrays(*positions) if positions else []
        value, error = (np.asarray(part[tuple(found)]) for part in (tensor.value, tensor.error))
        if not positions:
            value, error = (part.reshape([1] * len(self.axes)) for part in (value, error))
        return Inexact(np.where(inside, value, pad), np.where(inside, error, 0.0))


def answer(program: Program, inputs: Mapping[str, Array]) -> dict[str, Inexact]:
    """Compute every output of a program, with its error."""
    tensors = {n: Inexact(a.astype(np.float64), np.zeros(a.shape)) for n, a in inputs.items()}
    if kind := program.type.get(POSITIONS):
        tensors[POSITIONS] = Inexact(np.arange(kind.size, dtype=np.float64), np.zeros(kind.size))
    with np.errstate(all="ignore"):
        for statement in program.statements:
            kind = program.type[statement.target.tensor]
            points = _Points(statement.axes, program.size, tensors, np.dtype(program.arithmetic))
            if any([c for _, c in i.terms] != [1] for i in statement.target.index):
                tensors[statement.target.tensor] = _landed(statement, points, kind.shape)
                continue
            result = _result(statement, points)
            name, empty = statement.target.tensor, np.full(kind.shape, np.nan)
            whole = tensors.setdefault(name, Inexact(empty, np.zeros(kind.shape)))
            part = tuple(
                slice(i.offset, i.offset + n)
                for i, n in zip(statement.target.index, result.value.shape, strict=True)
            )
            whole.value[part], whole.error[part] = result.value, result.error
    return {name: stored(tensors[name], program.type[name].dtype) for name in program.outputs}


_STARTS = {"add": 0.0, "mul": 1.0, "max": -np.inf, "min": np.inf}


def _landed(statement: Statement, points: _Points, shape: tuple[int, ...]) -> Inexact:
    """Collect what lands in each element of a target, term by term, and reduce that."""
    found, extents = points.value(statement.value), [points.size[axis] for axis in points.axes]
    flat = np.zeros(extents, int)
    for index, extent in zip(statement.target.index, shape, strict=True):
        at = index.offset + sum(c * points.walk(axis) for axis, c in index.terms)
        flat = flat * extent + at
    values = np.broadcast_to(found.value, extents).reshape(-1).tolist()
    errors = np.broadcast_to(found.error, extents).reshape(-1).tolist()
    landed: list[list[tuple[float, float]]] = [[] for _ in range(int(np.prod(shape)))]
    for element, value, error in zip(flat.reshape(-1).tolist(), values, errors, strict=True):
        landed[element].append((value, error))
    if statement.reduce is None:
        assert all(len(terms) < 2 for terms in landed), statement
    start = _STARTS[statement.reduce or "add"]
    if points.dtype == np.int32:
        start = float(np.clip(start, -(2**31), 2**31 - 1))
    most = max(map(len, landed))
    table = np.array([[*terms, *[(start, 0.0)] * (most - len(terms))] for terms in landed])
    result = reduced(statement.reduce or "add", Inexact(table[..., 0], table[..., 1]), 1, points.dtype)
    return Inexact(result.value.reshape(shape), result.error.reshape(shape))


def _result(statement: Statement, points: _Points) -> Inexact:
    shape = [points.size[axis] for axis in points.axes]
    found = points.value(statement.value)
    found = Inexact(np.broadcast_to(found.value, shape), np.broadcast_to(found.error, shape))
    outputs = len(statement.output_axes)
    if statement.reduce is None:
        return found
    result = reduced(statement.reduce, found, outputs, points.dtype)
    exact = _einsum(statement, points)
    if exact is not None:
        assert (np.abs(exact - result.value) <= result.error).all(), f"einsum differs: {statement}"
    return result


def _einsum(statement: Statement, points: _Points) -> Array | None:
    """Sum a product of plain accesses to whole tensors by `numpy.einsum`; None for all else.

    It takes scalars out of sums, which is another thing where terms are infinite.
    """
    factors, tensors = _factors(statement.value), points.tensors
    if statement.reduce != "add" or factors is None or points.dtype == np.int32:
        return None
    for factor in factors:
        shape = tuple(points.size[i.terms[0][0]] for i in factor.index)
        value = tensors[factor.tensor].value
        if value.shape != shape or not np.isfinite(value).all():
            return None
    if not {axis for f in factors for i in f.index for axis, _ in i.terms} >= set(statement.axes):
        return None
    letter = {axis: chr(ord("a") + i) for i, axis in enumerate(statement.axes)}
    words = ["".join(letter[i.terms[0][0]] for i in f.index) for f in factors]
    out = "".join(letter[axis] for axis in statement.output_axes)
    operands = [tensors[f.tensor].value for f in factors]
    return np.asarray(np.einsum(",".join(words) + "->" + out, *operands))


def _factors(expr: Expr) -> list[Access] | None:
    match expr:
        case Access(index=index, pad=None) if all(
            len(i.terms) == 1 and i.terms[0][1] == 1 and i.offset == 0 for i in index
        ):
            return [expr]
        case Apply(function="mul", args=(left, right)):
            a, b = _factors(left), _factors(right)
            return None if a is None or b is None else a + b
        case _:
            return None
