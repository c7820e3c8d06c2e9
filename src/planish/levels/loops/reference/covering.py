"""Random inputs on which all outputs react to all inputs, for programs that do more than add and multiply.

The sets of `planish.levels.loops.reference.cases` are chosen by mistakes that are made on purpose; each of
those counts as seen where one element shows it. Here every element of the outputs counts: where it
saturates, or lies far from the number that it is compared with, a mistake in it hides. Sets are drawn at
random, and those are taken that cover most pairs of an input and an element that reacts to it (the greedy
approximation of a set cover).

Where numbers are compared, or the greater is taken, each way through an expression is covered first, as far
as sets were drawn that go it (path coverage): a rare one, such as the zero of `exp` far below, counts
for little by the number of the elements that react.

Of a `max=` or `min=` one element counts. Where few outputs select among many elements, the element that is
selected is not left to chance: each set has the extremes elsewhere (a Latin hypercube over the indices).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import islice
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np

from planish.core.hashing import rng
from planish.levels.loops.lang.draft import index_ranges
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import COMPARISONS, Apply, Expr, Program, TensorType, applied
from planish.levels.loops.reference.cases import (
    SOME,
    SOME_WORK,
    TESTABLE_MIN,
    Case,
    case_of,
    shows_all,
    work_of,
)
from planish.levels.loops.reference.checking import Expected
from planish.levels.loops.reference.inputs import aligned, make_inputs, must_be_positive, numbers_of
from planish.levels.loops.reference.packed import chosen_over_numbers
from planish.levels.loops.reference.reference import Trace, reference
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
_FAR = 6.5, 12.0
"""Powers of 2 where exponentials underflow or overflow: beyond 104 in float32, and beyond 746 in float64."""
_MOST = 60_000.0
"""Magnitudes are below it: float16 has no larger ones."""

DRAWN = 4
"""So many random sets are drawn for each that is taken."""
WORK = 1e7
"""Points of iteration spaces that may be computed to choose sets: about a tenth of a second."""
ELEMENTS = 1 << 22
"""Elements of all sets together at most."""
_CHOICES = {*COMPARISONS, "max", "min", "relu"}
"""Functions of which the greater argument decides their result."""
_MOST_CHOICES = 8
"""Choices in an expression that make its ways; further ones are not looked at."""
_FURTHER = 2
"""Sets for each of which one more is drawn for the sake of rare paths."""
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


def _varied_inputs(program: Program, seed: int, number: int) -> Arrays:
    """Draw a random set; of most sets only what has to be positive is."""
    generator = rng(seed, number, 1 << 18)
    positive = must_be_positive(program) if generator.random() < 0.75 else set[str]()
    kinds = (*_KINDS, "far") if _has_exponentials(program) else _KINDS
    common = kinds[int(generator.integers(len(kinds)))] if generator.random() < _SHARED else ""
    values = (*_USUAL, *numbers_of(program))
    made = make_inputs(program, seed * 1000 + number)
    for name in (n for n in program.inputs if n not in index_ranges(program)):
        kind = common or kinds[int(generator.integers(len(kinds)))]
        drawn = _drawn(generator, kind, program.type[name].shape, values)
        made[name] = _stored(np.abs(drawn) + 2.0**-8 if name in positive else drawn, program.type[name])
    # Of many random indices each occurs several times: to read one of them wrong changes no greatest element.
    for name, extent in index_ranges(program).items():
        if name in made and generator.random() < _SHARED:
            made[name][...] = generator.integers(extent)
            index = tuple(_any_index(generator, length) for length in made[name].shape)
            made[name][index] = generator.integers(extent)
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
        made[name] = _stored(np.abs(drawn) if name in positive else drawn, program.type[name])
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


def _stored(drawn: Array, kind: TensorType) -> Array:
    """Round to the tensor's type; integers are some times as large, so that not all are 0."""
    array = aligned(kind)
    if array.dtype.kind == "i":
        info = np.iinfo(array.dtype)
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
    if kind == "far":
        far = generator.random(shape) < 0.5
        return np.where(far, made * 2.0 ** generator.uniform(*_FAR), made)
    if kind == "shifted":
        made = float(generator.choice((-1.0, 1.0))) + made * 2.0 ** -int(generator.integers(4))
    # Of no dimension, NumPy returns a number that cannot be written into.
    made = np.asarray(made * 2.0 ** generator.uniform(-_OCTAVES, _OCTAVES))
    if kind == "sparse":
        return np.where(generator.random(shape) < 0.2, made, 0.0)
    if kind == "peaked":
        index = tuple(_any_index(generator, extent) for extent in shape)
        made[index] = made[index] * generator.choice((_PEAK, -_PEAK, 1 / _PEAK, -1 / _PEAK, 0.0))
    return made


def _signs(generator: np.random.Generator, shape: Sequence[int]) -> Array | float:
    if generator.random() < 0.5:
        return np.where(generator.random(shape) < 0.5, -1.0, 1.0)
    return float(generator.choice((-1.0, 1.0)))


def _has_exponentials(program: Program) -> bool:
    """Return whether exponentials are computed beside comparisons, which their limits may decide."""
    found = {expr.function for s in program.statements for expr in applied(s.value)}
    return not found.isdisjoint(COMPARISONS) and not found.isdisjoint({"exp", "sigmoid", "tanh", "erf"})


def _any_index(generator: np.random.Generator, extent: int) -> Any:
    """Choose an index of a dimension, the first and the last one often, or all of them."""
    which = int(generator.integers(5))
    return (slice(None), 0, -1, *[int(generator.integers(extent))] * 2)[which]


class _Set(NamedTuple):
    """A set of inputs, for each input which elements of the outputs react to it, and the ways it goes."""

    case: Case
    ways: frozenset[Hashable]
    reacts: Array


@chosen_over_numbers
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
    # Where nearly all sets are taken, what reacts matters less than to have rare ways among them.
    looked_at = drawn if drawn >= 2 * count or not chooser.has_choices else -(-drawn // 2)
    further = (drawn - looked_at) * len(program.inputs) + (drawn // _FURTHER if chooser.has_choices else 0)
    sets = list(chooser.drawn(range(looked_at)))
    sets += chooser.between(sets) if count else ()
    sets += chooser.drawn(range(looked_at, drawn + further), reactions=False)
    return [*(c for c in extreme if c.testable >= TESTABLE_MIN), *_covering(sets, count)]


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
    """Finds sets in which the outputs react; `has_choices` says that expressions have several ways."""

    def __init__(self, program: Program, seed: int) -> None:
        self._program, self._seed = program, seed
        self._generator = rng(seed, len(program.inputs), 1 << 23)
        self._names = [name for name in program.inputs if name not in index_ranges(program)]
        self.has_choices = any(
            expr.function in _CHOICES for s in program.statements for expr in applied(s.value)
        )

    def drawn(self, numbers: Iterable[int], *, reactions: bool = True) -> Iterator[_Set]:
        """Draw random sets, but for those in which few elements are usual numbers.

        What reacts to which input is computed if asked for: it takes an evaluation each.
        """
        for number in numbers:
            if found := self._of(_varied_inputs(self._program, self._seed, number), reactions=reactions):
                yield found

    def _of(self, inputs: Arrays, *, reactions: bool = True) -> _Set | None:
        trace: Trace | None = [] if self.has_choices else None
        case = case_of(self._program, inputs, trace=trace)
        if case.testable < TESTABLE_MIN:
            return None
        reacts = np.zeros((len(self._names), sum(e.value.size for e in case.outputs.expected.values())), bool)
        for i, name in enumerate(self._names if reactions else ()):
            reacts[i] = self._differs(case, {name: self._nudged(case.inputs[name])})
        return _Set(case, _ways(trace or ()), reacts)

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
            made = (self._of(inputs) for inputs in islice((each for each in found if each), _BETWEEN))
            yield from (each for each in made if each)

    def _jump(self, case: Case, to: Array, name: str) -> Arrays | None:
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
        return {**case.inputs, name: made}

    def _differs(self, case: Case, changed: Arrays) -> Array:
        wrong = reference(self._program, {**case.inputs, **changed}).expected
        found = [_apart(expected, wrong[name]) for name, expected in case.outputs.expected.items()]
        return np.concatenate([each.reshape(-1) for each in found])

    def _nudged(self, array: Array) -> Array:
        factor = 1 + self._generator.uniform(-_NUDGED, _NUDGED, array.shape)
        dropped = self._generator.random(array.shape) < _DROPPED
        return np.where(dropped, 0, array * factor).astype(array.dtype)


def _apart(one: Expected, other: Expected) -> Array:
    """Compute which elements differ, or are known in one result and may be several numbers in the other."""
    with np.errstate(over="ignore", invalid="ignore"):
        unsure = other.tolerance > _UNSURE * one.tolerance
        within = one.accepts(other.low) & one.accepts(other.high)
        return ~one.accepts(one.stored(other.value)) | (unsure & ~within)


def _ways(trace: Iterable[tuple[Apply, Sequence[Array]] | None]) -> frozenset[Hashable]:
    """List the ways that were gone through expressions: which of two numbers was greater at each choice."""
    found: set[Hashable] = set()
    codes, applied = np.zeros((), np.int64), list[Expr]()
    for step in trace:
        if step is None:
            seen = np.flatnonzero(np.bincount(codes.reshape(-1))) if applied else ()
            found.update((tuple(applied), int(code)) for code in seen)
            codes, applied = np.zeros((), np.int64), []
        elif step[0].function in _CHOICES and step[0] not in applied and len(applied) < _MOST_CHOICES:
            one, other = (*step[1], 0.0)[:2]
            # Neither is greater of two equals, nor of NaN.
            codes = 3 * codes + np.greater(one, other) + 2 * np.less(one, other)
            applied.append(step[0])
    return frozenset(found)


def _covering(sets: Sequence[_Set], count: int) -> list[Case]:
    """Select sets until each way is covered, half of them at most, then those in which most elements react.

    Selection is greedy: an element counts less, the more selected sets it reacts in.
    """
    if not sets:
        return []
    reacts = np.stack([each.reacts.reshape(-1) for each in sets]).astype(np.float32)
    weight = np.ones(reacts.shape[1], np.float32)
    kept: list[int] = []

    def keep(number: int) -> None:
        nonlocal weight
        kept.append(number)
        weight = np.where(reacts[number] > 0, weight / 2, weight)

    for number in islice(_going_all_ways(sets), -(-count // 2)):
        keep(number)
    while len(kept) < min(count, len(sets)):
        total = reacts @ weight
        total[kept] = -1
        keep(int(total.argmax()))
    return [sets[number].case for number in kept]


def _going_all_ways(sets: Sequence[_Set]) -> Iterator[int]:
    """List the numbers of sets, each of which goes the most ways that none before it went."""
    missing = frozenset[Hashable]().union(*(each.ways for each in sets))
    while missing:
        number = max(range(len(sets)), key=lambda i: len(sets[i].ways & missing))
        missing -= sets[number].ways
        yield number
