"""The notation in Python: `C[m, n] += A[m, k] * B[k, n]` (thesis 3.5.1, figure 3.4).

Axes and tensors have operators; each assignment to a tensor becomes a statement.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planish.core.errors import ProgramError
from planish.levels.loops.lang.draft import Draft, Linear, chosen, compared, gather
from planish.levels.loops.lang.draft import position as positions_of
from planish.levels.loops.lang.inference import infer
from planish.levels.loops.lang.program import Access, Apply, Const, Expr, Program

_order = itertools.count()


@dataclass(frozen=True)
class Subscript:
    """A sum of axes with whole coefficients, plus an offset: `2*y + r - 1`.

    Args:
        linear: the sum.
        sizes: axis to extent, for the axes that have one.
    """

    linear: Linear
    sizes: tuple[tuple[str, int], ...] = ()

    def __add__(self, other: Subscript | int) -> Subscript:
        other = _subscript(other)
        return Subscript(self.linear.plus(other.linear), self.sizes + other.sizes)

    def __radd__(self, other: int) -> Subscript:
        return _subscript(other) + self

    def __mul__(self, factor: int) -> Subscript:
        return Subscript(self.linear.times(factor), self.sizes)

    __rmul__ = __mul__

    def __neg__(self) -> Subscript:
        return self * -1

    def __sub__(self, other: Subscript | int) -> Subscript:
        return self + -_subscript(other)

    def __rsub__(self, other: int) -> Subscript:
        return _subscript(other) - self


class Axis(Subscript):
    """A named axis.

    Args:
        name: unique in the program.
        size: its extent, in elements; None where a shape determines it.
    """

    def __init__(self, name: str, size: int | None = None) -> None:
        super().__init__(Linear(((name, 1),)), () if size is None else ((name, size),))


def axes(names: str) -> tuple[Axis, ...]:
    """Make axes without sizes: `m, n, k = axes("m n k")`."""
    return tuple(Axis(name) for name in names.split())


def _subscript(value: Subscript | int) -> Subscript:
    return value if isinstance(value, Subscript) else Subscript(Linear((), value))


@dataclass(frozen=True)
class Expression:
    """A value to be computed, with the tensors and the sizes that it names."""

    expr: Expr
    tensors: tuple[Tensor, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()

    def __add__(self, other: Expression | float) -> Expression:
        return apply("add", self, other)

    def __radd__(self, other: float) -> Expression:
        return apply("add", other, self)

    def __sub__(self, other: Expression | float) -> Expression:
        return apply("sub", self, other)

    def __rsub__(self, other: float) -> Expression:
        return apply("sub", other, self)

    def __mul__(self, other: Expression | float) -> Expression:
        return apply("mul", self, other)

    def __rmul__(self, other: float) -> Expression:
        return apply("mul", other, self)

    def __truediv__(self, other: Expression | float) -> Expression:
        return apply("div", self, other)

    def __rtruediv__(self, other: float) -> Expression:
        return apply("div", other, self)

    def __neg__(self) -> Expression:
        return apply("neg", self)

    def __abs__(self) -> Expression:
        return apply("abs", self)

    def __lt__(self, other: Expression | float) -> Comparison:
        return compare("<", self, other)

    def __le__(self, other: Expression | float) -> Comparison:
        return compare("<=", self, other)

    def __gt__(self, other: Expression | float) -> Comparison:
        return compare(">", self, other)

    def __ge__(self, other: Expression | float) -> Comparison:
        return compare(">=", self, other)

    def __or__(self, other: Expression | float) -> Assignment:
        return Assignment(None, (self, _expression(other)))

    def __ror__(self, other: float) -> Assignment:
        return Assignment(None, (_expression(other), self))


class Comparison(Expression):
    """1 where it holds, 0 elsewhere; `where` chooses by it."""

    def __bool__(self) -> bool:
        raise ProgramError(
            "a comparison of elements is not true or false as a whole",
            "Write where(a < b, x, y); a < b < c is where(a < b, b < c, 0).",
        )


@dataclass(frozen=True)
class Assignment:
    """The right side of a statement: how it reduces, and its parts, which `|` concatenates."""

    reduce: str | None
    parts: tuple[Expression, ...]

    def __or__(self, other: Expression | float) -> Assignment:
        return Assignment(self.reduce, (*self.parts, _expression(other)))


class Element(Expression):
    """An element of a tensor; `+=` and `*=` reduce into it."""

    def __iadd__(self, value: Expression | Assignment) -> Assignment:
        return Assignment("add", _assignment(value).parts)

    def __imul__(self, value: Expression | Assignment) -> Assignment:
        return Assignment("mul", _assignment(value).parts)


def _expression(value: Expression | float) -> Expression:
    return value if isinstance(value, Expression) else Expression(Const(float(value)))


def _assignment(value: Expression | Assignment | float) -> Assignment:
    return value if isinstance(value, Assignment) else Assignment(None, (_expression(value),))


def _named(parts: Iterable[Expression]) -> tuple[tuple[Tensor, ...], tuple[tuple[str, int], ...]]:
    """Return the tensors and the sizes that expressions name."""
    parts = tuple(parts)
    return tuple(t for p in parts for t in p.tensors), tuple(s for p in parts for s in p.sizes)


def apply(function: str, *values: Expression | float) -> Expression:
    """Apply a function of `FUNCTIONS`; one of two arguments reduces when it is given one."""
    args = [_expression(value) for value in values]
    return Expression(Apply(function, tuple(a.expr for a in args)), *_named(args))


def compare(test: str, left: Expression | float, right: Expression | float) -> Comparison:
    """Compare two values by one of `planish.levels.loops.lang.draft.TESTS`."""
    a, b = _expression(left), _expression(right)
    return Comparison(compared(test, a.expr, b.expr), *_named((a, b)))


@dataclass(frozen=True)
class Written:
    """A statement, and its index among all statements of the process."""

    order: int
    draft: Draft
    tensors: tuple[Tensor, ...]
    sizes: tuple[tuple[str, int], ...]


Key = Subscript | int | tuple[Subscript | int, ...]


class Tensor:
    """A tensor; assigning to its elements writes statements, which `program` collects.

    Args:
        name: unique in the program.
        dtype: the element type; None takes that of the program.
        shape: extents; None where the axes determine them.
    """

    # Else Python would take elements 0, 1, 2 and so on, without end.
    __iter__ = None

    def __init__(self, name: str, dtype: str | None = None, shape: Iterable[int] | None = None) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = None if shape is None else tuple(shape)
        self.written: list[Written] = []

    def __getitem__(self, key: Key | tuple[Subscript | int | Element, ...] | Element) -> Element:
        subscripts = [
            s if isinstance(s, Element) else _subscript(s)
            for s in (key if isinstance(key, tuple) else (key,))
        ]
        sizes = tuple(size for s in subscripts for size in s.sizes)
        by = [s for s in subscripts if isinstance(s, Element)]
        index = [_access(s) if isinstance(s, Element) else s.linear.index() for s in subscripts]
        return Element(gather(self.name, index), (self, *(t for s in by for t in s.tensors)), sizes)

    def __setitem__(self, key: Key, value: Expression | Assignment | float) -> None:
        subscripts = tuple(map(_subscript, key if isinstance(key, tuple) else (key,)))
        value = _assignment(value)
        draft = Draft(
            self.name, tuple(s.linear for s in subscripts), value.reduce, tuple(p.expr for p in value.parts)
        )
        tensors = tuple(t for p in value.parts for t in p.tensors)
        sizes = [size for s in (*subscripts, *value.parts) for size in s.sizes]
        self.written.append(Written(next(_order), draft, tensors, tuple(sizes)))


def _access(element: Element) -> Access:
    if not isinstance(element.expr, Access):
        raise ProgramError(f"{element.expr} subscripts a tensor", "An index is an element, as in E[I[t], d].")
    return element.expr


def pad(element: Element, value: float) -> Expression:
    """Read a number where an access leaves its tensor: `pad(I[c, y + r - 1], 0)`."""
    if not isinstance(element.expr, Access):
        raise ProgramError(f"{element.expr} cannot be padded", "Every index is brought into range.")
    access = element.expr
    return Expression(Access(access.tensor, access.index, float(value)), element.tensors, element.sizes)


def relu(x: Expression) -> Expression:
    """Return the greater of x and 0."""
    return apply("relu", x)


def exp(x: Expression) -> Expression:
    """Return e to the power of x."""
    return apply("exp", x)


def log(x: Expression) -> Expression:
    """Return the natural logarithm."""
    return apply("log", x)


def sqrt(x: Expression) -> Expression:
    """Return the square root."""
    return apply("sqrt", x)


def tanh(x: Expression) -> Expression:
    """Return the hyperbolic tangent."""
    return apply("tanh", x)


def sigmoid(x: Expression) -> Expression:
    """Return 1 / (1 + exp(-x))."""
    return apply("sigmoid", x)


def erf(x: Expression) -> Expression:
    """Return the error function, as in the exact GELU: `0.5 * x * (1 + erf(x / sqrt(2)))`."""
    return apply("erf", x)


def maximum(a: Expression | float, b: Expression | float) -> Expression:
    """Return the greater of two."""
    return apply("max", a, b)


def minimum(a: Expression | float, b: Expression | float) -> Expression:
    """Return the lesser of two."""
    return apply("min", a, b)


def equal(a: Expression | float, b: Expression | float) -> Expression:
    """Return 1 where two are equal, else 0; other comparisons are the operators `<`, `<=`, `>`, `>=`."""
    return compare("==", a, b)


def not_equal(a: Expression | float, b: Expression | float) -> Expression:
    """Return 1 where two are not equal, else 0."""
    return compare("!=", a, b)


def where(condition: Expression, x: Expression | float, y: Expression | float) -> Expression:
    """Return x where the condition holds or is a number other than 0, else y."""
    parts = condition, _expression(x), _expression(y)
    return Expression(chosen(*(p.expr for p in parts)), *_named(parts))


def position(axis: Axis) -> Expression:
    """Return the number of an axis's element, from 0: `where(position(k) <= position(q), S[q, k], -inf)`."""
    ((name, _),) = axis.linear.terms
    return Expression(positions_of(name), (), axis.sizes)


def argmax(x: Expression) -> Expression:
    """Return the index of the greatest, the first of equals, along the axis that the target does not have."""
    return apply("argmax", x)


def argmin(x: Expression) -> Expression:
    """Return the index of the least, the first of equals, along the axis that the target does not have."""
    return apply("argmin", x)


def reduce_sum(x: Expression) -> Expression:
    """Sum over the axes that the statement names nowhere else."""
    return apply("add", x)


def reduce_prod(x: Expression) -> Expression:
    """Multiply over the axes that the statement names nowhere else."""
    return apply("mul", x)


def reduce_max(x: Expression) -> Expression:
    """Reduce by the maximum over the axes that the statement names nowhere else."""
    return apply("max", x)


def reduce_min(x: Expression) -> Expression:
    """Reduce by the minimum over the axes that the statement names nowhere else."""
    return apply("min", x)


def program(*outputs: Tensor, sizes: Mapping[str, int] | None = None, dtype: str | None = None) -> Program:
    """Make the program that computes tensors: all statements that they need, in the order of writing.

    It equals the program of the same statements as text.

    Args:
        outputs: tensors that statements write.
        sizes: axis to extent, for axes that have none of their own and that no shape determines.
        dtype: the element type of inputs and outputs; None takes the tensors' own, and for the rest the type
            that they are computed in, or else float32.

    Raises:
        ProgramError: the statements make no program; tensors share a name, or axes, or types differ.
    """
    tensors = _reachable(outputs)
    statements = sorted((w for t in tensors for w in t.written), key=lambda w: w.order)
    known = dict(sizes or {})
    for axis, extent in (size for w in statements for size in w.sizes):
        if known.setdefault(axis, extent) != extent:
            raise ProgramError(f"axis '{axis}' has two sizes, {known[axis]} and {extent}", "Give it one.")
    shapes = {t.name: t.shape for t in tensors if t.shape is not None}
    types = {t.name: t.dtype for t in tensors if t.dtype}
    return infer([w.draft for w in statements], known, shapes, dtype or types)


def _reachable(outputs: Iterable[Tensor]) -> list[Tensor]:
    """List tensors and all that their statements read, once each."""
    found: dict[str, Tensor] = {}
    waiting = list(outputs)
    while waiting:
        tensor = waiting.pop()
        known = found.setdefault(tensor.name, tensor)
        if known is not tensor:
            raise ProgramError(f"two tensors have the name '{tensor.name}'", "Give each its own.")
        waiting += [t for w in tensor.written for t in w.tensors if found.get(t.name) is not t]
    return list(found.values())
