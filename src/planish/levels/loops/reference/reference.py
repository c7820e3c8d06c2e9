"""Reference results of a program, by NumPy, with the error that a kernel may make.

Floating-point programs are computed in float64. Integers are computed in int32, modulo 2^32, so that
every order of a sum is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, copysign, isinf, prod

import numpy as np

from planish.levels.loops.lang.draft import axes_of, collisions, gathers, is_gather, is_spread, parts_of
from planish.levels.loops.lang.element_types import INTEGER, nearest_integer
from planish.levels.loops.lang.program import (
    IDENTITY,
    POSITIONS,
    Access,
    Apply,
    Const,
    Expr,
    Program,
    Statement,
    accesses,
)
from planish.levels.loops.reference.bounds import (
    UFUNC,
    VALUES,
    Bounded,
    Precision,
    apply,
    bounded,
    combined,
    constant,
    exactly,
    filled_with,
    quantum_of,
    random_sum_error,
    representable,
    scatter_store,
    with_special,
)
from planish.levels.loops.reference.checking import Expected, ReferenceOutputs
from planish.levels.loops.reference.inputs import canceled, is_long
from planish.levels.loops.reference.packed import numbers_of, over_numbers
from planish.levels.loops.reference.views import (
    CHUNK,
    Array,
    Arrays,
    contract,
    cut,
    overhang,
    table_view,
    view,
    within,
)

_EXACT = 2.0**53
"""Integers below it are exact in float64."""

Trace = list[tuple[Apply, Sequence[Array]] | None]
"""Functions that were applied and their arguments, in order of evaluation; None ends each expression."""


def _integers(
    program: Program,
    inputs: Arrays,
    block: int,
    changes: Mapping[str, Callable[[Array], Array]],
    trace: Trace | None,
) -> dict[str, Expected]:
    tensors: dict[str, Array] = {name: inputs[name].astype(np.int32) for name in program.inputs}
    if kind := program.type.get(POSITIONS):
        tensors[POSITIONS] = np.arange(kind.size, dtype=np.int32)
    for s in program.statements:
        kind = program.type[s.target.tensor]
        # Several statements may write parts of one tensor, and what none writes is zero.
        whole = tensors.setdefault(s.target.tensor, np.zeros(kind.shape, np.int32))
        if is_spread(s.target):
            whole.fill(nearest_integer(filled_with(s.reduce)))
            part = np.empty([program.size[axis] for axis in s.output_axes], np.int32)
            _compute(s, part, tensors, program, block, trace)
            combined(s, whole, part, program.size)
        else:
            out = view(whole, s.target.index, s.output_axes, program.size)
            _compute(s, out, tensors, program, block, trace)
        if s.target.tensor in changes:
            whole[...] = changes[s.target.tensor](whole)
    exact = {name: tensors[name] for name in program.outputs}
    return {name: Expected(array, array, array, array.dtype) for name, array in exact.items()}


def _compute(
    statement: Statement, out: Array, tensors: Arrays, program: Program, block: int, trace: Trace | None
) -> None:
    """Compute a statement into a view of its target, with a dimension for each of its axes."""
    leaves = {a: _integer_leaf(a, statement, tensors, program) for a in accesses(statement.value)}
    factors = _factors(statement, leaves)
    if factors:
        # By way of int64, whose lowest bits are taken: beyond int32 the cast from float64 is undefined.
        out[...] = contract(factors[0], factors[1], out.ndim).astype(np.int64)
        return
    if statement.reduce:
        out.fill(nearest_integer(IDENTITY[statement.reduce]))
    extents = [program.size[axis] for axis in statement.axes]
    for window in cut(extents, [range(len(extents))], block):
        shape = [w.stop - w.start for w in window]
        terms = np.broadcast_to(_value(statement.value, leaves, window, trace), shape)
        if trace is not None:
            trace.append(None)
        here = out[(*window[: out.ndim], ...)]
        if statement.reduce:
            ufunc = UFUNC[statement.reduce]
            inner = tuple(range(out.ndim, len(shape)))
            terms = ufunc(here, ufunc.reduce(terms, axis=inner, dtype=np.int32))
        here[...] = terms


def _integer_leaf(access: Access, statement: Statement, tensors: Arrays, program: Program) -> Array:
    array = tensors[access.tensor]
    around = overhang(access, array.shape, program.size)
    if access.pad is not None:
        array = np.pad(array, around, constant_values=nearest_integer(access.pad))
    return view(array, access.index, statement.axes, program.size, [before for before, _ in around])


def _value(
    expr: Expr, leaves: Mapping[Access, Array], window: tuple[slice, ...], trace: Trace | None
) -> Array:
    match expr:
        case Const(value=value):
            # Those of programs are integers, but a mistake that is made on purpose takes half of one.
            integer = value if isinf(value) else copysign(ceil(abs(value)), value)
            return np.asarray(nearest_integer(integer), np.int32)
        case Access():
            return within(leaves[expr], window)
        case Apply(function=function, args=args):
            values = [_value(arg, leaves, window, trace) for arg in args]
            if trace is not None:
                trace.append((expr, values))
            # The zero of `VALUES` is not an integer.
            return np.maximum(values[0], np.int32(0)) if function == "relu" else VALUES[function](*values)


def _factors(statement: Statement, leaves: Mapping[Access, Array]) -> tuple[Array, Array] | None:
    """Return the factors of a sum of products, if matrix multiplication in float64 is exact."""
    match statement.value:
        case Apply(function="mul", args=(Access() as a, Access() as b)) if statement.reduce == "add":
            both = leaves[a].astype(np.float64), leaves[b].astype(np.float64)
            terms = prod(n for n in np.broadcast_shapes(both[0].shape, both[1].shape))
            # The worst case of every partial sum, so that no order of additions rounds.
            return both if terms * np.abs(both[0]).max() * np.abs(both[1]).max() < _EXACT else None
        case _:
            return None


BLOCK = 1 << 20
"""Elements that are held at once beyond the tensors themselves."""
MANY = 1 << 14
"""Terms of a sum from which on the statistical bound is tried, where the sum cannot be exact."""

_PARTS = 16
"""Parts of a long sum that are evaluated, at least."""
SAFETY_FACTOR = 8
"""Bound of any partial sum over the largest of those that are evaluated."""

_Window = tuple[slice, ...]


def reference(
    program: Program,
    inputs: Arrays,
    block: int = BLOCK,
    changes: Mapping[str, Callable[[Array], Array]] | None = None,
    trace: Trace | None = None,
) -> ReferenceOutputs:
    """Compute a program in float64, and how far a correct kernel's outputs may be off; integers exactly.

    Args:
        program: what is computed.
        inputs: every input, of the shape in the program.
        block: elements that may be held at once beyond the tensors themselves.
        changes: of tensors, once they are computed: name to what makes others of the same shape of them.
        trace: filled with what is applied to which arguments.

    Returns:
        Output to its elements, with their tolerances.
    """
    if (whole := over_numbers(program)) is not program:
        return reference(whole, numbers_of(program, inputs), block, changes, trace)
    if program.arithmetic == INTEGER:
        return ReferenceOutputs(_integers(program, inputs, block, changes or {}, trace))
    precision = Precision.of(program.arithmetic)
    tensors = {name: exactly(inputs[name]) for name in program.inputs}
    if kind := program.type.get(POSITIONS):
        tensors[POSITIONS] = Bounded(np.arange(kind.size, dtype=np.float64), None, 1.0, float(kind.size - 1))
    with np.errstate(all="ignore"):
        for statement in program.statements:
            result = _result(_statement_eval(statement, tensors, program, block, trace))
            target = statement.target
            if is_spread(target):
                kind = program.type[target.tensor]
                tensors[target.tensor] = scatter_store(statement, result, kind, program.size, precision)
            else:
                tensors[target.tensor] = _written(target, result, tensors, program)
            if changes and target.tensor in changes:
                tensors[target.tensor] = tensors[target.tensor].map(changes[target.tensor])
    return ReferenceOutputs(
        {name: Expected.of(tensors[name], precision, program.type[name].dtype) for name in program.outputs}
    )


def _written(target: Access, part: Bounded, tensors: Mapping[str, Bounded], program: Program) -> Bounded:
    """Store a statement's result in the tensor."""
    shape = program.type[target.tensor].shape
    if part.value.shape == shape:
        return part
    whole = tensors.get(target.tensor) or Bounded(np.zeros(shape), None, part.quantum, 0.0)
    index = tuple(slice(i.offset, i.offset + n) for i, n in zip(target.index, part.value.shape, strict=True))
    whole.value[index] = part.value
    error = whole.error
    if part.error is not None:
        error = np.zeros(shape) if error is None else error
        error[index] = part.error
    return Bounded(whole.value, error, min(whole.quantum, part.quantum), max(whole.largest, part.largest))


@dataclass(frozen=True)
class StatementEval:
    """A statement over its iteration space; its arrays have a dimension for each axis, the target's first.

    Args:
        statement: what is computed.
        axes: axis to extent.
        leaves: access to a view of its elements; extent 1 where it lacks an axis. A gather to a view of its
            table, with the dimension that is gathered after the axes.
        precision: of the kernel.
        block: elements that may be held at once.
        is_long: whether it is a long sum.
        collisions: how many results go into one element of the target at most.
        trace: filled with what is applied.
    """

    statement: Statement
    axes: Mapping[str, int]
    leaves: Mapping[Expr, Bounded]
    precision: Precision
    block: int
    is_long: bool
    collisions: int
    trace: Trace | None

    @property
    def outputs(self) -> int:
        """Count of the target's axes."""
        return len(self.statement.output_axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the target's axes."""
        return tuple(self.axes.values())[: self.outputs]

    @property
    def terms_per_output(self) -> int:
        """Count of the terms of a reduction, with all that go into an element of the target."""
        return self.collisions * prod(self.axes[axis] for axis in self.statement.reduced_axes)

    def evaluate(self, expr: Expr, window: _Window) -> Bounded:
        """Evaluate an expression at some points; extent 1 where it lacks an axis."""
        result = self._part(expr, window)
        if self.trace is not None:
            self.trace.append(None)
        return result

    def _part(self, expr: Expr, window: _Window) -> Bounded:
        match expr:
            case Const(value=value):
                return constant(value, len(self.axes), self.precision)
            case Access():
                return self.leaves[expr].map(lambda a: within(a, window).astype(np.float64, copy=False))
            case Apply() if is_gather(expr):
                return self._gathered(expr, window)
            case Apply(function=function, args=args):
                values = [self._part(arg, window) for arg in args]
                if self.trace is not None:
                    self.trace.append((expr, [each.value for each in values]))
                return apply(function, values, self.precision)

    def _gathered(self, gather: Expr, window: _Window) -> Bounded:
        """Look indices up; where rounding may change one, nothing is known."""
        _, _, by = parts_of(gather)
        table, index = self.leaves[gather], self._part(by, window)
        shape = table.value.shape
        there = tuple(w if n > 1 else slice(None) for w, n in zip(window, shape, strict=False))
        indices = np.clip(np.nan_to_num(np.trunc(index.value)), 0, shape[-1] - 1).astype(np.intp)[..., None]

        def look_up(array: Array) -> Array:
            return np.take_along_axis(array[there], indices, -1)[..., 0].astype(np.float64, copy=False)

        found = table.map(look_up)
        if index.error is None:
            return found
        return replace(found, error=np.where(index.error > 0, np.inf, found.errors))

    def windows(self, *groups: Sequence[str], block: int = 0) -> Iterator[_Window]:
        """Cut the iteration space, so that an array over any of these groups of axes stays in the block."""
        block = block or self.block
        positions = [[p for p, axis in enumerate(self.axes) if axis in group] for group in groups]
        return cut(list(self.axes.values()), positions, block)


def _statement_eval(
    statement: Statement, tensors: Mapping[str, Bounded], program: Program, block: int, trace: Trace | None
) -> StatementEval:
    axes = {axis: program.size[axis] for axis in statement.axes}
    leaves: dict[Expr, Bounded] = {
        a: _leaf(a, tensors[a.tensor], list(axes), program.size) for a in accesses(statement.value)
    }
    for g in gathers(statement.value):
        table, _, _ = parts_of(g)
        leaves[g] = tensors[table.tensor].map(partial(table_view, g, axes=list(axes), sizes=program.size))
    precision, many = Precision.of(program.arithmetic), collisions(statement.target, program.size)
    return StatementEval(statement, axes, leaves, precision, block, is_long(statement, program), many, trace)


def _leaf(access: Access, tensor: Bounded, axes: Sequence[str], sizes: Mapping[str, int]) -> Bounded:
    around = overhang(access, tensor.value.shape, sizes)
    before = [b for b, _ in around]
    if access.pad is None or not any(map(any, around)):
        return tensor.map(lambda a: view(a, access.index, axes, sizes, before))
    pad = access.pad
    # In float64: what is padded with need not be a number of the tensor's type.
    padded = np.pad(tensor.value.astype(np.float64, copy=False), around, constant_values=pad)
    value = view(padded, access.index, axes, sizes, before)
    error = None
    if tensor.error is not None:
        error = view(np.pad(tensor.error, around), access.index, axes, sizes, before)
    largest = max(tensor.largest, abs(pad) if np.isfinite(pad) else 0.0)
    return Bounded(value, error, min(tensor.quantum, quantum_of(pad)), largest)


def _result(nest: StatementEval) -> Bounded:
    function = nest.statement.reduce
    if function is None:
        return _assigned(nest)
    return _summed(nest) if function == "add" else _reduced(nest, function)


def _assigned(nest: StatementEval) -> Bounded:
    # What is exact is a number of the kernel's type. And zeros take no memory before they are written.
    value, error, exact = np.empty(nest.shape, nest.precision.dtype), np.zeros(nest.shape), True
    quantum, largest = np.inf, 0.0
    for window in nest.windows(list(nest.axes), block=min(CHUNK, nest.block)):
        part = nest.evaluate(nest.statement.value, window)
        if part.error is not None:
            value, exact = value.astype(np.float64, copy=False), False
            error[window] = part.error
        value[window] = part.value
        quantum, largest = min(quantum, part.quantum), max(largest, part.largest)
    return Bounded(value, None if exact else error, quantum, largest)


def _reduced(nest: StatementEval, function: str) -> Bounded:
    """Reduce by max, min or mul; a product errs by a relative error for each factor."""
    ufunc, inner = UFUNC[function], tuple(range(nest.outputs, len(nest.axes)))
    value = np.full(nest.shape, IDENTITY[function])
    # Of a product the largest magnitude first, from which the error follows below.
    error = np.full(nest.shape, 1.0 if function == "mul" else 0.0)
    quantum, largest, exact, unknown = np.inf, 0.0, function != "mul", False
    for window in nest.windows(list(nest.axes)):
        shape = tuple(w.stop - w.start for w in window)
        part = nest.evaluate(nest.statement.value, window).map(partial(np.broadcast_to, shape=shape))
        index = window[: nest.outputs]
        unknown = unknown or part.unknown
        value[index] = ufunc(value[index], ufunc.reduce(part.value, axis=inner))
        if function == "mul":
            error[index] *= part.magnitude.prod(axis=inner)
        elif part.error is not None:
            # The greatest of several numbers errs by no more than the one of them that errs most.
            error[index] = np.maximum(error[index], part.error.max(axis=inner))
        quantum, largest = min(quantum, part.quantum), max(largest, part.largest)
        exact = exact and part.error is None
    if function != "mul":
        return Bounded(value, None if exact else error, quantum, largest)
    # The largest that the product can be, with a rounding for each factor, less the product itself.
    error = error * (1 + nest.precision.gamma(nest.terms_per_output)) - np.abs(value) + nest.precision.tiny
    error = np.where(np.isfinite(value) & (np.abs(value) > nest.precision.huge), np.inf, error)
    return bounded(value, with_special(value, error, unknown), 0.0)


def _summed(nest: StatementEval) -> Bounded:
    """Sum; exactly where the quantum allows it, and with the bound of any order otherwise.

    A long sum of terms of random signs stays small, and so do the errors of its additions.
    """
    first, second = factors(nest.statement.value)
    n = nest.terms_per_output
    value, magnitude, abs_sum = (np.zeros(nest.shape) for _ in range(3))
    quantum, largest, exact, unknown = np.inf, 0.0, True, False
    windows = list(nest.windows(axes_of(first), axes_of(second), nest.statement.output_axes))
    for window in windows:
        a, b = nest.evaluate(first, window), nest.evaluate(second, window)
        value[window[: nest.outputs]] += contract(a.value, b.value, nest.outputs)
        quantum, largest = min(quantum, a.quantum * b.quantum), max(largest, a.largest * b.largest)
        exact = exact and a.error is None and b.error is None
        unknown = unknown or a.unknown or b.unknown
    if exact and representable(n * largest, quantum, nest.precision):
        return Bounded(value, None, quantum, n * largest)
    if exact and nest.is_long and nest.collisions == 1:
        most = _partial_sum_bound(nest, first, second)
        if representable(most, quantum, nest.precision):
            return Bounded(value, None, quantum, most)
    doubtful, finite = np.zeros(nest.shape), bool(np.isfinite(value).all())
    # Magnitudes cost another pass; most inputs are chosen so that sums are exact and none is needed.
    for window in windows:
        a, b = nest.evaluate(first, window), nest.evaluate(second, window)
        index = window[: nest.outputs]
        magnitude[index] += contract(a.magnitude, b.magnitude, nest.outputs)
        if not exact:
            abs_sum[index] += contract(np.abs(a.value), np.abs(b.value), nest.outputs)
        if not (exact or finite):
            doubtful[index] += contract(_may_vanish(a), np.isinf(b.value) * 1.0, nest.outputs)
            doubtful[index] += contract(np.isinf(a.value) * 1.0, _may_vanish(b), nest.outputs)
    # How far the errors of the factors move the sum: sum((|a| + e)(|b| + f)) - sum(|a| |b|).
    propagated_error = magnitude - abs_sum if not exact else 0.0
    rounding_error = nest.precision.gamma(n + 1) * magnitude
    if n >= MANY and not unknown and nest.collisions == 1:
        most = _partial_sum_bound(nest, first, second)
        if most < magnitude.min(initial=np.inf):  # so the terms' signs are random
            rounding_error = np.minimum(rounding_error, random_sum_error(n, most, nest.precision))
    error = propagated_error + rounding_error + nest.precision.tiny
    # In some order a partial sum may overflow the kernel's type; an infinite sum may then be NaN.
    huge = nest.precision.huge
    error = np.where(np.isfinite(value) & (magnitude > huge), np.inf, error)
    unknown = unknown | (np.isinf(value) & (n * largest > huge)) | (doubtful > 0)
    return Bounded(value, with_special(value, error, unknown), quantum, n * largest)


def _may_vanish(factor: Bounded) -> Array:
    """Return 1 where a kernel may have zero for a number that is not: with an infinity it makes NaN, then."""
    return ((np.abs(factor.value) <= factor.errors) & (factor.errors > 0)) * 1.0


def _partial_sum_bound(nest: StatementEval, first: Expr, second: Expr) -> float:
    """Bound the partial sums of a long sum whose terms have random signs.

    Where they have not, or are the same again and again, parts of the iteration space show it: they grow as
    these do, and so does the bound.
    """
    squares, running, most = np.zeros(nest.shape), np.zeros(nest.shape), 0.0
    block = min(nest.block, prod(nest.axes.values()) // _PARTS)
    for window in nest.windows(list(nest.axes), block=block):
        a, b = nest.evaluate(first, window), nest.evaluate(second, window)
        index = window[: nest.outputs]
        part = contract(a.value, b.value, nest.outputs)
        running[index] += part
        squares[index] += contract(a.value**2, b.value**2, nest.outputs)
        most = max(most, float(np.abs(part).max()), float(np.abs(running[index]).max()))
    return max(SAFETY_FACTOR * most, canceled(nest.statement, float(np.sqrt(squares.max()))))


def factors(expr: Expr) -> tuple[Expr, Expr]:
    """Write an expression as a product of two; the second one is 1 where it is not a product of tensors.

    Partial products are those of the expression, for others vanish and overflow elsewhere; only what has no
    axes is multiplied earlier.
    """
    match expr:
        case Apply(function="mul", args=(a, b)) if axes_of(a) and axes_of(b):
            return a, b
        case Apply(function="mul", args=args):
            scalar, product = sorted(args, key=lambda arg: bool(axes_of(arg)))
            first, second = factors(product)
            if axes_of(second):
                return Apply("mul", (first, scalar)), second
        case _:
            pass
    return expr, Const(1.0)
