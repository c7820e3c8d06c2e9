"""A program point by point, in one element type after another: slow, and too simple to be wrong."""

import itertools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from planish.levels.loops.lang.program import IDENTITY, POSITIONS, Access, Apply, Const, Expr, Index, Program

Point = Mapping[str, int]
Tensors = Mapping[str, NDArray[Any]]


def _relu(x: Any) -> Any:
    return np.maximum(x, x - x)


def _sigmoid(x: Any) -> Any:
    one = type(x)(1)
    return one / (one + np.exp(-x))


def _erf(x: Any) -> Any:
    return type(x)(math.erf(x))


def _choosing(test: str) -> Callable[..., Any]:
    holds = {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne}[test]

    def choose(a: Any, b: Any, x: Any, y: Any) -> Any:
        return x if holds(a, b) else y

    return choose


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "relu": _relu,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "erf": _erf,
    **{test: _choosing(test) for test in ("<", "<=", "==", "!=")},
}


def run(
    program: Program, inputs: Tensors, number: Any = np.float64, order: Generator | None = None
) -> dict[str, NDArray[Any]]:
    """Execute a program.

    Args:
        program: what is executed.
        inputs: input to elements.
        number: the element type in which every operation is rounded.
        order: reduces in a random order.
    """
    tensors = {name: np.asarray(inputs[name], number) for name in program.inputs}
    if kind := program.type.get(POSITIONS):
        tensors[POSITIONS] = np.arange(kind.size).astype(number)
    for s in program.statements:
        shape = program.type[s.target.tensor].shape
        out = tensors.setdefault(s.target.tensor, np.full(shape, np.nan, number))
        landed: dict[tuple[int, ...], list[Any]] = {}
        if any([c for _, c in i.terms] != [1] for i in s.target.index):
            landed = {position: [] for position in np.ndindex(shape)}
        for point in _points(program, s.axes):
            position = tuple(_at(i, point) for i in s.target.index)
            landed.setdefault(position, []).append(_value(s.value, point, tensors, number))
        for position, values in landed.items():
            if s.reduce is not None:
                start = number(IDENTITY[s.reduce])
                for value in order.permutation(np.array(values)) if order else values:
                    start = FUNCTIONS[s.reduce](start, value)
                values = [start]
            out[position] = values[0] if values else 0
    return {name: tensors[name] for name in program.outputs}


def _points(program: Program, axes: tuple[str, ...]) -> list[dict[str, int]]:
    ranges = [range(program.size[axis]) for axis in axes]
    return [dict(zip(axes, point, strict=True)) for point in itertools.product(*ranges)]


def _at(index: Index, point: Point) -> int:
    return index.offset + sum(c * point[axis] for axis, c in index.terms)


def _value(expr: Expr, point: Point, tensors: Tensors, number: Any) -> Any:
    match expr:
        case Const(value=value):
            return number(value)
        case Apply(function=function, args=(Access() as table, Access() as by)) if function.startswith(
            "gather"
        ):
            d = int(function.removeprefix("gather"))
            last = tensors[table.tensor].shape[d] - 1
            found = _value(by, point, tensors, number)
            position = [_at(i, point) for i in table.index]
            position[d] = 0 if np.isnan(found) else int(min(max(found, 0), last))
            return tensors[table.tensor][tuple(position)]
        case Apply(function=function, args=args):
            return FUNCTIONS[function](*(_value(arg, point, tensors, number) for arg in args))
        case Access(tensor=tensor, index=index, pad=pad):
            array = tensors[tensor]
            position = tuple(_at(i, point) for i in index)
            if all(0 <= p < n for p, n in zip(position, array.shape, strict=True)):
                return array[position]
            assert pad is not None
            return number(pad)
