"""Element types: NumPy's, integers, and the storage type of each tensor; all are computed in one type.

Inputs and outputs may be stored in a type that is narrower than the arithmetic. What is neither is kept in
the type of the arithmetic, and so are sums: a reduction whose target is narrower gets a tensor of its own,
and the target takes its elements, each rounded once. With C of float16, `C[m] += A[m,k]` becomes
`C_1[m] += A[m,k]; C[m] = C_1[m]`.

Integers are computed modulo 2^32, as NumPy does with int32.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import isinf, isnan, prod
from typing import TYPE_CHECKING, Any

from planish.core.errors import ProgramError, did_you_mean
from planish.levels.loops.lang.draft import (
    Shapes,
    fresh,
    gathers,
    index_tensors,
    is_gather,
    is_spread,
    is_whole,
    parts_of,
    value_tensors,
)
from planish.levels.loops.lang.program import (
    ARITHMETIC,
    BFLOAT16X2,
    COMPARISONS,
    DTYPES,
    INDICES,
    INPUTS_ONLY,
    INT8X4,
    PACKED,
    POSITIONS,
    QINT8,
    QINT32,
    QUADS,
    QUINT8,
    TF32,
    UINT8X4,
    Access,
    Apply,
    Const,
    Index,
    Program,
    Statement,
    accesses,
    number_text,
    parts,
    summed_type,
)

if TYPE_CHECKING:
    import numpy as np


# NumPy's types


@cache
def numpy_type(dtype: str) -> np.dtype[Any]:
    """Return the NumPy type of an element type; that of bfloat16 is the library `ml_dtypes`' own."""
    import numpy as np  # here: it takes long to import, and reading a program needs none of it

    if dtype == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(_NUMPY.get(dtype, dtype))


_NUMPY = {
    TF32: "float32",
    QINT8: "int8",
    QUINT8: "uint8",
    UINT8X4: "uint32",
    INT8X4: "int32",
    BFLOAT16X2: "uint32",
}
"""Type to NumPy's; an element of several numbers is their bytes as one integer, the first number lowest."""


# Integers

INTEGER = "int32"
"""The type that integers are computed in."""
FUNCTIONS = frozenset({"add", "sub", "mul", "max", "min", "neg", "abs", "relu", *COMPARISONS})
RANGES: Mapping[str, tuple[int, int]] = {"int8": (-128, 127), "int32": (-(2**31), 2**31 - 1)}


def check_integers(program: Program) -> None:
    """Refuse functions and numbers that integers do not have; raises ProgramError."""
    for expr in (part for s in program.statements for part in parts(s.value)):
        match expr:
            case Apply(function=function) if function not in FUNCTIONS:
                what = "look-ups" if is_gather(expr) else f"'{function}'"
                known = sorted(FUNCTIONS.difference(COMPARISONS))
                raise ProgramError(
                    f"integers have no {what}", f"They have {', '.join(known)}, and comparisons."
                )
            case Const(value=value):
                _check_number(value, INTEGER)
            case Access(tensor=tensor, pad=pad) if pad is not None:
                _check_number(pad, program.type[tensor].dtype)
            case _:
                pass


LARGEST: Mapping[str, float] = {"float32": (2 - 2.0**-23) * 2.0**127, "float64": (2 - 2.0**-52) * 2.0**1023}


def check_numbers(program: Program) -> None:
    """Refuse numbers that the type of a program's arithmetic does not reach; raises ProgramError."""
    for expr in (part for s in program.statements for part in parts(s.value)):
        number = expr.value if isinstance(expr, Const) else getattr(expr, "pad", None)
        if isinstance(expr, Access) and number is not None and program.type[expr.tensor].dtype == QINT8:
            _check_number(number, "int8")
        if number is None or isinf(number):
            continue
        if isnan(number):
            raise ProgramError("a number of the program is NaN", "Write numbers, or inf.")
        if abs(number) > LARGEST[program.arithmetic]:
            hint = 'Use dtype="float64".' if program.arithmetic == "float32" else "Write inf for an infinity."
            what = f"{number_text(number)} is larger than every number of {program.arithmetic}"
            raise ProgramError(what, hint)


MOST_QUADS = 2**31 // (4 * 255 * 128)
"""Products of quads whose sum fits into int32."""


def check_packed(program: Program) -> None:
    """Refuse elements of several numbers outside sums of products; raises ProgramError.

    Those of four integers are refused where int32 may not hold the sum.
    """
    sums, types = program.quad_sums, {name: kind.dtype for name, kind in program.types}
    for s in program.statements:
        packed = [a for a in accesses(s.value) if types[a.tensor] in PACKED]
        dtype = summed_type(s, types)
        if (packed or s.target.tensor in sums) and not dtype:
            uses = f"{UINT8X4} and {INT8X4}, or of two of {BFLOAT16X2}"
            what = f"{s} is no sum of products of {uses}: such elements have no other use"
            raise ProgramError(what, "Write T[m,n] += A[m,k] * B[k,n], with tensors of these types.")
        if any(a.pad for a in packed):
            what = f"padding of {packed[0].tensor} is not 0"
            raise ProgramError(what, "Elements of several numbers are padded by 0.")
        terms = prod(program.size[axis] for axis in s.reduced_axes)
        if dtype and terms == 1:
            raise ProgramError(f"{s} sums one product", "Sum at least two products of such elements.")
        if dtype in QUADS and terms > MOST_QUADS:
            what = f"{s} sums {terms:,} products of four, more than {MOST_QUADS:,}"
            raise ProgramError(what, "More may not fit into int32: sum in two statements, a part in each.")
        moved = {table.tensor for g in gathers(s.value) for table, _, _ in [parts_of(g)]}
        moved |= {a.tensor for a in accesses(s.value) if a.pad is not None}
        if found := sorted(moved & sums):
            what = f"{found[0]} is a sum of products of four, and can neither be padded nor looked up in"
            raise ProgramError(what, "Assign it to another tensor first.")


def _check_number(value: float, dtype: str) -> None:
    low, high = RANGES[dtype]
    if isinf(value) and dtype == INTEGER:
        return  # the least or the greatest of all
    if not (low <= value <= high and value == int(value)):
        raise ProgramError(
            f"{number_text(value)} is not a value of {dtype}",
            f"Its values are integers from {low} to {high}.",
        )


def nearest_integer(value: float) -> int:
    """Return the nearest number of int32: the least or the greatest where it is infinite."""
    low, high = RANGES[INTEGER]
    return int(min(max(value, low), high))


# Storage types

ALL = ""
"""Stands for all inputs and outputs among the names of tensors."""


def read_types(text: str) -> dict[str, str]:
    """Read `float16`, or `float16,C=float32`, or `A=bfloat16`: tensor, or `ALL`, to type.

    Raises:
        ProgramError: there is no such type, or the text cannot be read.
    """
    found: dict[str, str] = {}
    for item in filter(None, re.split(r"[,;\s]+", text)):
        name, equals, dtype = item.rpartition("=")
        if name in found:
            what = f"tensor '{name}' has" if name else "the rest has"
            raise ProgramError(f"{what} two element types, in '{text}'", "Give each tensor one type.")
        if bool(equals) != bool(name):
            raise ProgramError(
                f"'{text}' names no element types", 'Write dtype="float16", or dtype="A=float16".'
            )
        found[name] = known(dtype)
    return found


def known(dtype: str) -> str:
    """Return the type if there is one of this name; raises ProgramError."""
    types = [name for name in DTYPES if name not in (QUINT8, QINT32)]
    if dtype not in types:
        raise ProgramError(f"element type '{dtype}' is not supported", did_you_mean(dtype, types))
    return dtype


def stored_types(statements: Sequence[Statement], given: Mapping[str, str]) -> dict[str, str]:
    """Return each tensor its type.

    Args:
        statements: in order.
        given: tensor, or `ALL`, to type; the rest has the type of the arithmetic. Tensors of indices are
            narrow, or of integers, only where they are named.

    Raises:
        ProgramError: a name is not a tensor's, the types have no arithmetic in common, or a tensor that is
            neither an input nor an output is to be narrow, or an output of few integers.
    """
    written = dict.fromkeys(s.target.tensor for s in statements)
    read = dict.fromkeys(a.tensor for s in statements for a in accesses(s.value))
    indices = _integer_indices(statements, given)
    given = {tensor: dtype for tensor, dtype in given.items() if tensor not in indices}
    arithmetic = _arithmetic(given)
    usual = given.get(ALL, arithmetic)
    inner = {POSITIONS, *(t for t in read if t in written)}
    # A narrow type lacks most integers: bfloat16 has those to 256.
    inner |= index_tensors(statements)
    results = arithmetic if arithmetic == INTEGER or usual in INPUTS_ONLY else usual
    types = {t: arithmetic if t in inner else usual for t in read if t not in written}
    types |= {t: arithmetic if t in inner else results for t in written}
    for tensor, dtype in given.items():
        if tensor not in (ALL, *types):
            raise ProgramError(
                f"an element type is given for '{tensor}', which no statement has",
                did_you_mean(tensor, types),
            )
        if dtype != arithmetic and tensor in read and tensor in written:
            raise ProgramError(
                f"{tensor} is written and read, so it cannot be {dtype}",
                f"Give {dtype} to inputs and outputs; what is between them stays {arithmetic}.",
            )
        if dtype != arithmetic and tensor in written and (arithmetic == INTEGER or dtype in INPUTS_ONLY):
            why = "inputs alone are" if dtype in INPUTS_ONLY else "integers are not rounded to fewer bits"
            raise ProgramError(
                f"{tensor} is written, so it cannot be {dtype}: {why}",
                f"Give {dtype} to inputs; {arithmetic} is written.",
            )
    return types | {tensor: dtype for tensor, dtype in given.items() if tensor != ALL} | indices


def _integer_indices(statements: Sequence[Statement], given: Mapping[str, str]) -> dict[str, str]:
    """Return the tensors of indices that have a type of their own."""
    values, written = value_tensors(statements), {s.target.tensor for s in statements}
    indices = {t: given[t] for t in index_tensors(statements) if given.get(t) in INDICES}
    for tensor, dtype in indices.items():
        if tensor in values or tensor in written:
            does = "written" if tensor in written else "read as a number"
            raise ProgramError(
                f"{tensor} subscripts a tensor and is {does} too, so it cannot be {dtype}",
                "Only an input that is nothing but indices has a type of its own.",
            )
    return indices


def _arithmetic(given: Mapping[str, str]) -> str:
    types = dict.fromkeys(given.values()) or {"float32": None}
    for tensor, dtype in given.items():
        if known(dtype) not in ARITHMETIC:
            raise ProgramError(
                f"element type '{dtype}'{f' of {tensor}' if tensor else ''} is not supported",
                'Inputs that are nothing but indices may have it: dtype="I=int64".',
            )
    found = {ARITHMETIC[dtype] for dtype in types}
    if len(found) > 1:
        raise ProgramError(
            f"the tensors have types {', '.join(sorted(types))}",
            "Give all of them one; float16, bfloat16, tf32 and qint8 go with float32, int8 with int32.",
        )
    return found.pop()


def rounded_last(
    statements: Sequence[Statement], types: Mapping[str, str], sizes: Mapping[str, int], shapes: Shapes
) -> tuple[list[Statement], dict[str, int], dict[str, tuple[int, ...]]]:
    """Sum what is reduced into narrow tensors, or into outputs by integers, in tensors of their own.

    Args:
        statements: in order.
        types: tensor to type.
        sizes: axis to extent.
        shapes: tensor to shape, as far as given, and of all targets whose subscripts are not axes.

    Returns:
        The statements, and all sizes and shapes: a tensor that is not written axis by axis is taken over by
        axes of its own.
    """
    read = {a.tensor for s in statements for a in accesses(s.value)}
    names = read | {s.target.tensor for s in statements}
    found: list[Statement] = []
    sizes, shapes, axes = dict(sizes), dict(shapes), set(sizes)
    for s in statements:
        target = s.target
        narrow = ARITHMETIC[types[target.tensor]] != types[target.tensor]
        converted = target.tensor not in read and summed_type(s, types) in QUADS
        if s.reduce is None or not (narrow or converted):
            found.append(s)
            continue
        inner = fresh(target.tensor, names)
        if not is_spread(target):
            whole = Access(inner, tuple(Index(((axis, 1),)) for axis in s.output_axes))
            found += [Statement(whole, s.reduce, s.value), Statement(target, None, whole)]
            continue
        shape = shapes[inner] = shapes[target.tensor]
        index = tuple(
            i if is_whole(i, sizes, n) else Index(((fresh("o", axes), 1),))
            for i, n in zip(target.index, shape, strict=True)
        )
        sizes |= {i.terms[0][0]: n for i, n in zip(index, shape, strict=True)}
        found.append(Statement(replace(target, tensor=inner), s.reduce, s.value))
        found.append(Statement(Access(target.tensor, index), None, Access(inner, index)))
    return found, sizes, shapes
