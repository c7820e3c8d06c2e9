"""Small mistakes in what a program reads: inputs are good where they make such mistakes visible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import isinf

import numpy as np

from planish.core.seeds import rng
from planish.loops.lang.program import POSITIONS, Access, Apply, Const, Expr, Program, Statement, accesses
from planish.loops.lang.whole import WHOLE
from planish.loops.reference.views import Array, Arrays, overhang

MOST = 40


@dataclass(frozen=True)
class Misread:
    """What belongs to one index is read as its neighbour's: a pointer that does not move, a step left out.

    Args:
        places: (tensor, dimension) of what is misread: inputs, or one that is computed and no output. An
            input of one element is read as half as large again.
        index: the one that is not read.
    """

    places: tuple[tuple[str, int], ...]
    index: int


@dataclass(frozen=True)
class Slip:
    """A number is taken for a larger one, a function of one argument is left out, `max` and `min`
    exchanged, or `<` and `<=`, or `==` and `!=`.

    Args:
        place: which of them all, counted from the left, from 0.
    """

    place: int


@dataclass(frozen=True)
class OtherStart:
    """A reduction starts from another number: `max=` and `min=` from 0, `+=` from 1, `*=` from 2.

    Args:
        statement: which.
    """

    statement: int


@dataclass(frozen=True)
class OtherPad:
    """Around a tensor stands 0, or 1 where 0 is meant.

    Args:
        statement: which reads it.
        access: how.
    """

    statement: int
    access: Access


@dataclass(frozen=True)
class Last:
    """Of equals the last is taken, where the first is meant: the greatest position instead of the least.

    Args:
        statement: which reduces positions.
    """

    statement: int


Probe = Misread | Slip | OtherStart | OtherPad | Last
_STARTS = {"max": 0.0, "min": 0.0, "add": 1.0, "mul": 2.0}
_EXCHANGED = {"max": "min", "min": "max", "<": "<=", "<=": "<", "==": "!=", "!=": "=="}


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
    found: list[Probe] = [Slip(i) for i in range(sum(_places(s.value) for s in program.statements))]
    found += [OtherStart(i) for i, s in enumerate(program.statements) if s.reduce]
    found += [OtherPad(i, a) for i, s in enumerate(program.statements) for a in _padded(s, program)]
    found += [Last(i) for i, s in enumerate(program.statements) if _reduces_positions(s)]
    for places in dict.fromkeys((*_dimensions(program), *_along_axes(program))):
        n = min(program.type[tensor].shape[dimension] for tensor, dimension in places)
        some = {n - 1, int(generator.integers(n))}
        found += [Misread(places, index) for index in sorted(some)]
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
    """List the dimensions of what is computed on the way to the outputs, where a mistake may not tell.

    What is subtracted before `exp` and divided out again matters only where numbers overflow without it.
    """
    if program.arithmetic == WHOLE:
        return
    for name in dict.fromkeys(s.target.tensor for s in program.statements):
        if name not in program.outputs:
            yield from ((name, d) for d, n in enumerate(program.type[name].shape) if n > 1)


def _padded(statement: Statement, program: Program) -> Iterator[Access]:
    """List the reads of a statement that leave their tensors."""
    for access in dict.fromkeys(accesses(statement.value)):
        shape = program.type[access.tensor].shape
        if access.pad is not None and any(map(any, overhang(access, shape, program.size))):
            yield access


def _along_axes(program: Program) -> Iterator[tuple[tuple[str, int], ...]]:
    """List for each axis all dimensions that it walks alone."""
    reads = [a for s in program.statements for a in accesses(s.value) if a.tensor in program.inputs]
    for axis in program.size:
        found = {
            (a.tensor, d) for a in reads for d, index in enumerate(a.index) if index.terms == ((axis, 1),)
        }
        if places := [(t, d) for t, d in sorted(found) if program.type[t].shape[d] > 1]:
            yield tuple(places)


def mistaken(program: Program, inputs: Arrays, probe: Probe) -> tuple[Program, Arrays]:
    """Give the program and the inputs with which the reference computes what a mistaken kernel would."""
    if isinstance(probe, Slip):
        return _slipped(program, probe.place), inputs
    if isinstance(probe, OtherStart):
        return _started_elsewhere(program, probe.statement), inputs
    if isinstance(probe, OtherPad):
        return _padded_otherwise(program, probe), inputs
    if isinstance(probe, Last):
        return _taking_the_last(program, probe.statement), inputs
    changed = dict(inputs)
    for tensor, dimension in probe.places:
        if tensor in inputs:
            changed[tensor] = _misread(changed[tensor], dimension, probe.index)
    return program, changed


def misread_results(program: Program, probe: Probe) -> Mapping[str, Callable[[Array], Array]]:
    """Give what a mistake makes of tensors that are computed: name to change; see `reference`."""
    if not isinstance(probe, Misread):
        return {}
    return {
        tensor: partial(_misread, dimension=dimension, index=probe.index)
        for tensor, dimension in probe.places
        if tensor not in program.inputs
    }


def _misread(array: Array, dimension: int, index: int) -> Array:
    if array.size == 1 and array.dtype.kind == "i":
        return array + array.dtype.type(1)
    if array.size == 1:
        return array * array.dtype.type(1.5)
    order = np.arange(array.shape[dimension])
    order[index] = index - 1 if index else 1
    return np.take(array, order, dimension)


def _started_elsewhere(program: Program, place: int) -> Program:
    """Reduce into a tensor of another name, and put what comes of one number more in the old one."""
    statement = program.statements[place]
    assert statement.reduce is not None
    inner = replace(statement.target, tensor=f"{statement.target.tensor}'")  # a name that no program can have
    value = Apply(statement.reduce, (inner, Const(_STARTS[statement.reduce])))
    both = replace(statement, target=inner), Statement(statement.target, None, value)
    types = *program.types, (inner.tensor, program.type[statement.target.tensor])
    statements = *program.statements[:place], *both, *program.statements[place + 1 :]
    return replace(program, statements=statements, types=types)


def _padded_otherwise(program: Program, probe: OtherPad) -> Program:
    def replaced(expr: Expr) -> Expr:
        if expr == probe.access:
            return replace(probe.access, pad=0.0 if probe.access.pad else 1.0)
        return Apply(expr.function, tuple(map(replaced, expr.args))) if isinstance(expr, Apply) else expr

    statements = list(program.statements)
    old = statements[probe.statement]
    statements[probe.statement] = replace(old, value=replaced(old.value))
    return replace(program, statements=tuple(statements))


def _reduces_positions(statement: Statement) -> bool:
    found = any(a.tensor == POSITIONS for a in accesses(statement.value))
    return found and statement.reduce in _EXCHANGED


def _taking_the_last(program: Program, place: int) -> Program:
    statements = list(program.statements)
    old = statements[place]
    other = _EXCHANGED[old.reduce or ""]
    statements[place] = replace(old, reduce=other, value=_other_end(old.value))
    return replace(program, statements=tuple(statements))


def _other_end(expr: Expr) -> Expr:
    """Let infinities have the other sign, so that they still lose."""
    if isinstance(expr, Const):
        return Const(-expr.value) if isinf(expr.value) else expr
    return Apply(expr.function, tuple(map(_other_end, expr.args))) if isinstance(expr, Apply) else expr


def _slips(expr: Expr) -> bool:
    return isinstance(expr, Const) or (
        isinstance(expr, Apply) and (len(expr.args) == 1 or expr.function in _EXCHANGED)
    )


def _places(expr: Expr) -> int:
    inside = sum(map(_places, expr.args)) if isinstance(expr, Apply) else 0
    return _slips(expr) + inside


def _slipped(program: Program, place: int) -> Program:
    statements = list(program.statements)
    for i, statement in enumerate(statements):
        if place < (n := _places(statement.value)):
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
    if _slips(expr) and place == 0:
        return expr.args[0] if len(expr.args) == 1 else Apply(_EXCHANGED[expr.function], expr.args)
    args, place = list(expr.args), place - _slips(expr)
    for i, arg in enumerate(args):
        if 0 <= place < (n := _places(arg)):
            args[i] = _wrong(arg, place)
        place -= n
    return Apply(expr.function, tuple(args))
