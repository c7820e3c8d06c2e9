"""Axes, tensors and the operators between them; each assignment to a tensor becomes a statement."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from planish.core.errors import ProgramError
from planish.loops.lang.comparisons import chosen, compared
from planish.loops.lang.draft import Draft, Linear
from planish.loops.lang.gathering import gather
from planish.loops.lang.program import Access, Apply, Const, Expr

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
        size: its extent, in elements; None where a shape tells it.
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


def apply(function: str, *values: Expression | float) -> Expression:
    """Apply a function of `FUNCTIONS`; one of two arguments reduces when it is given one."""
    args = [_expression(value) for value in values]
    tensors = tuple(t for a in args for t in a.tensors)
    return Expression(
        Apply(function, tuple(a.expr for a in args)), tensors, tuple(s for a in args for s in a.sizes)
    )


def compare(test: str, left: Expression | float, right: Expression | float) -> Comparison:
    """Compare two values by one of `planish.loops.lang.comparisons.TESTS`."""
    a, b = _expression(left), _expression(right)
    return Comparison(compared(test, a.expr, b.expr), a.tensors + b.tensors, a.sizes + b.sizes)


def choose(condition: Expression, yes: Expression | float, no: Expression | float) -> Expression:
    """Choose between two values by a third."""
    parts = [condition, _expression(yes), _expression(no)]
    tensors = tuple(t for p in parts for t in p.tensors)
    return Expression(chosen(*(p.expr for p in parts)), tensors, tuple(s for p in parts for s in p.sizes))


@dataclass(frozen=True)
class Written:
    """A statement, and its place among all statements of the process."""

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
        shape: extents; None where the axes tell them.
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
        subscripts, value = _subscripts(key), _assignment(value)
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


def _subscripts(key: Key) -> tuple[Subscript, ...]:
    return tuple(map(_subscript, key if isinstance(key, tuple) else (key,)))
