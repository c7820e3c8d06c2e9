"""Small mistakes in what a program reads: inputs are good where they make such mistakes visible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isinf

from planish.core.seeds import rng
from planish.loops.lang.program import POSITIONS, Access, Apply, Const, Expr, Program, Statement, accesses
from planish.loops.lang.subscripts import index_ranges
from planish.loops.reference.views import overhang

MOST = 64


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
    found: list[Probe] = [Slip(i) for i in range(sum(places_of(s.value) for s in program.statements))]
    for i, s in enumerate(program.statements):
        found += [OtherStart(i, number) for number in _STARTS.get(s.reduce or "", ())]
        found += [OtherReduction(i)] if s.reduce else []
        found += [OtherPad(i, a, n, side) for a, side in _padded(s, program) for n in _other_pads(a.pad or 0)]
    found += [Unclipped(tensor, at_end) for tensor in _indices(program) for at_end in (False, True)]
    found += [Garbled(t, *how) for t in program.written if t not in program.outputs for how in _GARBLED]
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
    """Give a number below and one above, as either may be hidden."""
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
        if places := [(t, d) for t, d in sorted(found) if program.type[t].shape[d] > 1]:
            yield tuple(places)


def _reduces_positions(statement: Statement) -> bool:
    found = any(a.tensor == POSITIONS for a in accesses(statement.value))
    return found and statement.reduce in EXCHANGED


def slips(expr: Expr) -> bool:
    """Whether an expression itself may be a slip."""
    return isinstance(expr, Const) or (
        isinstance(expr, Apply) and (len(expr.args) == 1 or expr.function in EXCHANGED)
    )


def places_of(expr: Expr) -> int:
    """Count the slips in an expression."""
    inside = sum(map(places_of, expr.args)) if isinstance(expr, Apply) else 0
    return slips(expr) + inside
