"""Programs and inputs with which the reference computes what a mistaken kernel would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import isinf
from typing import Any

import numpy as np

from planish.loops.lang.element_types import WHOLE
from planish.loops.lang.program import Access, Apply, Const, Expr, Index, Program, Statement, TensorType
from planish.loops.lang.subscripts import index_ranges
from planish.loops.reference.probes import (
    EXCHANGED,
    Garbled,
    Last,
    Misread,
    OtherPad,
    OtherReduction,
    OtherStart,
    Probe,
    Slip,
    Unclipped,
    places_of,
    slips,
)
from planish.loops.reference.views import Array, Arrays, overhang

_INSTEAD = {"add": "max", "mul": "add", "max": "min", "min": "max"}


def mistaken(program: Program, inputs: Arrays, probe: Probe) -> tuple[Program, Arrays]:
    """Give the program and the inputs with which the reference computes what a mistaken kernel would."""
    if isinstance(probe, OtherPad) and probe.side:
        return _padded_on_a_side(program, inputs, probe, *probe.side)
    return _mistaken_program(program, probe), {**inputs, **_mistaken_inputs(program, inputs, probe)}


def _mistaken_program(program: Program, probe: Probe) -> Program:
    match probe:
        case Slip(place):
            return _slipped(program, place)
        case OtherStart(place, number):
            return _started_elsewhere(program, place, number)
        case OtherReduction(place):
            return _with(program, place, reduce=_INSTEAD[program.statements[place].reduce or ""])
        case OtherPad():
            return _padded_with(program, probe)
        case Last(place):
            return _taking_the_last(program, place)
        case _:
            return program


def _mistaken_inputs(program: Program, inputs: Arrays, probe: Probe) -> Arrays:
    match probe:
        case Unclipped(tensor, at_end):
            return {tensor: _unclipped(inputs[tensor], index_ranges(program)[tensor], at_end)}
        case Misread(places, index):
            changed = dict(inputs)
            for tensor, dimension in places:
                if tensor in inputs:
                    changed[tensor] = _misread(changed[tensor], dimension, index)
            return changed
        case _:
            return {}


def changes_of(program: Program, probe: Probe) -> Mapping[str, Callable[[Array], Array]]:
    """Give what a mistake makes of tensors that are computed: name to change; see `reference`."""
    match probe:
        case Garbled(tensor, factor, term):
            return {tensor: partial(_garbled, factor=factor, term=term)}
        case Misread(places, index):
            computed = [(t, d) for t, d in places if t not in program.inputs]
            return {t: partial(_misread, dimension=d, index=index) for t, d in computed}
        case _:
            return {}


def _with(program: Program, place: int, **changes: Any) -> Program:
    """Change a statement."""
    statements = list(program.statements)
    statements[place] = replace(statements[place], **changes)
    return replace(program, statements=tuple(statements))


def _garbled(array: Array, factor: float, term: float) -> Array:
    if array.dtype.kind == "i" and factor:
        return array + array.dtype.type(1 if factor > 1 else -1)
    return (array * factor + term).astype(array.dtype)


def _unclipped(index: Array, extent: int, at_end: bool) -> Array:
    """Let what lies outside be the last but one, or the second; where the extent is 1 that is no mistake."""
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


def _started_elsewhere(program: Program, place: int, number: float) -> Program:
    """Reduce into a tensor of another name, and put what comes of one number more in the old one."""
    statement = program.statements[place]
    assert statement.reduce is not None
    inner = replace(statement.target, tensor=f"{statement.target.tensor}'")  # a name that no program can have
    value = Apply(statement.reduce, (inner, Const(number)))
    both = replace(statement, target=inner), Statement(statement.target, None, value)
    types = *program.types, (inner.tensor, program.type[statement.target.tensor])
    statements = *program.statements[:place], *both, *program.statements[place + 1 :]
    return replace(program, statements=statements, types=types)


def _padded_with(program: Program, probe: OtherPad) -> Program:
    value, wrong = program.statements[probe.statement].value, replace(probe.access, pad=probe.number)
    return _with(program, probe.statement, value=_replaced(value, probe.access, wrong))


def _padded_on_a_side(
    program: Program, inputs: Arrays, probe: OtherPad, dimension: int, at_end: bool
) -> tuple[Program, dict[str, Array]]:
    """Let a tensor with its padding be an input, whose elements on one side are other ones."""
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


def _taking_the_last(program: Program, place: int) -> Program:
    statements = list(program.statements)
    old = statements[place]
    other = EXCHANGED[old.reduce or ""]
    statements[place] = replace(old, reduce=other, value=_other_end(old.value))
    return replace(program, statements=tuple(statements))


def _other_end(expr: Expr) -> Expr:
    """Let infinities have the other sign, so that they still lose."""
    if isinstance(expr, Const):
        return Const(-expr.value) if isinf(expr.value) else expr
    return Apply(expr.function, tuple(map(_other_end, expr.args))) if isinstance(expr, Apply) else expr


def _slipped(program: Program, place: int) -> Program:
    statements = list(program.statements)
    for i, statement in enumerate(statements):
        if place < (n := places_of(statement.value)):
            statements[i] = replace(statement, value=_wrong(statement.value, place))
            return replace(program, statements=tuple(statements))
        place -= n
    raise AssertionError(place)


def _wrong(expr: Expr, place: int) -> Expr:
    """Make the mistake at a place, counted from the expression itself, then through its arguments."""
    if isinstance(expr, Const):
        # 1.5 times 0 would be no mistake.
        return Const(expr.value * 1.5 if expr.value else 0.5)
    assert isinstance(expr, Apply)
    if slips(expr) and place == 0:
        return expr.args[0] if len(expr.args) == 1 else Apply(EXCHANGED[expr.function], expr.args)
    args, place = list(expr.args), place - slips(expr)
    for i, arg in enumerate(args):
        if 0 <= place < (n := places_of(arg)):
            args[i] = _wrong(arg, place)
        place -= n
    return Apply(expr.function, tuple(args))
