"""Random inputs on which all outputs react to all inputs, for programs that do more than add and multiply.

The sets of `planish.levels.loops.reference.cases` are chosen by mistakes that are made on purpose; each of
those counts as seen where one element shows it. Here every element of the outputs counts: where it
saturates, or lies far from the number that it is compared with, a mistake in it hides. Sets are drawn at
random, and those are taken that cover most pairs of an input and an element that reacts to it (the greedy
approximation of a set cover).

Of a `max=` or `min=` one element counts. Where few outputs select among many elements, the element that is
selected is not left to chance: each set has the extremes elsewhere (a Latin hypercube over the indices).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np

from planish.core.hashing import rng
from planish.levels.loops.lang.element_types import WHOLE, numpy_type
from planish.levels.loops.lang.program import Program, TensorType
from planish.levels.loops.lang.subscripts import index_ranges
from planish.levels.loops.reference.cases import SOME, SOME_WORK, TELLING, Case, case_of, shows_all, work_of
from planish.levels.loops.reference.checking import Expected
from planish.levels.loops.reference.inputs import aligned, make_inputs, must_be_positive, numbers_of
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.reference.views import Array, Arrays

_KINDS = ("scaled", "scaled", "shifted", "shifted", "spread", "equal", "sparse", "peaked", "peaked")
_OCTAVES = 7
"""Magnitudes are scaled by 2 to a power from -7 to 7, whole or not: a sum comes near any number."""
_USUAL = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0)
"""Values of which many elements are equal, beside the numbers in a program."""
_PEAK = 64.0
_EXTREME = 4.0, 64.0
"""By how much extremes are larger than the rest: enough in a sum, or little lest a function saturates."""
_SHARED = 0.5
"""The share of sets in which all inputs are of one kind."""
_MOST = 60_000.0
"""Magnitudes are below it: float16 has no larger ones."""


def varied_inputs(program: Program, seed: int, number: int) -> Arrays:
    """Make a set of inputs.

    Args:
        program: what they are for.
        seed: of all sets.
        number: of the set.
    """
    generator = rng(seed, number, 1 << 18)
    positive = must_be_positive(program) if generator.random() < 0.75 else set[str]()
    common = _KINDS[int(generator.integers(len(_KINDS)))] if generator.random() < _SHARED else ""
    values = (*_USUAL, *numbers_of(program))
    made = make_inputs(program, seed * 1000 + number)
    for name in (n for n in program.inputs if n not in index_ranges(program)):
        kind = common or _KINDS[int(generator.integers(len(_KINDS)))]
        drawn = _drawn(generator, kind, program.type[name].shape, values)
        made[name] = _stored(
            np.abs(drawn) + 2.0**-8 if name in positive else drawn, program.type[name], program
        )
    return made


def extreme_inputs(program: Program, seed: int, number: int, count: int) -> Arrays:
    """Make a set in which a greatest, a least and a smallest element of each input have planned indices.

    Args:
        program: what they are for.
        seed: of all sets.
        number: of the set; the first has the greatest elements at the first index, the second at the last.
        count: of the sets; together they have them at every index of small inputs, else at indices that are
            spread over each dimension.
    """
    generator = rng(seed, number, 1 << 24)
    positive = must_be_positive(program)
    made = make_inputs(program, seed * 1000 + number)
    for i, name in enumerate(n for n in program.inputs if n not in index_ranges(program)):
        shape = program.type[name].shape
        drawn = np.asarray(generator.uniform(0.5, 1.0, shape) * _signs(generator, shape))
        scale = float(generator.choice(_EXTREME))
        # A smallest one first: the others matter more where few sets are to have all.
        for j, value in enumerate((2.0**-8, scale, -scale / 2)):
            drawn[_planned(rng(seed, i, 1 << 25), shape, (number + j) % count, count)] = value
        drawn *= 2.0 ** generator.uniform(-1, 1)
        made[name] = _stored(np.abs(drawn) if name in positive else drawn, program.type[name], program)
    return made


def _planned(
    generator: np.random.Generator, shape: Sequence[int], number: int, count: int
) -> tuple[int, ...]:
    """Return the indices of one of some elements that are spread over a tensor; in order of `number`, any."""
    size = prod(shape)
    if size <= count:
        return tuple(int(n) for n in np.unravel_index(generator.permutation(size)[number % size], shape))
    if number < 2:
        return tuple(-number % extent for extent in shape)
    # Of each dimension all indices, or one in each of as many parts as there are sets.
    parts = (generator.permutation(np.arange(count) * extent // count) for extent in shape)
    return tuple(
        min(int(part[number] + generator.integers(max(1, extent // count))), extent - 1)
        for part, extent in zip(parts, shape, strict=True)
    )


def _stored(drawn: Array, kind: TensorType, program: Program) -> Array:
    """Round to the tensor's type; integers are some times as large, so that not all are 0."""
    array = aligned(kind)
    if program.arithmetic == WHOLE:
        info = np.iinfo(kind.dtype)
        array[...] = np.clip(np.round(drawn * 8), info.min, info.max)
    else:
        array[...] = np.clip(drawn, -_MOST, _MOST).astype(numpy_type(kind.dtype))
    return array


def _drawn(generator: np.random.Generator, kind: str, shape: Sequence[int], values: Sequence[float]) -> Array:
    """Draw elements of a kind."""
    if kind == "equal":
        return np.asarray(generator.choice(values, shape))
    made = np.asarray(generator.uniform(0.5, 1.0, shape)) * _signs(generator, shape)
    if kind == "spread":
        return made * 2.0 ** generator.uniform(-10, 10, shape)
    if kind == "shifted":
        made = float(generator.choice((-1.0, 1.0))) + made * 2.0 ** -int(generator.integers(4))
    # Of no dimension, NumPy gives a number that cannot be written into.
    made = np.asarray(made * 2.0 ** generator.uniform(-_OCTAVES, _OCTAVES))
    if kind == "sparse":
        return np.where(generator.random(shape) < 0.2, made, 0.0)
    if kind == "peaked":
        place = tuple(_place(generator, extent) for extent in shape)
        made[place] = made[place] * generator.choice((_PEAK, -_PEAK, 1 / _PEAK, -1 / _PEAK, 0.0))
    return made


def _signs(generator: np.random.Generator, shape: Sequence[int]) -> Array | float:
    if generator.random() < 0.5:
        return np.where(generator.random(shape) < 0.5, -1.0, 1.0)
    return float(generator.choice((-1.0, 1.0)))


def _place(generator: np.random.Generator, extent: int) -> Any:
    """Choose an index of a dimension, the first and the last one often, or all of them."""
    which = int(generator.integers(5))
    return (slice(None), 0, -1, *[int(generator.integers(extent))] * 2)[which]


DRAWN = 4
"""So many random sets are drawn for each that is taken."""
WORK = 1e7
"""Points of iteration spaces that may be computed to choose sets: about a tenth of a second."""
ELEMENTS = 1 << 22
"""Elements of all sets together at most."""
SELECTED = 32
"""Elements that all sets with extremes select together; where any set selects as many, there are none."""
_NUDGED, _DROPPED = 0.25, 0.125
"""To see what reacts to an input, elements are changed by up to a quarter, and one in eight is 0."""
_REACTING = 0.5
"""The share of the outputs that have to react to an input in some set; else such a set is looked for."""
_UNSURE = 8
"""So many times as large a tolerance is more than that of rounding: a comparison has either outcome."""
_TRIED, _BETWEEN, _HALVINGS = 24, 6, 8
"""Pairs of sets that are tried, sets made between two, and how often the distance is halved for each."""


class _Set(NamedTuple):
    """A set of inputs, and for each input which elements of the outputs react to it."""

    case: Case
    reacts: Array


def varied_cases(program: Program, seed: int, most: int) -> list[Case]:
    """Choose random sets of inputs for a small program.

    Args:
        program: what the kernels compute.
        seed: of the inputs.
        most: how many at most, beside those with extremes; fewer where the program is large, or its outputs
            are NaN or infinite.

    Returns:
        The sets; none where the outputs react to every mistake anyway.
    """
    if shows_all(program):
        return []
    chooser = _Chooser(program, seed)
    size = sum(program.type[name].size for name in (*program.inputs, *program.outputs))
    points = work_of(program)
    room = int(min(most * SOME_WORK / SOME / points, ELEMENTS / size))
    extreme = [case_of(program, inputs) for inputs in _extreme(program, seed, room)]
    count = min(most, room)
    drawn = max(count, min(DRAWN * count, int(WORK / points / (1 + len(program.inputs)))))
    cases = (case_of(program, varied_inputs(program, seed, n)) for n in range(drawn))
    sets = [chooser.of(case) for case in cases if case.testable >= TELLING]
    sets += chooser.between(sets) if count else ()
    return [*(c for c in extreme if c.testable >= TELLING), *_covering(sets, count)]


def _extreme(program: Program, seed: int, room: int) -> Iterator[Arrays]:
    """Make sets with extremes, as many as select `SELECTED` elements together, or every one."""
    wanted = 0
    for statement in program.statements:
        if statement.reduce in ("max", "min"):
            terms, outputs = (
                prod(program.size[axis] for axis in axes)
                for axes in (statement.reduced_axes, statement.output_axes)
            )
            wanted = max(wanted, min(terms, ceil(SELECTED / outputs)))
    wanted = min(wanted, room) if wanted > 1 else 0
    return (extreme_inputs(program, seed, n, wanted) for n in range(wanted))


class _Chooser:
    """Finds sets in which the outputs react.

    Args:
        program: whose.
        seed: of the changes to inputs.
    """

    def __init__(self, program: Program, seed: int) -> None:
        self._program = program
        self._generator = rng(seed, len(program.inputs), 1 << 23)
        self._names = [name for name in program.inputs if name not in index_ranges(program)]

    def of(self, case: Case) -> _Set:
        """Compute which elements of the outputs react to each input of a set."""
        reacts = [self._differs(case, {name: self._nudged(case.inputs[name])}) for name in self._names]
        return _Set(case, np.array(reacts).reshape(len(reacts), -1))

    def between(self, sets: Sequence[_Set]) -> Iterator[_Set]:
        """Look for sets on the line between two where an output jumps, for inputs that it hardly reacts to.

        Where something is compared with a number far out, all of a set lies on one side of it.
        """
        for i, name in enumerate(self._names):
            if not sets or np.any([each.reacts[i] for each in sets], axis=0).mean() >= _REACTING:
                continue
            pairs = ((one, other) for one in sets for other in sets if one is not other)
            found = (
                self._jump(one.case, other.case.inputs[name], name) for one, other in islice(pairs, _TRIED)
            )
            yield from (self.of(case) for case in islice((c for c in found if c), _BETWEEN))

    def _jump(self, case: Case, to: Array, name: str) -> Case | None:
        """Change an input of a set towards another one until half of the outputs that change have done so."""
        start, low, high = case.inputs[name].astype(np.float64), 0.0, 1.0
        changes = np.count_nonzero(self._differs(case, {name: to}))
        if not changes:
            return None
        made = to
        for _ in range(_HALVINGS):
            at = (low + high) / 2
            made = (start + at * (to.astype(np.float64) - start)).astype(to.dtype)
            changed = np.count_nonzero(self._differs(case, {name: made}))
            if 0.25 * changes <= changed <= 0.75 * changes:
                break
            low, high = (at, high) if changed < changes / 2 else (low, at)
        return case_of(self._program, {**case.inputs, name: made})

    def _differs(self, case: Case, changed: Arrays) -> Array:
        wrong = reference(self._program, {**case.inputs, **changed}).expected
        found = [_apart(expected, wrong[name]) for name, expected in case.answer.expected.items()]
        return np.concatenate([each.reshape(-1) for each in found])

    def _nudged(self, array: Array) -> Array:
        factor = 1 + self._generator.uniform(-_NUDGED, _NUDGED, array.shape)
        dropped = self._generator.random(array.shape) < _DROPPED
        return np.where(dropped, 0, array * factor).astype(array.dtype)


def _apart(one: Expected, other: Expected) -> Array:
    """Compute which elements differ, or are known in one answer and may be several numbers in the other."""
    with np.errstate(over="ignore", invalid="ignore"):
        unsure = other.tolerance > _UNSURE * one.tolerance
        within = one.accepts(other.low) & one.accepts(other.high)
        return ~one.accepts(one.stored(other.value)) | (unsure & ~within)


def _covering(sets: Sequence[_Set], count: int) -> list[Case]:
    """Take again and again the set in which most reacts that did not react before, or did so less often."""
    left, kept = list(sets), list[Case]()
    worth: Any = 1.0
    while left and len(kept) < count:
        best = max(left, key=lambda each: float((each.reacts * worth).sum()))
        kept.append(best.case)
        left = [each for each in left if each is not best]
        worth = worth * np.where(best.reacts, 0.5, 1.0)
    return kept
