"""Mistakes that are made on purpose, to choose inputs that make such mistakes visible.

Probes are small mistakes in what a program reads. Others change the program or its inputs, so that the
reference computes what a mistaken kernel would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import isinf
from typing import Any

import numpy as np

from planish.core.hashing import rng
from planish.levels.loops.lang.element_types import WHOLE
from planish.levels.loops.lang.program import (
    POSITIONS,
    Access,
    Apply,
    Const,
    Expr,
    Index,
    Program,
    Statement,
    TensorType,
    accesses,
)
from planish.levels.loops.lang.subscripts import index_ranges
from planish.levels.loops.reference.views import Array, Arrays, overhang

MOST = 64


@dataclass(frozen=True)
class Misread:
    """Read of a neighbour's element: a pointer that does not move, a step left out.

    Args:
        dimensions: (tensor, dimension) of what is misread: inputs, or one that is computed and no output. An
            input of one element is read as half as large again.
        index: the one that is not read.
    """

    dimensions: tuple[tuple[str, int], ...]
    index: int


@dataclass(frozen=True)
class Slip:
    """A number is taken for a larger one, a function of one argument is left out, `max` and `min`
    exchanged, or `<` and `<=`, or `==` and `!=`.

    Args:
        position: which of them all, counted from the left, from 0.
    """

    position: int


@dataclass(frozen=True)
class OtherStart:
    """A reduction starts from another number, such as `+=` from 1.

    Args:
        statement: which.
        number: from which.
    """

    statement: int
    number: float


@dataclass(frozen=True)
class OtherReduction:
    """A reduction is another one, such as `max=` instead of `+=`.

    Args:
        statement: which.
    """

    statement: int


@dataclass(frozen=True)
class OtherPad:
    """Around a tensor stands another number.

    Args:
        statement: which reads it.
        access: how.
        number: which.
        side: a dimension and whether the mistake is behind its end, or before its start; None for all sides.
            Only an input has one.
    """

    statement: int
    access: Access
    number: float
    side: tuple[int, bool] | None = None


@dataclass(frozen=True)
class Unclipped:
    """An index that lies outside looks up what is one further inside than it should.

    Args:
        tensor: an input of indices.
        at_end: whether that is so behind the end, or before the start.
    """

    tensor: str
    at_end: bool


@dataclass(frozen=True)
class Garbled:
    """Of a tensor on the way to the outputs all elements are wrong, as memory is that nothing has written.

    Args:
        tensor: which.
        factor: what they are multiplied by.
        term: what is added then.
    """

    tensor: str
    factor: float
    term: float


@dataclass(frozen=True)
class Last:
    """Of equals the last is taken, where the first is meant: the greatest position instead of the least.

    Args:
        statement: which reduces positions.
    """

    statement: int


Probe = Misread | Slip | OtherStart | OtherReduction | OtherPad | Unclipped | Garbled | Last
_STARTS = {"max": (0.0, 1.0, -1.0), "min": (0.0, 1.0, -1.0), "add": (1.0, -1.0), "mul": (2.0, -1.0)}
_GARBLED = (1.125, 0.0), (0.875, 0.0), (0.0, 2.0**30), (0.0, -(2.0**30)), (0.0, 0.0)
"""A little larger or smaller, above or below all others, and 0."""
EXCHANGED = {"max": "min", "min": "max", "<": "<=", "<=": "<", "==": "!=", "!=": "=="}
"""What is taken for what."""


def all_probes(program: Program, seed: int) -> list[Probe]:
    """List slips, starts, paddings, and what is misread along dimensions and axes: the last index, and any.

    Args:
        program: whose.
        seed: of the random ones.

    Returns:
        `MOST` at most, of all kinds.
    """
    # A stream of its own, beside that of `all_styles`, whose numbers are small.
    generator = rng(seed, len(program.inputs), 1 << 20)
    found: list[Probe] = [Slip(i) for i in range(sum(count_slips(s.value) for s in program.statements))]
    for i, s in enumerate(program.statements):
        found += [OtherStart(i, number) for number in _STARTS.get(s.reduce or "", ())]
        found += [OtherReduction(i)] if s.reduce else []
        found += [OtherPad(i, a, n, side) for a, side in _padded(s, program) for n in _other_pads(a.pad or 0)]
    found += [Unclipped(tensor, at_end) for tensor in _indices(program) for at_end in (False, True)]
    found += [Garbled(t, *how) for t in program.written if t not in program.outputs for how in _GARBLED]
    found += [Last(i) for i, s in enumerate(program.statements) if _reduces_positions(s)]
    for dimensions in dict.fromkeys((*_dimensions(program), *_along_axes(program))):
        n = min(program.type[tensor].shape[dimension] for tensor, dimension in dimensions)
        some = {n - 1, int(generator.integers(n))}
        found += [Misread(dimensions, index) for index in sorted(some)]
    for name in program.inputs:
        if program.type[name].size == 1:
            found.append(Misread(((name, -1),), 0))
    found += [Misread(((t, d),), program.type[t].shape[d] - 1) for t, d in _computed(program)]
    return [found[i] for i in sorted(generator.permutation(len(found))[:MOST])]


def _dimensions(program: Program) -> Iterator[tuple[tuple[str, int], ...]]:
    """List the dimensions of inputs, each alone."""
    for name in program.inputs:
        for dimension, n in enumerate(program.type[name].shape):
            if n > 1:
                yield ((name, dimension),)


def _computed(program: Program) -> Iterator[tuple[str, int]]:
    """List the dimensions of what is computed on the way to the outputs, where a mistake may not show.

    What is subtracted before `exp` and divided out again matters only where numbers overflow without it.
    """
    for name in program.written:
        if name not in program.outputs:
            yield from ((name, d) for d, n in enumerate(program.type[name].shape) if n > 1)


def _padded(statement: Statement, program: Program) -> Iterator[tuple[Access, tuple[int, bool] | None]]:
    """List the reads of a statement that leave their tensors, and on which sides."""
    for access in dict.fromkeys(accesses(statement.value)):
        around = overhang(access, program.type[access.tensor].shape, program.size)
        sides = [(d, at_end) for d, pair in enumerate(around) for at_end in (False, True) if pair[at_end]]
        if access.pad is not None and sides:
            yield access, None
        if access.pad is not None and len(sides) > 1 and access.tensor in program.inputs:
            yield from ((access, side) for side in sides)


def _other_pads(pad: float) -> tuple[float, ...]:
    """Return a number below and one above, as either may be hidden."""
    return (0.0, 1.0) if isinf(pad) else (pad - 1, pad + 1)


def _indices(program: Program) -> list[str]:
    """List the inputs of indices that may lie outside, and then be taken for another one inside."""
    return [name for name, extent in index_ranges(program).items() if name in program.inputs and extent > 1]


def _along_axes(program: Program) -> Iterator[tuple[tuple[str, int], ...]]:
    """List for each axis all dimensions that it walks alone."""
    reads = [a for s in program.statements for a in accesses(s.value) if a.tensor in program.inputs]
    for axis in program.size:
        found = {
            (a.tensor, d) for a in reads for d, index in enumerate(a.index) if index.terms == ((axis, 1),)
        }
        if dimensions := [(t, d) for t, d in sorted(found) if program.type[t].shape[d] > 1]:
            yield tuple(dimensions)


def _reduces_positions(statement: Statement) -> bool:
    found = any(a.tensor == POSITIONS for a in accesses(statement.value))
    return found and statement.reduce in EXCHANGED


def slips(expr: Expr) -> bool:
    """Return whether an expression itself may be a slip."""
    return isinstance(expr, Const) or (
        isinstance(expr, Apply) and (len(expr.args) == 1 or expr.function in EXCHANGED)
    )


def count_slips(expr: Expr) -> int:
    """Count the slips in an expression."""
    inside = sum(map(count_slips, expr.args)) if isinstance(expr, Apply) else 0
    return slips(expr) + inside


_INSTEAD = {"add": "max", "mul": "add", "max": "min", "min": "max"}


def mistaken(program: Program, inputs: Arrays, probe: Probe) -> tuple[Program, Arrays]:
    """Return the program and the inputs with which the reference computes what a mistaken kernel would."""
    if isinstance(probe, OtherPad) and probe.side:
        return _padded_on_a_side(program, inputs, probe, *probe.side)
    return _mistaken_program(program, probe), {**inputs, **_mistaken_inputs(program, inputs, probe)}


def _mistaken_program(program: Program, probe: Probe) -> Program:
    match probe:
        case Slip(position):
            return _slipped(program, position)
        case OtherStart(position, number):
            return _started_elsewhere(program, position, number)
        case OtherReduction(position):
            return _with(program, position, reduce=_INSTEAD[program.statements[position].reduce or ""])
        case OtherPad():
            return _padded_with(program, probe)
        case Last(position):
            return _taking_the_last(program, position)
        case _:
            return program


def _mistaken_inputs(program: Program, inputs: Arrays, probe: Probe) -> Arrays:
    match probe:
        case Unclipped(tensor, at_end):
            return {tensor: _unclipped(inputs[tensor], index_ranges(program)[tensor], at_end)}
        case Misread(dimensions, index):
            changed = dict(inputs)
            for tensor, dimension in dimensions:
                if tensor in inputs:
                    changed[tensor] = _misread(changed[tensor], dimension, index)
            return changed
        case _:
            return {}


def changes_of(program: Program, probe: Probe) -> Mapping[str, Callable[[Array], Array]]:
    """Return what a mistake makes of tensors that are computed: name to change; see `reference`."""
    match probe:
        case Garbled(tensor, factor, term):
            return {tensor: partial(_garbled, factor=factor, term=term)}
        case Misread(dimensions, index):
            computed = [(t, d) for t, d in dimensions if t not in program.inputs]
            return {t: partial(_misread, dimension=d, index=index) for t, d in computed}
        case _:
            return {}


def _with(program: Program, position: int, **changes: Any) -> Program:
    """Change a statement."""
    statements = list(program.statements)
    statements[position] = replace(statements[position], **changes)
    return replace(program, statements=tuple(statements))


def _garbled(array: Array, factor: float, term: float) -> Array:
    if array.dtype.kind == "i" and factor:
        return array + array.dtype.type(1 if factor > 1 else -1)
    return (array * factor + term).astype(array.dtype)


def _unclipped(index: Array, extent: int, at_end: bool) -> Array:
    """Clip what lies outside to the last but one, or the second; where the extent is 1 that is no mistake."""
    if at_end:
        return np.where(index >= extent, index.dtype.type(extent - 2), index)
    return np.where(index < 0, index.dtype.type(1), index)


def _misread(array: Array, dimension: int, index: int) -> Array:
    if array.size == 1 and array.dtype.kind == "i":
        return array + array.dtype.type(1)
    if array.size == 1:
        return array * array.dtype.type(1.5)
    order = np.arange(array.shape[dimension])
    order[index] = index - 1 if index else 1
    return np.take(array, order, dimension)


def _started_elsewhere(program: Program, position: int, number: float) -> Program:
    """Reduce into a tensor of another name, and put what comes of one number more in the old one."""
    statement = program.statements[position]
    assert statement.reduce is not None
    inner = replace(statement.target, tensor=f"{statement.target.tensor}'")  # a name that no program can have
    value = Apply(statement.reduce, (inner, Const(number)))
    both = replace(statement, target=inner), Statement(statement.target, None, value)
    types = *program.types, (inner.tensor, program.type[statement.target.tensor])
    statements = *program.statements[:position], *both, *program.statements[position + 1 :]
    return replace(program, statements=statements, types=types)


def _padded_with(program: Program, probe: OtherPad) -> Program:
    value, wrong = program.statements[probe.statement].value, replace(probe.access, pad=probe.number)
    return _with(program, probe.statement, value=_replaced(value, probe.access, wrong))


def _padded_on_a_side(
    program: Program, inputs: Arrays, probe: OtherPad, dimension: int, at_end: bool
) -> tuple[Program, dict[str, Array]]:
    """Turn a tensor with its padding into an input whose elements on one side are other ones."""
    access, value = probe.access, program.statements[probe.statement].value
    around = overhang(access, program.type[access.tensor].shape, program.size)
    whole = np.pad(inputs[access.tensor].astype(np.float64), around, constant_values=access.pad or 0.0)
    before, behind = around[dimension]
    wrong = slice(-behind, None) if at_end else slice(before)
    whole[(*[slice(None)] * dimension, wrong)] = probe.number
    name = f"{access.tensor}'"
    index = [Index(i.terms, i.offset + low) for i, (low, _) in zip(access.index, around, strict=True)]
    value = _replaced(value, access, Access(name, tuple(index)))
    kind = TensorType(whole.shape, program.arithmetic)
    changed = replace(_with(program, probe.statement, value=value), types=(*program.types, (name, kind)))
    return changed, {**inputs, name: _stored(whole, kind)}


def _stored(array: Array, kind: TensorType) -> Array:
    """Round to a type; of whole numbers the nearest ones stand for infinities."""
    if kind.dtype == WHOLE:
        return np.clip(array, -(2**31), 2**31 - 1).astype(np.int32)
    return array.astype(kind.dtype)


def _replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    if expr == old:
        return new
    if isinstance(expr, Apply):
        return Apply(expr.function, tuple(_replaced(arg, old, new) for arg in expr.args))
    return expr


def _taking_the_last(program: Program, position: int) -> Program:
    statements = list(program.statements)
    old = statements[position]
    other = EXCHANGED[old.reduce or ""]
    statements[position] = replace(old, reduce=other, value=_other_end(old.value))
    return replace(program, statements=tuple(statements))


def _other_end(expr: Expr) -> Expr:
    """Flip the sign of infinities, so that they still lose."""
    if isinstance(expr, Const):
        return Const(-expr.value) if isinf(expr.value) else expr
    return Apply(expr.function, tuple(map(_other_end, expr.args))) if isinstance(expr, Apply) else expr


def _slipped(program: Program, position: int) -> Program:
    statements = list(program.statements)
    for i, statement in enumerate(statements):
        if position < (n := count_slips(statement.value)):
            statements[i] = replace(statement, value=_wrong(statement.value, position))
            return replace(program, statements=tuple(statements))
        position -= n
    raise AssertionError(position)


def _wrong(expr: Expr, position: int) -> Expr:
    """Make the mistake at a position, counted from the expression itself, then through its arguments."""
    if isinstance(expr, Const):
        # 1.5 times 0 would be no mistake.
        return Const(expr.value * 1.5 if expr.value else 0.5)
    assert isinstance(expr, Apply)
    if slips(expr) and position == 0:
        return expr.args[0] if len(expr.args) == 1 else Apply(EXCHANGED[expr.function], expr.args)
    args, position = list(expr.args), position - slips(expr)
    for i, arg in enumerate(args):
        if 0 <= position < (n := count_slips(arg)):
            args[i] = _wrong(arg, position)
        position -= n
    return Apply(expr.function, tuple(args))
