"""Choice of inputs that make the errors of kernels visible.

An error hides where `relu` gives 0, where `min` or `tanh` saturates, in an element that does not win a
`max=`, within a tolerance, beside a NaN. So inputs of several styles are tried. A few small mistakes are made
on purpose, in the reference: which sets show them separates good sets from bad ones, as mutation testing
does for good tests (DeMillo, Lipton and Sayward 1978). Sets are taken until no mistake hides, two at least,
and more where they have few elements.

Sets with special values have zeros, the ends of each type's range, infinities and NaN, a few of each, so that
most outputs stay usual numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, product, repeat
from math import prod

import numpy as np

from planish.core import ProgramError
from planish.core.hashing import rng
from planish.levels.loops.lang.draft import axes_of, index_ranges
from planish.levels.loops.lang.element_types import INTEGER
from planish.levels.loops.lang.program import QUINT8, Const, Program, Statement, applied
from planish.levels.loops.reference.checking import ReferenceOutputs
from planish.levels.loops.reference.inputs import (
    MIXED,
    POSITIVE,
    Styles,
    all_styles,
    is_long,
    make_inputs,
    must_be_positive,
    rounded_tf32,
    terms_of,
    usual_styles,
)
from planish.levels.loops.reference.mutations import Mutation, list_mutations
from planish.levels.loops.reference.packed import chosen_over_numbers
from planish.levels.loops.reference.reference import Trace, factors, reference
from planish.levels.loops.reference.views import Array, Arrays

ZERO, LARGEST, INFINITE, NAN = "zero", "largest", "infinite", "NaN"
SPARSE = 1 << 12
"""Elements for which an array has each special value once more."""
_SMALL = {"float16": 2.0**-10}
_USUAL_SMALL = 2.0**-22
"""The other elements' magnitudes where a program is linear: products of two lie far below 1e-6."""
_SMALLER = 2.0**-22
"""By how much they are smaller where all are near zero; not in float16, which has no such numbers."""
_HUGE = {"float16": 2.0**14, "float64": 2.0**200}
_USUAL_HUGE = 2.0**124
"""Of float64 products of five are in range, for the reference has no more range than the kernel."""
_TINY = {"float16": (2.0**-14, 2.0**-20), "float64": (2.0**-300, 2.0**-1060)}
_USUAL_TINY = 2.0**-100, 2.0**-130
"""A normal number and a subnormal one of each type; the usual ones are those of bfloat16, too."""
_EXTREMES = {"max", "min"}


def _special_inputs(program: Program, seed: int, kinds: Sequence[str], *, small: bool) -> Arrays:
    """Make inputs with special values of some kinds; the other elements may be small.

    Values of one kind alone have one sign, so that a sum of them is not another special value. Only the first
    input has the largest values: products of two overflow.
    """
    made = make_inputs(program, seed, _special_styles(program, small=small, smaller=list(kinds) == [ZERO]))
    # The sign of a zero that is computed is not specified, nor is that of an infinite quotient.
    divides = any("div" in _functions(s) for s in program.statements)
    divisors = must_be_positive(program) if divides else set[str]()
    slices = any(s.reduce in _EXTREMES for s in program.statements)
    sums = any(s.reduce == "add" for s in program.statements)
    ranges = index_ranges(program)
    floats = [name for name in made if made[name].dtype.kind not in "iu"]
    for i, (name, array) in enumerate(made.items()):
        if name not in floats:
            continue
        generator = rng(seed, i, 1 << 19)
        own = [kind for kind in kinds if kind != LARGEST or i == 0]
        values = list(_values(program.type[name].dtype, own, zeros=name not in divisors, subnormal=not sums))
        if name in ranges:
            values = [v for v in values if not np.isfinite(v) or abs(v) > 1]
        if slices and INFINITE in kinds:
            _fill_slices(array, np.inf, generator)
        elif slices and list(kinds) == [ZERO]:
            _fill_slices(array, _TINY.get(program.type[name].dtype, _USUAL_TINY)[-1], generator)
        _strew(array, values, generator)
    _make_some_equal([made[n] for n in floats if n not in ranges], rng(seed, len(made), 1 << 19))
    return made


def _special_styles(program: Program, *, small: bool, smaller: bool) -> Styles:
    styles = usual_styles(program)
    if not (small or smaller):
        return styles
    usual = _USUAL_SMALL * (_SMALLER if smaller else 1.0)
    return {n: style.scaled(_SMALL.get(program.type[n].dtype, usual)) for n, style in styles.items()}


def _special_kinds(program: Program) -> Sequence[str]:
    """List the kinds of special values of which every right kernel makes the same.

    Partial products overflow and underflow in some orders only. Of infinities, the reference sums what only
    one of two factors has before it multiplies: that may be infinite where the sum of the products is NaN.
    """
    if any(s.reduce == "mul" for s in program.statements):
        return (NAN,)
    sums = (s for s in program.statements if s.reduce == "add")
    return (ZERO, LARGEST, INFINITE, NAN) if all(map(_sums_products, sums)) else (ZERO, LARGEST, NAN)


def _sums_products(statement: Statement) -> bool:
    first, second = factors(statement.value)
    both = set(axes_of(first)) & set(axes_of(second))
    return isinstance(second, Const) or set(statement.reduced_axes) <= both


def _whole_range_inputs(program: Program, seed: int, *, ends: bool) -> Arrays:
    """Make integers from the whole range of each type, or half of them at its ends and at 0, 1 and -1.

    Floats, and integers that are indices, are as usual.
    """
    made = make_inputs(program, seed)
    for i, (name, array) in enumerate(made.items()):
        if array.dtype.kind == "f" or name in program.integer_indices:
            continue
        generator, info = rng(seed, i, 1 << 19), np.iinfo(array.dtype)
        array[...] = generator.integers(info.min, info.max, array.shape, endpoint=True)
        special = np.array(
            [info.min, info.max, info.min + 1, info.max - 1, 0, 1, *([-1] if info.min else [])]
        )
        if ends:
            some = generator.random(array.shape) < 0.5
            array[...] = np.where(some, generator.choice(special, array.shape), array)
        _strew(array, special.tolist(), generator)
    _make_some_equal(list(made.values()), rng(seed, len(made), 1 << 19))
    return made


def _values(dtype: str, kinds: Sequence[str], *, zeros: bool, subnormal: bool) -> Iterator[float]:
    """List the special values of a type; subnormal ones are slow, and arithmetic may make zeros of them."""
    signs = (1, -1) if len(kinds) > 1 else (1,)
    if ZERO in kinds:
        yield from (0.0, -0.0) if zeros else ()
        tiny = _TINY.get(dtype, _USUAL_TINY)
        yield from (sign * value for value in tiny[: 1 + subnormal] for sign in (1, -1))
    if LARGEST in kinds:
        yield from (sign * _HUGE.get(dtype, _USUAL_HUGE) for sign in signs)
    if INFINITE in kinds:
        yield from (sign * np.inf for sign in signs)
    if NAN in kinds:
        yield from (np.nan, -np.nan)


def _strew(array: Array, values: Sequence[float], generator: np.random.Generator) -> None:
    """Put values at random indices: one of each, more in large arrays, at most half of the elements."""
    flat = array.reshape(-1)
    count = min(len(values) * (1 + flat.size // SPARSE), max(1, flat.size // 2))
    chosen = generator.choice(flat.size, count, replace=False)
    flat[chosen] = np.resize(np.array(values, flat.dtype), count)


def _make_some_equal(arrays: Sequence[Array], generator: np.random.Generator) -> None:
    """Make some elements of arrays of one shape equal."""
    for one, other in pairwise(arrays):
        if one.shape == other.shape:
            chosen = generator.choice(one.size, 1 + one.size // SPARSE, replace=False)
            other.reshape(-1)[chosen] = one.reshape(-1)[chosen]


def _fill_slices(array: Array, value: float, generator: np.random.Generator) -> None:
    """Fill a slice along each dimension, with each sign in turn, so that its greatest element is special."""
    for dimension, extent in enumerate(array.shape):
        if extent > 1:
            index = int(generator.integers(extent))
            array[(*[slice(None)] * dimension, index)] = value if dimension % 2 else -value


LEAST, MOST = 2, 16
TRIES = 64
WORK = 3e7
"""Points of iteration spaces that may be computed to choose inputs: about a third of a second."""
SOME, SOME_WORK = 8, 1 << 18
"""Sets of inputs that small programs have, and the points that are computed for them."""
SIGNS = 4
"""Sets of inputs that small linear programs have: each pair of corners has every combination of signs."""
TESTABLE_MIN = 0.25
"""The least share of outputs that are usual numbers in a set with special values of all kinds."""
_CALLS = 10_000
"""Points that take as long as to call NumPy for a statement."""
_BY_BLAS = 50
"""Points of a contraction that take as long as one of another statement."""
_BY_C = 8
"""Points of another statement that take as long as one where NumPy lacks the function."""
_LINEAR = {"add", "sub", "mul", "neg"}


@dataclass(frozen=True)
class Case:
    """Inputs, and what a correct kernel makes of them.

    Args:
        inputs: input to its elements.
        outputs: the reference's outputs, with tolerances.
        testable: the share of outputs' elements that separate right from wrong.
        shown: the mistakes that are seen with these inputs.
    """

    inputs: Arrays
    outputs: ReferenceOutputs
    testable: float
    shown: frozenset[Mutation] = frozenset()


@chosen_over_numbers
def choose_cases(program: Program, seed: int, least: int = LEAST) -> list[Case]:
    """Choose inputs to verify a program's kernels on.

    Args:
        program: what the kernels compute.
        seed: of the inputs; another one makes other inputs.
        least: how many sets at least; up to `MOST` are taken where fewer hide mistakes.

    Raises:
        ProgramError: an output is NaN or infinite on all inputs that were tried.
    """
    wanted = max(least, _enough(program))
    mutations, evaluations = _affordable(program, seed, wanted)
    tried: list[Case] = []
    usable, hidden = 0, frozenset(mutations)
    for number, styles in enumerate(islice(_styles(program, seed), TRIES)):
        looked_for = mutations if usable < LEAST else hidden
        # Fewer than 1000 are tried for each seed.
        inputs = make_inputs(program, seed * 1000 + number, styles)
        mixed = [n for n in _of_any_sign(program) if styles[n].signs == "mixed"]
        for i, name in enumerate(mixed):
            _sign_corners(inputs[name], _combination(number + 3 * seed, i))
        case = case_of(program, inputs, looked_for)
        tried.append(case)
        # A set in which some element shows nothing does not count, for a mistake may hide there.
        if case.testable == 1:
            usable, hidden = usable + 1, hidden - case.shown
        # A set takes one evaluation for the outputs, and one for each mistake.
        evaluations -= 1 + len(looked_for)
        if (usable >= wanted and not hidden) or (number + 1 >= min(LEAST, wanted) and evaluations <= 0):
            break
    kept = _chosen(tried, frozenset(mutations), least, wanted)
    _refuse_untestable(program, kept)
    if any(kind.dtype == QUINT8 for _, kind in program.types):
        # Usual ones are few and small: they do not show whether a type has a sign.
        kept.append(case_of(program, _whole_range_inputs(program, seed, ends=True)))
    return [*kept, *_of_missing_signs(program, seed, kept)] if wanted >= SOME else kept


def _of_missing_signs(program: Program, seed: int, kept: Sequence[Case]) -> Iterator[Case]:
    """Make sets whose corners have the signs that they have in no other."""
    missing = {name: _missing(name, kept) for name in _of_any_sign(program)}
    for number in range(max(map(len, missing.values()), default=0)):
        inputs = make_inputs(program, seed * 1000 + TRIES + number)
        for name in (name for name, signs in missing.items() if signs):
            _sign_corners(inputs[name], missing[name].pop())
        case = case_of(program, inputs)
        if case.testable == 1:
            yield case


@chosen_over_numbers
def special_cases(program: Program, seed: int, cases: Sequence[Case], *, apart: bool = False) -> list[Case]:
    """Make inputs with special values; of programs of integers, from the whole range of their types.

    Args:
        program: what the kernels compute.
        seed: of the inputs.
        cases: those that kernels are verified on besides; the sets have the signs at corners that these lack.
        apart: one set for each kind of special values; else one for all, unless most outputs would be NaN.

    Returns:
        The sets; none where to compute their outputs takes too long.
    """
    if work_of(program) > WORK:
        return []
    missing = {name: _missing(name, cases) for name in _of_any_sign(program)}

    def case(inputs: Arrays) -> Case:
        for i, (name, signs) in enumerate(missing.items()):
            _sign_corners(inputs[name], signs.pop() if signs else _combination(2 + seed, i))
        return case_of(program, inputs)

    if program.arithmetic == INTEGER:
        return [case(_whole_range_inputs(program, seed, ends=ends)) for ends in (False, True)]
    kinds, small = _special_kinds(program), shows_all(program)
    if not apart:
        together = case(_special_inputs(program, seed, kinds, small=small))
        if together.testable >= TESTABLE_MIN:
            return [together]
    return [case(_special_inputs(program, seed, [kind], small=False)) for kind in kinds]


def _missing(name: str, cases: Sequence[Case]) -> list[tuple[bool, bool]]:
    """List the signs, whether negative, that the first and the last element of an input have in no case."""
    arrays = (case.inputs[name].reshape(-1) for case in cases)
    with np.errstate(invalid="ignore"):
        found = {(bool(flat[0] < 0), bool(flat[-1] < 0)) for flat in arrays}
    either = (False, True)
    return [pair for pair in product(either, either) if pair not in found]


def _of_any_sign(program: Program) -> list[str]:
    """List the inputs that are neither indices nor have to be positive."""
    excluded = {*index_ranges(program), *must_be_positive(program)}
    excluded |= {name for name, kind in program.types if kind.dtype == QUINT8}
    return [name for name in program.inputs if name not in excluded]


def _combination(number: int, index: int) -> tuple[bool, bool]:
    """Return which corners of an input are negative in a set; each of four sets has other signs.

    Any two corners, of one input or of two in a row, have each combination of signs in one of the four.
    """
    bits = (3, 0, 2, 1)[number % SIGNS]
    first, last = ((bits & (corner % 3 + 1)).bit_count() % 2 == 1 for corner in (2 * index, 2 * index + 1))
    return first, last


def _sign_corners(array: Array, negative: tuple[bool, bool]) -> None:
    """Set the signs of the first and the last element."""
    flat = array.reshape(-1)
    for at, wanted in zip((0, -1), negative, strict=True):
        if flat.dtype.kind == "i":
            flat[at] = ~flat[at] if (flat[at] < 0) != wanted else flat[at]
        else:
            flat[at] = -abs(flat[at]) if wanted else abs(flat[at])


def _styles(program: Program, seed: int) -> Iterator[Styles]:
    """List styles; long sums are exact where the signs are mixed, so that comes several times."""
    if any(is_long(statement, program) for statement in program.statements):
        yield from repeat(usual_styles(program), LEAST - 1)
    elif shows_all(program):
        yield from (dict.fromkeys(program.inputs, style) for style in (MIXED, POSITIVE))
        yield from (dict.fromkeys(program.inputs, MIXED.scaled(scale)) for scale in (4, 1 / 16))
    yield from all_styles(program, seed)


def _chosen(tried: list[Case], hidden: frozenset[Mutation], least: int, wanted: int) -> list[Case]:
    """Select greedily: each time the set that detects the most mistakes not detected so far.

    There are `least` at least; up to `wanted` those are taken, too, of which every element shows something.
    """
    kept: list[Case] = []
    left = list(tried)
    while left and len(kept) < MOST:
        # The greedy approximation of a set cover.
        best = max(left, key=lambda c: (c.testable, len(c.shown & hidden), len(c.shown)))
        more = len(kept) < least or (len(kept) < wanted and best.testable == 1)
        if not more and not best.shown & hidden:
            break
        kept.append(best)
        left = [case for case in left if case is not best]
        hidden -= best.shown
    return kept


def case_of(
    program: Program, inputs: Arrays, mutations: Iterable[Mutation] = (), trace: Trace | None = None
) -> Case:
    """Compute a set's outputs, and which mistakes show in it; what is applied goes into the trace."""
    inputs = rounded_tf32(program, dict(inputs))
    outputs = reference(program, inputs, trace=trace)
    testable = sum(e.testable for e in outputs.expected.values())
    size = sum(e.value.size for e in outputs.expected.values())
    shown = frozenset(p for p in mutations if _is_shown(program, inputs, p, outputs))
    return Case(inputs, outputs, testable / size, shown)


def _is_shown(program: Program, inputs: Arrays, mutation: Mutation, outputs: ReferenceOutputs) -> bool:
    """Return whether a kernel with this mistake would be refused."""
    changes = mutation.changes(program)
    wrong = reference(mutation.program(program), mutation.inputs(program, inputs), changes=changes)
    with np.errstate(over="ignore", invalid="ignore"):
        return any(
            not np.all(expected.accepts(expected.stored(wrong[name])))
            for name, expected in outputs.expected.items()
        )


def _affordable(program: Program, seed: int, wanted: int) -> tuple[list[Mutation], int]:
    """Return the mistakes to be made, none where every mistake shows anyway, and how often to evaluate."""
    if shows_all(program):
        return [], wanted
    evaluations = int(WORK / work_of(program))
    mutations = list_mutations(program, seed)[: evaluations // LEAST - 1] if evaluations >= 2 * LEAST else []
    return mutations, evaluations


def _enough(program: Program) -> int:
    """Return how many sets are taken though fewer hide nothing: in few elements not every mistake shows."""
    if shows_all(program) and program.arithmetic == INTEGER:
        return 0  # those with special values have the other signs
    return min(SIGNS if shows_all(program) else SOME, int(SOME_WORK / work_of(program)))


def shows_all(program: Program) -> bool:
    """Return whether every mistake shows in the outputs: nothing but sums and products is computed."""
    return all(s.reduce in (None, "add") and _functions(s) <= _LINEAR for s in program.statements)


def _functions(statement: Statement) -> set[str]:
    return {expr.function for expr in applied(statement.value)}


def work_of(program: Program) -> float:
    """Estimate what the reference takes."""
    total = float(_CALLS * len(program.statements))
    for statement in program.statements:
        points = prod(program.size[axis] for axis in statement.axes)
        functions = _functions(statement)
        by_blas = statement.reduce == "add" and functions <= _LINEAR
        total += points / _BY_BLAS if by_blas else points * (_BY_C if "erf" in functions else 1)
    return total


def _refuse_untestable(program: Program, cases: list[Case]) -> None:
    for name in program.outputs:
        expected = [case.outputs.expected[name] for case in cases]
        if any(each.testable for each in expected):
            continue
        long = [terms_of(s, program) for s in program.statements if is_long(s, program)]
        if long and all(np.isfinite(each.value).any() for each in expected):
            dtype = program.arithmetic
            raise ProgramError(
                f"sums of {max(long):,} terms that do not cancel are too long for {dtype}: rounding changes "
                "them more than an error does, so no kernel can be verified",
                'Sum in two statements, a part in each, or use dtype="float64".',
            )
        raise ProgramError(
            f"{name} is NaN or infinite on all inputs that were tried, so no kernel can be verified",
            "Keep roots, logarithms and divisors in their domain, such as sqrt(abs(x)).",
        )
