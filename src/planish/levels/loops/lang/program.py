"""A tensor computation: statements over named axes, with affine indices and element-wise expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, Generic, TypeVar

from planish.core import ProgramError, content_hash, did_you_mean

DTYPES: Mapping[str, int] = {
    "float32": 4,
    "float64": 8,
    "float16": 2,
    "bfloat16": 2,
    "tf32": 4,
    "int32": 4,
    "int8": 1,
    "qint8": 1,
    "uint8x4": 4,
    "int8x4": 4,
    "bfloat16x2": 4,
    "int64": 8,
    "quint8": 1,
    "qint32": 4,
}
"""Element types and their sizes in bytes."""

TF32 = "tf32"
"""The type of inputs that tensor cores may round to TF32; they are stored as float32."""
TF32_BITS = 10
"""Of its fractions."""

QINT8 = "qint8"
"""The type of inputs that are int8, in programs that compute in float32."""

UINT8X4, INT8X4 = "uint8x4", "int8x4"
"""Types of inputs whose elements are four integers; the product of one of each is their dot product."""
QUADS = (UINT8X4, INT8X4)
BFLOAT16X2 = "bfloat16x2"
"""The type of inputs whose elements are two numbers of bfloat16; the product of two is their dot product."""
PACKED: Mapping[str, int] = {UINT8X4: 4, INT8X4: 4, BFLOAT16X2: 2}
"""Types of inputs whose elements are several numbers, and how many."""

QUINT8 = "quint8"
"""The type that the reference has for the integers of `UINT8X4`; no program of a user has it."""
QINT32 = "qint32"
"""The type of buffers that hold sums of products of `QUADS`: integers, which are read as float32."""

INPUTS_ONLY = (TF32, QINT8, *PACKED)
"""Types that nothing is written in."""

INDICES = ("int32", "int64")
"""Types of integers that a tensor of indices may have, whatever the program computes in."""

ARITHMETIC: Mapping[str, str] = {
    "float32": "float32",
    "float64": "float64",
    "float16": "float32",
    "bfloat16": "float32",
    TF32: "float32",
    QINT8: "float32",
    UINT8X4: "float32",
    INT8X4: "float32",
    BFLOAT16X2: "float32",
    QUINT8: "float32",
    QINT32: "float32",
    "int32": "int32",
    "int8": "int32",
}
"""Element type to the type that its elements are computed in, and summed."""

COPIED: Mapping[str, str] = {**ARITHMETIC, "int8": "int8", **{dtype: dtype for dtype in PACKED}}
"""Element type to that of copies for the cache, which widen what is computed in float32."""

COMPARISONS = ("<", "<=", "==", "!=")
"""Functions of four arguments: `where(a < b, x, y)` is x where a is less than b, else y."""

FUNCTIONS: Mapping[str, int] = {
    "add": 2,
    "sub": 2,
    "mul": 2,
    "div": 2,
    "max": 2,
    "min": 2,
    "neg": 1,
    "abs": 1,
    "sqrt": 1,
    "exp": 1,
    "log": 1,
    "relu": 1,
    "tanh": 1,
    "sigmoid": 1,
    "erf": 1,
    **dict.fromkeys(COMPARISONS, 4),
}
"""Element-wise functions and how many arguments each takes."""

POSITIONS = "position."
"""The tensor of 0, 1, 2, ..., which no caller passes: a value that names an axis reads it."""

GATHER = "gather"
"""`gather0` and so on: see `planish.levels.loops.lang.draft`."""

IDENTITY: Mapping[str, float] = {"add": 0.0, "max": float("-inf"), "min": float("inf"), "mul": 1.0}
"""Reductions, and the value that each starts from."""


def number_text(value: float) -> str:
    """Write a number so that it reads back exactly, and without a needless `.0`."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


@dataclass(frozen=True)
class Index:
    """One dimension's subscript: the sum of coefficient x axis, plus an offset.

    Args:
        terms: (axis, coefficient), sorted by axis, no coefficient zero or negative.
        offset: added at the end; negative where a padded tensor is read from before its start.
    """

    terms: tuple[tuple[str, int], ...]
    offset: int = 0

    def __str__(self) -> str:
        parts = [axis if c == 1 else f"{c}*{axis}" for axis, c in self.terms]
        text = " + ".join(parts) or "0"
        if self.offset and parts:
            return f"{text} {'+' if self.offset > 0 else '-'} {abs(self.offset)}"
        return text if parts else str(self.offset)

    def bounds(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        """Return the least and the greatest value over the axes' whole extents."""
        return self.offset, self.offset + sum(c * (sizes[axis] - 1) for axis, c in self.terms)


@dataclass(frozen=True)
class Access:
    """An element of a tensor.

    Args:
        tensor: its name.
        index: one subscript for each dimension, outermost first.
        pad: what is read outside the tensor; None where it may not be left.
    """

    tensor: str
    index: tuple[Index, ...]
    pad: float | None = None

    def __str__(self) -> str:
        if self.tensor == POSITIONS:
            return str(self.index[0])
        text = f"{self.tensor}[{', '.join(map(str, self.index))}]"
        return text if self.pad is None else f"pad({text}, {number_text(self.pad)})"


@dataclass(frozen=True)
class Const:
    """A number."""

    value: float

    def __str__(self) -> str:
        return number_text(self.value)


_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


@dataclass(frozen=True)
class Apply:
    """An element-wise function of expressions; `function` is one of `FUNCTIONS`."""

    function: str
    args: tuple[Expr, ...]

    def __str__(self) -> str:
        if self.function in _INFIX:
            return f"({self.args[0]} {_INFIX[self.function]} {self.args[1]})"
        if self.function in COMPARISONS:
            a, b, yes, no = self.args
            return f"where({a} {self.function} {b}, {yes}, {no})"
        if self.function.startswith(GATHER):
            return _gather_text(self)
        return f"{self.function}({', '.join(map(str, self.args))})"


Expr = Access | Const | Apply


def _gather_text(gather: Apply) -> str:
    table, by = gather.args
    assert isinstance(table, Access)
    subscripts = list(map(str, table.index))
    subscripts[int(gather.function.removeprefix(GATHER))] = str(by)
    return f"{table.tensor}[{', '.join(subscripts)}]"


_REDUCTION_TEXT = {None: "=", "add": "+=", "max": "max=", "min": "min=", "mul": "*="}


def parts(expr: Expr) -> Iterator[Expr]:
    """List an expression and all expressions in it, each before its arguments, left to right."""
    waiting: list[Expr] = [expr]
    while waiting:
        expr = waiting.pop()
        yield expr
        if isinstance(expr, Apply):
            waiting += reversed(expr.args)


def rewritten(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Return an expression in which others replace some parts.

    Args:
        expr: what is rewritten.
        change: returns what stands for a part; None looks at the part's arguments.
    """
    if (new := change(expr)) is not None:
        return new
    if isinstance(expr, Apply):
        return Apply(expr.function, tuple([rewritten(arg, change) for arg in expr.args]))
    return expr


def accesses(expr: Expr) -> Iterator[Access]:
    """List the accesses of an expression, left to right."""
    return (part for part in parts(expr) if isinstance(part, Access))


def applied(expr: Expr) -> Iterator[Apply]:
    """List the functions that an expression applies, each before those in its arguments."""
    return (part for part in parts(expr) if isinstance(part, Apply))


@dataclass(frozen=True)
class Statement:
    """`target (reduce)= value`, over all axes that it names.

    A reduction starts from its identity: `+=` does not read the target's old content.

    Args:
        target: what is written; each subscript is one axis, plus an offset for concatenation. Where one is
            more, the target is spread: see `planish.levels.loops.lang.draft`.
        reduce: one of `IDENTITY`, or None for plain assignment.
        value: what is computed.
    """

    target: Access
    reduce: str | None
    value: Expr

    @cached_property
    def output_axes(self) -> tuple[str, ...]:
        """The axes of the target, outermost first."""
        return tuple(axis for index in self.target.index for axis, _ in index.terms)

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """All axes: the target's, then the reduced ones in the order that they are named."""
        named = (axis for a in accesses(self.value) for index in a.index for axis, _ in index.terms)
        return tuple(dict.fromkeys((*self.output_axes, *named)))

    @cached_property
    def reduced_axes(self) -> tuple[str, ...]:
        """The axes that the target does not have."""
        return self.axes[len(self.output_axes) :]

    def __str__(self) -> str:
        return f"{self.target} {_REDUCTION_TEXT[self.reduce]} {self.value}"


@dataclass(frozen=True)
class TensorType:
    """The shape and element type of a tensor, row-major and contiguous."""

    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def size(self) -> int:
        """Return how many elements it has."""
        return prod(self.shape)

    def strides(self) -> tuple[int, ...]:
        """Elements between neighbors along each dimension."""
        return tuple([prod(self.shape[d + 1 :]) for d in range(len(self.shape))])


@dataclass(frozen=True)
class Program:
    """A checked tensor computation; `planish.levels.loops.lang.parse` and
    `planish.levels.loops.lang.notation` make them.

    Args:
        statements: in order of execution; each tensor is written once, or in disjoint parts.
        sizes: (axis, extent), sorted by axis.
        types: (tensor, type), inputs first in the order that they are named, then the written ones.
        constants: inputs that keep their value from call to call (weights), so that they may be packed
            once, ahead of time; sorted.
        backend: the code generator that the user asked for; empty for the preferred one. It is of the target,
            and not of the text.
    """

    statements: tuple[Statement, ...]
    sizes: tuple[tuple[str, int], ...]
    types: tuple[tuple[str, TensorType], ...]
    constants: tuple[str, ...] = ()
    backend: str = field(default="", compare=False)

    level = "loops"

    @cached_property
    def size(self) -> dict[str, int]:
        """Axis to extent."""
        return dict(self.sizes)

    @cached_property
    def type(self) -> dict[str, TensorType]:
        """Tensor to type."""
        return dict(self.types)

    @cached_property
    def arithmetic(self) -> str:
        """The type that everything is computed in; inputs and outputs may be stored in a narrower one."""
        return ARITHMETIC[self.types[0][1].dtype]

    @cached_property
    def written(self) -> tuple[str, ...]:
        """Tensors that some statement writes, in order."""
        return tuple(dict.fromkeys(s.target.tensor for s in self.statements))

    @cached_property
    def read(self) -> tuple[str, ...]:
        """Tensors that some statement reads, in order."""
        return tuple(dict.fromkeys(a.tensor for s in self.statements for a in accesses(s.value)))

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Tensors that are read and never written, in order."""
        return tuple(t for t in self.read if t not in self.written and t != POSITIONS)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Tensors that are written and never read, in order."""
        return tuple(t for t in self.written if t not in self.read)

    @cached_property
    def integer_indices(self) -> frozenset[str]:
        """Inputs of integers that subscript tensors, where all else is computed in another type."""
        if ARITHMETIC[self.arithmetic] in INDICES:
            return frozenset()
        return frozenset(t for t in self.inputs if self.type[t].dtype in INDICES)

    @cached_property
    def quad_sums(self) -> frozenset[str]:
        """Tensors that are sums of products of `QUADS`."""
        types = {name: kind.dtype for name, kind in self.types}
        return frozenset([s.target.tensor for s in self.statements if summed_type(s, types) in QUADS])

    @cached_property
    def packed(self) -> frozenset[str]:
        """Types of `PACKED` that inputs have."""
        return frozenset([kind.dtype for _, kind in self.types if kind.dtype in PACKED])

    @cached_property
    def flops(self) -> int:
        """Arithmetic operations in all; a reduction step counts as one, a function as one."""
        types = {name: kind.dtype for name, kind in self.types}
        return sum(
            prod(self.size[axis] for axis in s.axes)
            * (count_operations(s.value) + (s.reduce is not None))
            * PACKED.get(summed_type(s, types), 1)
            for s in self.statements
        )

    @property
    def text(self) -> str:
        """Canonical text, which the notation reads back: statements, then sizes, types and shapes."""
        return self._text

    @cached_property
    def _text(self) -> str:
        body = "; ".join(map(str, self.statements))
        sizes = ",".join(f"{axis}={n}" for axis, n in self.sizes)
        shown = [(name, t) for name, t in self.types if name != POSITIONS]
        shapes = " ".join(f"{name}:{t.dtype}[{','.join(map(str, t.shape))}]" for name, t in shown)
        constants = f" | constant {','.join(self.constants)}" if self.constants else ""
        return f"{body} | {sizes} | {shapes}{constants}"

    def with_constants(self, names: Iterable[str]) -> Program:
        """Return the program with these inputs as its constants.

        Raises:
            ProgramError: a name is not an input's.
        """
        chosen = sorted(set(names))
        for name in chosen:
            if name not in self.inputs:
                raise ProgramError(
                    f"'{name}' is not an input, so it cannot be constant", did_you_mean(name, self.inputs)
                )
        return replace(self, constants=tuple(chosen))

    @cached_property
    def hash(self) -> str:
        """The content hash of the text."""
        return content_hash(self.text)


def count_operations(expr: Expr) -> int:
    """Count the functions in an expression."""
    return sum(1 for _ in applied(expr))


def summed_type(statement: Statement, types: Mapping[str, str]) -> str:
    """Return a type of `PACKED`, if a statement is a sum of products of its elements; else ''.

    The sum of products of one tensor of each of `QUADS` has the first of them.
    """
    match statement.value:
        case Apply("mul", (Access(tensor=a), Access(tensor=b))) if statement.reduce == "add":
            found = {types[a], types[b]}
            return UINT8X4 if found == set(QUADS) else BFLOAT16X2 if found == {BFLOAT16X2} else ""
        case _:
            return ""


def factors_of(expr: Expr) -> list[Expr]:
    """List the factors of a product, however it is nested; of any other expression, itself."""
    if isinstance(expr, Apply) and expr.function == "mul":
        return [factor for arg in expr.args for factor in factors_of(arg)]
    return [expr]


_Owner = TypeVar("_Owner")
_Computed = TypeVar("_Computed")


class lazy(Generic[_Owner, _Computed]):  # noqa: N801 (used like `property`)
    """A property that is computed on first use and kept, as `functools.cached_property` is.

    That one takes a lock in Python 3.11, which is a good part of the cost where values are small and many.
    Two threads that ask for the first time at once may both compute it.
    """

    def __init__(self, compute: Callable[[_Owner], _Computed]) -> None:
        self._compute: Callable[[Any], _Computed] = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: _Owner, owner: type[_Owner]) -> _Computed:
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
