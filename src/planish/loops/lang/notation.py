"""The notation in Python: `C[m, n] += A[m, k] * B[k, n]` (thesis 3.5.1, figure 3.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from planish.core.errors import ProgramError
from planish.loops.lang.draft import position as positions_of
from planish.loops.lang.inference import infer
from planish.loops.lang.program import Access, Program
from planish.loops.lang.symbols import Axis, Element, Expression, Tensor, apply, axes, choose, compare

__all__ = [
    "Axis",
    "Tensor",
    "argmax",
    "argmin",
    "axes",
    "equal",
    "erf",
    "exp",
    "log",
    "maximum",
    "minimum",
    "not_equal",
    "pad",
    "position",
    "program",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "relu",
    "sigmoid",
    "sqrt",
    "tanh",
    "where",
]


def pad(element: Element, value: float) -> Expression:
    """Read a number where an access leaves its tensor: `pad(I[c, y + r - 1], 0)`."""
    if not isinstance(element.expr, Access):
        raise ProgramError(f"{element.expr} cannot be padded", "Every index is brought into range.")
    access = element.expr
    return Expression(Access(access.tensor, access.index, float(value)), element.tensors, element.sizes)


def relu(x: Expression) -> Expression:
    """Give the greater of x and 0."""
    return apply("relu", x)


def exp(x: Expression) -> Expression:
    """Give e to the power of x."""
    return apply("exp", x)


def log(x: Expression) -> Expression:
    """Give the natural logarithm."""
    return apply("log", x)


def sqrt(x: Expression) -> Expression:
    """Give the square root."""
    return apply("sqrt", x)


def tanh(x: Expression) -> Expression:
    """Give the hyperbolic tangent."""
    return apply("tanh", x)


def sigmoid(x: Expression) -> Expression:
    """Give 1 / (1 + exp(-x))."""
    return apply("sigmoid", x)


def erf(x: Expression) -> Expression:
    """Give the error function, as in the exact GELU: `0.5 * x * (1 + erf(x / sqrt(2)))`."""
    return apply("erf", x)


def maximum(a: Expression | float, b: Expression | float) -> Expression:
    """Give the greater of two."""
    return apply("max", a, b)


def minimum(a: Expression | float, b: Expression | float) -> Expression:
    """Give the lesser of two."""
    return apply("min", a, b)


def equal(a: Expression | float, b: Expression | float) -> Expression:
    """Give 1 where two are equal, else 0; the other comparisons are the operators `<`, `<=`, `>` and `>=`."""
    return compare("==", a, b)


def not_equal(a: Expression | float, b: Expression | float) -> Expression:
    """Give 1 where two are not equal, else 0."""
    return compare("!=", a, b)


def where(condition: Expression, x: Expression | float, y: Expression | float) -> Expression:
    """Give x where the condition holds or is a number other than 0, else y."""
    return choose(condition, x, y)


def position(axis: Axis) -> Expression:
    """Give the number of an axis's element, from 0 on: `where(position(k) <= position(q), S[q, k], -inf)`."""
    ((name, _),) = axis.linear.terms
    return Expression(positions_of(name), (), axis.sizes)


def argmax(x: Expression) -> Expression:
    """Give where the greatest is, the first of equals, along the axis that the target does not have."""
    return apply("argmax", x)


def argmin(x: Expression) -> Expression:
    """Give where the least is, the first of equals, along the axis that the target does not have."""
    return apply("argmin", x)


def reduce_sum(x: Expression) -> Expression:
    """Sum over the axes that the statement names nowhere else."""
    return apply("add", x)


def reduce_prod(x: Expression) -> Expression:
    """Multiply over the axes that the statement names nowhere else."""
    return apply("mul", x)


def reduce_max(x: Expression) -> Expression:
    """Take the greatest over the axes that the statement names nowhere else."""
    return apply("max", x)


def reduce_min(x: Expression) -> Expression:
    """Take the least over the axes that the statement names nowhere else."""
    return apply("min", x)


def program(*outputs: Tensor, sizes: Mapping[str, int] | None = None, dtype: str | None = None) -> Program:
    """Make the program that computes tensors: all statements that they need, in the order of writing.

    It equals the program of the same statements as text.

    Args:
        outputs: tensors that statements write.
        sizes: axis to extent, for axes that have none of their own and that no shape tells.
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
