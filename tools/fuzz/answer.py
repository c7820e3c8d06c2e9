"""What a program must give, in float64, and how far a right kernel may be off.

Made from the statements alone, and slowly: every read is a look-up of every point's subscripts. Nothing of
the level's own reference, interpreter or error bounds is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz.errors import Inexact, applied, reduced, stored
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
        """Look an index up: a whole number is brought into range, what is not a number is 0."""
        index, extent = self.read(by), self.tensors[access.tensor].value.shape[dimension]
        found = np.where(np.isnan(index.value), 0, np.clip(index.value, 0, extent - 1)).astype(int)
        made = self.read(access, {dimension: found})
        return Inexact(made.value, np.where(index.error > 0, np.inf, made.error))

    def read(self, access: Access, instead: Mapping[int, Array] | None = None) -> Inexact:
        tensor = self.tensors[access.tensor]
        inside: Array = np.ones([1] * len(self.axes), bool)
        places: list[Array] = []
        for d, (index, extent) in enumerate(zip(access.index, tensor.value.shape, strict=True)):
            place = np.full([1] * len(self.axes), index.offset)
            for axis, coefficient in index.terms:
                place = place + coefficient * self.walk(axis)
            place = (instead or {}).get(d, place)
            inside = inside & (place >= 0) & (place < extent)
            places.append(np.clip(place, 0, extent - 1))
        pad = 0.0 if access.pad is None else access.pad
        assert access.pad is not None or inside.all()
        found = np.broadcast_arrays(*places) if places else []
        value, error = (np.asarray(part[tuple(found)]) for part in (tensor.value, tensor.error))
        if not places:
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
            place = tuple(
                slice(i.offset, i.offset + n)
                for i, n in zip(statement.target.index, result.value.shape, strict=True)
            )
            whole.value[place], whole.error[place] = result.value, result.error
    return {name: stored(tensors[name], program.type[name].dtype) for name in program.outputs}


_STARTS = {"add": 0.0, "mul": 1.0, "max": -np.inf, "min": np.inf}


def _landed(statement: Statement, points: _Points, shape: tuple[int, ...]) -> Inexact:
    """Collect what lands in each element of a target, term by term, and reduce that."""
    found, extents = points.value(statement.value), [points.size[axis] for axis in points.axes]
    flat = np.zeros(extents, int)
    for index, extent in zip(statement.target.index, shape, strict=True):
        place = index.offset + sum(c * points.walk(axis) for axis, c in index.terms)
        flat = flat * extent + place
    values = np.broadcast_to(found.value, extents).reshape(-1).tolist()
    errors = np.broadcast_to(found.error, extents).reshape(-1).tolist()
    landed: list[list[tuple[float, float]]] = [[] for _ in range(int(np.prod(shape)))]
    for place, value, error in zip(flat.reshape(-1).tolist(), values, errors, strict=True):
        landed[place].append((value, error))
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
