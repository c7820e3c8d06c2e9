"""The baseline of the level: what a good NumPy user would write for a program.

Tables are gathered first, sums of products become matrix multiplications, and element-wise functions write
into existing memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from math import prod
from typing import Any

import numpy as np

from planish.levels.loops.lang.draft import axes_of, gathers, parts_of, scattered
from planish.levels.loops.lang.element_types import nearest_integer
from planish.levels.loops.lang.program import (
    POSITIONS,
    Access,
    Apply,
    Const,
    Expr,
    Program,
    Statement,
    accesses,
    applied,
    factors_of,
    rewritten,
)
from planish.levels.loops.reference.bounds import TESTS, UFUNC, VALUES, filled_with, target_views
from planish.levels.loops.reference.inputs import aligned
from planish.levels.loops.reference.packed import numbers_of, over_numbers
from planish.levels.loops.reference.views import Array, Arrays, overhang, table_view, view

Step = Callable[[], Any]

Leaves = Mapping[Access, Array]
"""Access to what it reads, in shapes that broadcast against each other."""


class _Temporaries(dict[tuple[str, tuple[int, ...]], Array]):
    """Temporary arrays of one type by key and shape, so that equal parts of an expression share one."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        super().__init__()
        self.dtype = dtype

    def __missing__(self, key: tuple[str, tuple[int, ...]]) -> Array:
        array = self[key] = np.empty(key[1], self.dtype)
        return array


def _evaluate(
    expr: Expr,
    leaves: Leaves,
    memory: _Temporaries,
    steps: list[Step],
    out: Array | None = None,
    key: str = "",
) -> Array:
    """Add the calls that evaluate an expression; return its result.

    That is `out`, which may be larger and is broadcast to; or without it a temporary, named by the key, or
    what a single access reads.
    """
    if not isinstance(expr, Apply):
        if isinstance(expr, Access):
            value = leaves[expr]
        else:
            is_integer = memory.dtype.kind == "i"
            value = np.asarray(nearest_integer(expr.value) if is_integer else expr.value, memory.dtype)
        if out is None:
            return value
        steps.append(partial(np.copyto, out, value))
        return out
    shape = _shape(expr, leaves)
    if out is None:
        out = memory[key, shape]
    args: list[Array] = []
    for i, arg in enumerate(expr.args):
        # The first argument only: when a later one is evaluated, `out` holds the first.
        into = out if isinstance(arg, Apply) and i == 0 and _shape(arg, leaves) == out.shape else None
        args.append(_evaluate(arg, leaves, memory, steps, into, f"{key}{i}"))
    steps += _calls(expr.function, args, out)
    return out


def _shape(expr: Expr, leaves: Leaves) -> tuple[int, ...]:
    match expr:
        case Access():
            return leaves[expr].shape
        case Const():
            return ()
        case Apply(args=args):
            return np.broadcast_shapes(*(_shape(arg, leaves) for arg in args))


def _calls(function: str, args: Sequence[Array], out: Array) -> list[Step]:
    if function == "relu":
        return [partial(np.maximum, args[0], out.dtype.type(0), out=out)]
    if function == "sigmoid":
        one = out.dtype.type(1)
        return [
            partial(np.negative, args[0], out=out),
            # Of a large negative number it overflows, and 1 / inf is right then: `numpy_baseline` turns the
            # warning off.
            partial(np.exp, out, out=out),
            partial(np.add, out, one, out=out),
            partial(np.divide, one, out, out=out),
        ]
    if function == "erf":
        return [partial(_erf(), args[0], out)]
    if function in TESTS:
        return [partial(_choose, TESTS[function], *args, out)]
    return [partial(UFUNC[function], *args, out=out)]


def _choose(test: Callable[..., Array], a: Array, b: Array, x: Array, y: Array, out: Array) -> None:
    """Choose by a comparison, which is made first: `a` may lie where the result goes."""
    holds = test(a, b)
    np.copyto(out, y)
    np.copyto(out, x, where=holds)


def _erf() -> Callable[[Array, Array], object]:
    """Return SciPy's where it is installed, for NumPy has none; else the C library's, one by one."""
    if find_spec("scipy"):
        return import_module("scipy.special").erf
    return lambda x, out: np.copyto(out, VALUES["erf"](x))


def _look_ups(
    statement: Statement, program: Program, arrays: Arrays, steps: list[Step]
) -> tuple[Statement, dict[Access, Array]]:
    """Add the calls that look up what a statement gathers.

    Returns:
        The statement that reads what is found, and these accesses to their arrays, of a dimension an axis.
    """
    read: dict[Expr, Access] = {}
    found: dict[Access, Array] = {}
    for each in gathers(statement.value):
        table, _, by = parts_of(each)
        rows = table_view(each, arrays[table.tensor], statement.axes, program.size)
        index = view(arrays[by.tensor], by.index, statement.axes, program.size)
        out = np.empty(np.broadcast_shapes(rows.shape[:-1], index.shape), rows.dtype)
        steps.append(partial(_look_up, rows, index, out))
        read[each] = Access(f"gathered.{len(read)}", (*table.index, *by.index))
        found[read[each]] = out
    return replace(statement, value=rewritten(statement.value, read.get)), found


def _look_up(table: Array, index: Array, out: Array) -> None:
    """Look up whole rows at once, where the index does not move along them."""
    # As in kernels, what is not a number looks up the first.
    number = np.nan_to_num(index, nan=0.0, posinf=None, neginf=None) if index.dtype.kind == "f" else index
    rows_read = np.clip(number, 0, table.shape[-1] - 1).astype(np.intp)
    own = [d for d, n in enumerate(index.shape) if n > 1]
    if any(table.shape[d] > 1 for d in own):
        np.copyto(out, np.take_along_axis(table, rows_read[..., None], -1)[..., 0])
        return
    rest = [d for d in range(index.ndim) if d not in own]
    whole = table[tuple(0 if d in own else slice(None) for d in range(index.ndim))]
    rows = np.moveaxis(whole, -1, 0)[rows_read.reshape([index.shape[d] for d in own])]
    order = [*own, *rest]
    np.copyto(out, rows.transpose([order.index(d) for d in range(index.ndim)]))


@dataclass
class _Factor:
    """A factor on its way to a matrix.

    Args:
        array: with a dimension for each axis.
        fixed: whether it never changes, so that copies are made at once.
        steps: where the calls go otherwise.
    """

    array: Array
    fixed: bool
    steps: list[Step]

    def sum(self, positions: Sequence[int]) -> None:
        """Sum over axes that the other factor lacks."""
        if positions:
            shape = [1 if p in positions else n for p, n in enumerate(self.array.shape)]
            total = np.empty(shape, self.array.dtype)
            step = partial(np.add.reduce, self.array, axis=tuple(positions), out=total, keepdims=True)
            _emit(step, self.fixed, self.steps)
            self.array = total

    def copied(self, groups: Sequence[Sequence[int]]) -> int:
        """Count the elements that are copied at each call to make matrices."""
        merged = _merged(self.array, groups)
        return 0 if self.fixed or (merged is not None and _takes(merged)) else self.array.size

    def matrices(self, groups: Sequence[Sequence[int]]) -> Array:
        """Make each group of axes one, by a copy if need be."""
        merged = _merged(self.array, groups)
        if merged is not None and _takes(merged):
            return merged
        order, shape = _order(self.array, groups)
        ordered = self.array.transpose(order)
        copy = np.empty(ordered.shape, ordered.dtype)
        _emit(partial(np.copyto, copy, ordered), self.fixed, self.steps)
        return copy.reshape(shape)


def _matmul_steps(a: Array, b: Array, out: Array, a_fixed: bool, b_fixed: bool) -> list[Step]:
    """Make the calls that compute `out = sum(a * b)`; what is fixed is copied here and not at each call.

    The axes of the output that both factors have become a batch, and the others rows and columns. A factor
    is copied where its axes do not make a matrix that BLAS takes (im2col).
    """
    steps: list[Step] = []
    left, right = _Factor(a, a_fixed, steps), _Factor(b, b_fixed, steps)
    left.sum([p for p in range(out.ndim, a.ndim) if b.shape[p] == 1 < a.shape[p]])
    right.sum([p for p in range(out.ndim, a.ndim) if a.shape[p] == 1 < b.shape[p]])
    inner = [p for p in range(out.ndim, a.ndim) if a.shape[p] > 1 and b.shape[p] > 1]
    batch = [p for p in range(out.ndim) if (a.shape[p] > 1) == (b.shape[p] > 1)]
    rows = [p for p in range(out.ndim) if p not in batch and a.shape[p] > 1]
    columns = [p for p in range(out.ndim) if p not in batch and b.shape[p] > 1]
    # The output's closest axis must be among the columns, else BLAS would write across its rows.
    if _stride(out, rows) < _stride(out, columns):
        left, right, rows, columns = right, left, columns, rows
    for group in (rows, columns):
        # BLAS knows one stride for rows and one for columns: axes that cannot be merged become a batch.
        while _merged(out, [*_single(sorted({*range(out.ndim)} - {*group})), group]) is None:
            batch.append(group.pop(0))
    batches = _single(sorted(p for p in batch if out.shape[p] > 1))
    # The summed axes may be in any order: the better one is that of which less is copied at each call.
    orders = [sorted(inner, key=lambda p: -abs(f.array.strides[p])) for f in (left, right)]
    inner = min(orders, key=lambda o: left.copied([*batches, rows, o]) + right.copied([*batches, o, columns]))
    first, second = left.matrices([*batches, rows, inner]), right.matrices([*batches, inner, columns])
    return [*steps, *_multiply(first, second, out, [*batches, rows, columns])]


def _multiply(first: Array, second: Array, out: Array, groups: Sequence[Sequence[int]]) -> list[Step]:
    target = _merged(out, groups)
    assert target is not None, "rows and columns were chosen so that they merge"
    # With a vector in place of a matrix of one row or column NumPy calls gemv.
    if target.ndim == 2 and 1 in target.shape:
        first = first[0] if target.shape[0] == 1 else first
        second = second[:, 0] if target.shape[1] == 1 else second
        target = target.reshape([n for n in target.shape if n > 1], copy=False)
    elif not _takes(target):
        # Into what BLAS cannot write NumPy would multiply without it, or allocate memory at each call.
        product = np.empty(target.shape, target.dtype)
        return [partial(np.matmul, first, second, out=product), partial(np.copyto, target, product)]
    return [partial(np.matmul, first, second, out=target)]


def _single(positions: Sequence[int]) -> list[list[int]]:
    return [[p] for p in positions]


def _stride(array: Array, positions: Sequence[int]) -> int:
    return min((array.strides[p] for p in positions if array.shape[p] > 1), default=1 << 62)


def _order(array: Array, groups: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """Return the order of dimensions, those that are in no group last, and the extents of the groups."""
    order = [p for group in groups for p in group]
    rest = [p for p in range(array.ndim) if p not in order]
    return order + rest, [prod(array.shape[p] for p in group) for group in groups]


def _merged(array: Array, groups: Sequence[Sequence[int]]) -> Array | None:
    """View with each group of axes as one; None where that needs a copy."""
    order, shape = _order(array, groups)
    try:
        return array.transpose(order).reshape(shape, copy=False)
    except ValueError:
        return None


def _takes(matrix: Array) -> bool:
    """Return whether BLAS takes the last two dimensions: one contiguous, and the other not overlapping."""
    (n, m), (outer, inner) = matrix.shape[-2:], (s // matrix.itemsize for s in matrix.strides[-2:])
    rows = (m == 1 or inner == 1) and (n == 1 or outer >= m)
    columns = (n == 1 or outer == 1) and (m == 1 or inner >= n)
    return rows or columns


_QUIET = {"div", "sqrt", "exp", "log", "sigmoid"}
_WINDOW = 64
"""Points of a window up to which shifted views are combined."""
_TEMPORARY = 1 << 22
"""Elements that a reduction's terms may take; larger ones are computed in slices."""


def numpy_callable(program: Program, arrays: Arrays) -> Callable[[], object]:
    """Make what computes a program with NumPy, in the type of the program's arithmetic.

    Contractions and convolutions become matrix multiplications (after im2col where BLAS needs it), pooling
    and depthwise convolutions sums and maxima of shifted views. All memory is allocated here, none per
    call; what depends on constants alone is computed here too. Narrow inputs are widened first, and narrow
    outputs rounded last.

    Args:
        program: what is computed.
        arrays: every input and output, of the program's shapes and element type.

    Returns:
        What reads the inputs and writes the outputs, each time that it is called.
    """
    if (whole := over_numbers(program)) is not program:
        return numpy_callable(whole, numbers_of(program, arrays))
    computed = {n: t for n, t in program.types if n not in program.integer_indices}
    narrow = [n for n in arrays if n in computed and computed[n].dtype != program.arithmetic]
    wide = {n: replace(t, dtype=program.arithmetic) for n, t in computed.items()}
    everything = {n: aligned(t) if n in narrow or n not in arrays else arrays[n] for n, t in wide.items()}
    everything |= {n: arrays[n] for n in program.integer_indices}
    steps: list[Step] = []
    if POSITIONS in everything:
        everything[POSITIONS][:] = np.arange(len(everything[POSITIONS]))
    for name in (n for n in narrow if n in program.inputs):
        _emit(partial(np.copyto, everything[name], arrays[name]), name in program.constants, steps)
    steps += [step for s in program.statements for step in _steps(s, program, everything)]
    for name in (n for n in narrow if n in program.outputs):
        steps.append(partial(np.copyto, arrays[name], everything[name], casting="unsafe"))
    call = steps[0] if len(steps) == 1 else partial(_run, tuple(steps))
    quiet = narrow or any(expr.function in _QUIET for s in program.statements for expr in applied(s.value))
    return np.errstate(all="ignore")(call) if quiet else call


def _run(steps: Sequence[Step]) -> None:
    for step in steps:
        step()


@dataclass(frozen=True)
class StatementArrays:
    """A statement on arrays.

    Args:
        statement: what is computed.
        leaves: access to a view with a dimension for each axis, the target's first.
        target: a view with a dimension for each of the target's axes.
        memory: for temporaries.
        constants: inputs that never change.
    """

    statement: Statement
    leaves: Leaves
    target: Array
    memory: _Temporaries
    constants: tuple[str, ...]


def _steps(statement: Statement, program: Program, arrays: Arrays) -> list[Step]:
    steps: list[Step] = []
    statement, leaves = _look_ups(statement, program, arrays, steps)
    for access in accesses(statement.value):
        if access not in leaves:
            leaves[access] = _leaf(access, statement, program, arrays, steps)
    goal = statement.target
    out, size, axes = arrays[goal.tensor], program.size, statement.output_axes
    once = scattered(goal, size, out.shape) == ()
    target = view(out, goal.index, axes, size) if once else np.empty([size[a] for a in axes], out.dtype)
    nest = StatementArrays(statement, leaves, target, _Temporaries(target.dtype), program.constants)
    return [*steps, *_computed(nest, program), *([] if once else _spread(statement, out, target, size))]


def _spread(statement: Statement, out: Array, part: Array, size: Mapping[str, int]) -> list[Step]:
    """Fill a target, and store what was computed: one shifted view after another."""
    start = filled_with(statement.reduce)
    steps: list[Step] = [partial(out.fill, nearest_integer(start) if out.dtype.kind == "i" else start)]
    for target, values in target_views(statement, out, part, size):
        ufunc = UFUNC.get(statement.reduce or "")
        steps.append(
            partial(ufunc, target, values, out=target) if ufunc else partial(np.copyto, target, values)
        )
    return steps


def _computed(nest: StatementArrays, program: Program) -> list[Step]:
    statement, steps = nest.statement, list[Step]()
    if statement.reduce is None:
        _evaluate(statement.value, nest.leaves, nest.memory, steps, nest.target)
        return steps
    if _is_window(nest, program):
        return steps + _shifted(nest, program)
    factors = factors_of(statement.value) if statement.reduce == "add" else []
    tensors = [f for f in factors if axes_of(f)]
    if len(tensors) > 1:
        return steps + _multiplied(nest, tensors, [f for f in factors if f not in tensors])
    return steps + _reduced(nest)


def _leaf(access: Access, statement: Statement, program: Program, arrays: Arrays, steps: list[Step]) -> Array:
    """View what an access reads, from a padded copy where it reads outside."""
    array = arrays[access.tensor]
    around = overhang(access, array.shape, program.size)
    if access.pad is not None:
        shape = [n + sum(a) for n, a in zip(array.shape, around, strict=True)]
        padded = np.full(shape, access.pad, array.dtype)
        inside = tuple(slice(b, b + n) for n, (b, _) in zip(array.shape, around, strict=True))
        # What is around the tensor stays as it is: each call copies the inside alone.
        _emit(partial(np.copyto, padded[inside], array), access.tensor in program.constants, steps)
        array = padded
    return view(array, access.index, statement.axes, program.size, [b for b, _ in around])


def _emit(step: Step, ahead: bool, steps: list[Step]) -> None:
    if ahead:
        step()
    else:
        steps.append(step)


def _is_window(nest: StatementArrays, program: Program) -> bool:
    """Return whether the reduced axes are a small window, and no matrix multiplication is in it."""
    s = nest.statement
    if prod(program.size[axis] for axis in s.reduced_axes) > _WINDOW:
        return False
    outputs = set(s.output_axes)
    mixed = [{axis for axis, _ in i.terms} for a in nest.leaves for i in a.index]
    if not any(m & outputs and m - outputs for m in mixed):
        return False
    # A multiplication of matrices has output axes of its own in either factor.
    alone = [
        {a for a in axes_of(f) if a in outputs and program.size[a] > 1}
        for f in factors_of(s.value)
        if axes_of(f)
    ]
    return s.reduce != "add" or len(alone) != 2 or not (alone[0] - alone[1] and alone[1] - alone[0])


def _shifted(nest: StatementArrays, program: Program) -> list[Step]:
    """Combine one shifted view for each point of the window."""
    steps: list[Step] = []
    ufunc = UFUNC[nest.statement.reduce or ""]
    points = itertools.product(*(range(program.size[axis]) for axis in nest.statement.reduced_axes))
    for i, point in enumerate(points):
        leaves = {a: _at(array, point) for a, array in nest.leaves.items()}
        if i == 0:
            _evaluate(nest.statement.value, leaves, nest.memory, steps, nest.target)
        else:
            value = _evaluate(nest.statement.value, leaves, nest.memory, steps)
            steps.append(partial(ufunc, nest.target, value, out=nest.target))
    return steps


def _at(array: Array, point: Sequence[int]) -> Array:
    """Return the view at one point of the last dimensions."""
    shape = array.shape[array.ndim - len(point) :]
    return array[(..., *(p if n > 1 else 0 for p, n in zip(point, shape, strict=True)))]


def _multiplied(nest: StatementArrays, tensors: Sequence[Expr], numbers: Sequence[Expr]) -> list[Step]:
    """Sum a product of two tensors by matrix multiplication, of more by `numpy.einsum`."""
    steps: list[Step] = []
    factors: list[Array] = []
    fixed: list[bool] = []
    for i, factor in enumerate(tensors):
        own: list[Step] = []
        factors.append(_evaluate(factor, nest.leaves, nest.memory, own, key=f"factor{i}."))
        fixed.append(all(a.tensor in nest.constants for a in accesses(factor)))
        for step in own:
            _emit(step, fixed[-1], steps)
    if len(factors) == 2:
        steps += _matmul_steps(factors[0], factors[1], nest.target, fixed[0], fixed[1])
    else:
        steps += _summed_by_einsum(factors, nest.target)
    for number in numbers:
        value = _evaluate(number, nest.leaves, nest.memory, steps, key="number")
        # A tensor without axes is viewed with one dimension, of extent 1, for each axis of the nest.
        steps.append(partial(np.multiply, nest.target, value.reshape(()), out=nest.target))
    return steps


def _summed_by_einsum(factors: Sequence[Array], target: Array) -> list[Step]:
    operands: list[Any] = []
    for factor in factors:
        axes = [p for p, n in enumerate(factor.shape) if n > 1]
        operands += [factor[tuple(slice(None) if p in axes else 0 for p in range(factor.ndim))], axes]
    there = sorted({p for axes in operands[1::2] for p in axes if p < target.ndim})
    missing = tuple(p for p in range(target.ndim) if p not in there)
    out = np.empty([target.shape[p] for p in there], target.dtype)
    # The order of the contractions is planned here, once.
    path = np.einsum_path(*operands, there, optimize=True)[0]
    return [
        partial(np.einsum, *operands, there, out=out, optimize=path),
        partial(np.copyto, target, np.expand_dims(out, missing)),
    ]


def _reduced(nest: StatementArrays) -> list[Step]:
    """Reduce the terms of one array, in slices where they would take much memory."""
    whole = np.broadcast_shapes(*(a.shape for a in nest.leaves.values()))
    longest = max(range(nest.target.ndim), key=lambda p: nest.target.shape[p], default=None)
    if prod(whole) <= _TEMPORARY or isinstance(nest.statement.value, Access) or longest is None:
        return _reduced_at_once(nest)
    n = nest.target.shape[longest]
    per_slice = max(1, n * _TEMPORARY // prod(whole))
    steps: list[Step] = []
    for start in range(0, n, per_slice):
        there = (*(slice(None),) * longest, slice(start, start + per_slice))
        leaves = {a: v[there] if v.shape[longest] > 1 else v for a, v in nest.leaves.items()}
        steps += _reduced_at_once(
            StatementArrays(nest.statement, leaves, nest.target[there], nest.memory, ())
        )
    return steps


def _reduced_at_once(nest: StatementArrays) -> list[Step]:
    steps: list[Step] = []
    terms = _evaluate(nest.statement.value, nest.leaves, nest.memory, steps)
    target, inner = nest.target, tuple(range(nest.target.ndim, terms.ndim))
    # Along what no term has all results are equal: they are computed once and copied.
    missing = tuple(p for p in range(target.ndim) if terms.shape[p] < target.shape[p])
    terms = terms[tuple(0 if p in missing else slice(None) for p in range(terms.ndim))]
    inner = tuple(p - len(missing) for p in inner)
    ufunc = UFUNC[nest.statement.reduce or ""]
    if not missing:
        return [*steps, partial(ufunc.reduce, terms, axis=inner, out=target)]
    small = np.empty([n for p, n in enumerate(target.shape) if p not in missing], target.dtype)
    steps.append(partial(ufunc.reduce, terms, axis=inner, out=small))
    return [*steps, partial(np.copyto, target, np.expand_dims(small, missing))]
