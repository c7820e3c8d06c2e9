"""What a good NumPy user would write for a program: the level's baseline."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from planish.loops.lang.draft import axes_of
from planish.loops.lang.element_types import nearest_whole
from planish.loops.lang.program import POSITIONS, Access, Apply, Expr, Program, Statement, accesses
from planish.loops.lang.subscripts import scattered
from planish.loops.reference.elementwise import UFUNC, Leaves, Step, Temporaries, evaluate
from planish.loops.reference.inputs import aligned
from planish.loops.reference.look_ups import look_ups, without_gathers
from planish.loops.reference.numpy_matmul import matmul_steps
from planish.loops.reference.spreading import filled_with, places
from planish.loops.reference.views import Array, Arrays, overhang, view

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
    computed = {n: t for n, t in program.types if n not in program.whole_indices}
    narrow = [n for n in arrays if n in computed and computed[n].dtype != program.arithmetic]
    wide = {n: replace(t, dtype=program.arithmetic) for n, t in computed.items()}
    everything = {n: aligned(t) if n in narrow or n not in arrays else arrays[n] for n, t in wide.items()}
    everything |= {n: arrays[n] for n in program.whole_indices}
    steps: list[Step] = []
    if POSITIONS in everything:
        everything[POSITIONS][:] = np.arange(len(everything[POSITIONS]))
    for name in (n for n in narrow if n in program.inputs):
        _emit(partial(np.copyto, everything[name], arrays[name]), name in program.constants, steps)
    steps += [step for s in program.statements for step in _steps(s, program, everything)]
    for name in (n for n in narrow if n in program.outputs):
        steps.append(partial(np.copyto, arrays[name], everything[name], casting="unsafe"))
    call = steps[0] if len(steps) == 1 else partial(_run, tuple(steps))
    quiet = narrow or any(_functions(s.value) & _QUIET for s in program.statements)
    return np.errstate(all="ignore")(call) if quiet else call


def _run(steps: Sequence[Step]) -> None:
    for step in steps:
        step()


def _functions(expr: Expr) -> set[str]:
    if not isinstance(expr, Apply):
        return set()
    return {expr.function}.union(*map(_functions, expr.args))


@dataclass(frozen=True)
class _Nest:
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
    memory: Temporaries
    constants: tuple[str, ...]


def _steps(statement: Statement, program: Program, arrays: Arrays) -> list[Step]:
    steps: list[Step] = []
    found = look_ups(statement, program, arrays, steps)
    statement = without_gathers(statement, found)
    leaves = dict(found.values())
    for access in accesses(statement.value):
        if access not in leaves:
            leaves[access] = _leaf(access, statement, program, arrays, steps)
    goal = statement.target
    out, size, axes = arrays[goal.tensor], program.size, statement.output_axes
    once = scattered(goal, size, out.shape) == ()
    target = view(out, goal.index, axes, size) if once else np.empty([size[a] for a in axes], out.dtype)
    nest = _Nest(statement, leaves, target, Temporaries(target.dtype), program.constants)
    return [*steps, *_computed(nest, program), *([] if once else _spread(statement, out, target, size))]


def _spread(statement: Statement, out: Array, part: Array, size: Mapping[str, int]) -> list[Step]:
    """Fill a target, and put what was computed in its places: one shifted view after another."""
    start = filled_with(statement.reduce)
    steps: list[Step] = [partial(out.fill, nearest_whole(start) if out.dtype.kind == "i" else start)]
    for target, values in places(statement, out, part, size):
        ufunc = UFUNC.get(statement.reduce or "")
        steps.append(
            partial(ufunc, target, values, out=target) if ufunc else partial(np.copyto, target, values)
        )
    return steps


def _computed(nest: _Nest, program: Program) -> list[Step]:
    statement, steps = nest.statement, list[Step]()
    if statement.reduce is None:
        evaluate(statement.value, nest.leaves, nest.memory, steps, nest.target)
        return steps
    if _is_window(nest, program):
        return steps + _shifted(nest, program)
    factors = _flat(statement.value) if statement.reduce == "add" else []
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


def _flat(expr: Expr) -> list[Expr]:
    if isinstance(expr, Apply) and expr.function == "mul":
        return [f for arg in expr.args for f in _flat(arg)]
    return [expr]


def _is_window(nest: _Nest, program: Program) -> bool:
    """Whether the reduced axes are a small window, and no matrix multiplication is in it."""
    s = nest.statement
    if prod(program.size[axis] for axis in s.reduced_axes) > _WINDOW:
        return False
    outputs = set(s.output_axes)
    mixed = [{axis for axis, _ in i.terms} for a in nest.leaves for i in a.index]
    if not any(m & outputs and m - outputs for m in mixed):
        return False
    # A multiplication of matrices has output axes of its own in either factor.
    alone = [
        {a for a in axes_of(f) if a in outputs and program.size[a] > 1} for f in _flat(s.value) if axes_of(f)
    ]
    return s.reduce != "add" or len(alone) != 2 or not (alone[0] - alone[1] and alone[1] - alone[0])


def _shifted(nest: _Nest, program: Program) -> list[Step]:
    """Combine one shifted view for each point of the window."""
    steps: list[Step] = []
    ufunc = UFUNC[nest.statement.reduce or ""]
    points = itertools.product(*(range(program.size[axis]) for axis in nest.statement.reduced_axes))
    for i, point in enumerate(points):
        leaves = {a: _at(array, point) for a, array in nest.leaves.items()}
        if i == 0:
            evaluate(nest.statement.value, leaves, nest.memory, steps, nest.target)
        else:
            value = evaluate(nest.statement.value, leaves, nest.memory, steps)
            steps.append(partial(ufunc, nest.target, value, out=nest.target))
    return steps


def _at(array: Array, point: Sequence[int]) -> Array:
    """Take one point of the last dimensions."""
    shape = array.shape[array.ndim - len(point) :]
    return array[(..., *(p if n > 1 else 0 for p, n in zip(point, shape, strict=True)))]


def _multiplied(nest: _Nest, tensors: Sequence[Expr], numbers: Sequence[Expr]) -> list[Step]:
    """Sum a product of two tensors by matrix multiplication, of more by `numpy.einsum`."""
    steps: list[Step] = []
    factors: list[Array] = []
    fixed: list[bool] = []
    for i, factor in enumerate(tensors):
        own: list[Step] = []
        factors.append(evaluate(factor, nest.leaves, nest.memory, own, place=f"factor{i}."))
        fixed.append(all(a.tensor in nest.constants for a in accesses(factor)))
        for step in own:
            _emit(step, fixed[-1], steps)
    if len(factors) == 2:
        steps += matmul_steps(factors[0], factors[1], nest.target, fixed[0], fixed[1])
    else:
        steps += _summed_by_einsum(factors, nest.target)
    for number in numbers:
        value = evaluate(number, nest.leaves, nest.memory, steps, place="number")
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


def _reduced(nest: _Nest) -> list[Step]:
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
        steps += _reduced_at_once(_Nest(nest.statement, leaves, nest.target[there], nest.memory, ()))
    return steps


def _reduced_at_once(nest: _Nest) -> list[Step]:
    steps: list[Step] = []
    terms = evaluate(nest.statement.value, nest.leaves, nest.memory, steps)
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
