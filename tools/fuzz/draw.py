"""Random programs over the whole notation: a text, its sizes and its element type."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TypeVar

from numpy.random import Generator

from planish.core.errors import ProgramError
from planish.levels.loops.lang.draft import is_spread
from planish.levels.loops.lang.parse import parse, parse_canonical
from planish.levels.loops.lang.program import INDICES, Program

Tied = Mapping[str, Callable[[Mapping[str, int]], int]]

CHAINS: Sequence[tuple[str, str, Tied]] = (
    ("M[b] max= X[b,i]; E[b,i] = exp(X[b,i] - M[b]); S[b] += E[b,i]; O[b,i] = E[b,i] / S[b]", "bi", {}),
    ("U[b] += X[b,i]; V[b] += X[b,i] * X[b,i]; O[b,i] = X[b,i] * U[b] + sqrt(V[b])", "bi", {}),
    ("C[m,n] += A[m,k] * B[k,n]; D[m,p] += relu(C[m,n]) * W[n,p]", "mnkp", {}),
    ("C[m,n] += A[m,k] * B[n,k]; M[m] max= C[m,n]; O[m,n] = max(C[m,n] - M[m], -1)", "mnk", {}),
    ("D[m] = relu(sum(A[m,k] * B[k])) + c[m]", "mk", {}),
    ("O[m,n] = X[m,n] * sum(Y[m,k] * Z[k,n])", "mnk", {}),
    ("O[] = sum(A[i] * B[i]) + max(D[j,k]) - min(D[j,k])", "ijk", {}),
    ("T[m,n] = relu(A[m,n]) + B[n]; U[m] += T[m,n]; O[m,n] = T[m,n] * U[m]; P[n] max= T[m,n]", "mn", {}),
    ("T[i] = relu(A[i]); O[i] = T[i] + pad(T[i - 1], 0) + pad(T[i + 1], 0.5)", "i", {}),
    ("T[i,j] = A[i,j] * B[j]; O[i] += T[i,j]; Q[i] max= pad(T[i - 1, j], -inf)", "ij", {}),
    ("O[r, a + b] = A[r,a] | relu(B[r,b]); S[r] += O[r,t] * W[t]", "rab", {"t": lambda s: s["a"] + s["b"]}),
    ("O[a + b] += A[a,k] * B[k] | v[b]; S[] max= O[t]", "abk", {"t": lambda s: s["a"] + s["b"]}),
    (
        "C[k,y] += pad(I[c,y+r-1],0) * W[k,c,r]; D[k,y] = relu(C[k,y] + b[k]); O[k,v] max= D[k,2*v+i]",
        "kcrvi",
        {"y": lambda s: 2 * (s["v"] - 1) + s["i"]},
    ),
    ("Q[h,q] += A[h,d] * W[d,q]; S[h,g] += Q[h,q] * K[g,q]; O[g] += exp(min(S[h,g], 1)) * V[h]", "hqdg", {}),
    (
        "P[k,2*y+r] += X[c,y] * W[c,k,r]; O[k,o] = relu(P[k,o+1] + b[k])",
        "kcyr",
        {"o": lambda s: 2 * s["y"] + s["r"] - 3},
    ),
    ("P[i+j] += A[i] * B[j]; Q[p+k] += P[p] * C[k]; M[] max= Q[q]", "ijk", {}),
    ("T[i] = relu(A[i]); U[3*i] = T[i]; O[u] = U[u] + 0.5", "i", {}),
    ("L[m] *= max(A[m,k], 0.75); O[] += L[m]; P[m] min= A[m,k] - L[m]", "mk", {}),
)


T = TypeVar("T")
Sizes = dict[str, int]
Tables = Mapping[str, Sequence[str]]
"""Table to its dimensions: axes, and what is no axis for `ROWS`."""

SIZES = (
    *(1, 1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 15, 16, 17),
    *(19, 24, 25, 31, 32, 33, 37, 48, 64, 65, 100, 128, 130, 257),
)
UNARY = (
    "-({})",
    "abs({})",
    "sqrt(abs({}) + 0.5)",
    "exp(min({}, 2))",
    "log(abs({}) + 0.5)",
    "relu({})",
    "tanh({})",
    "sigmoid({})",
    "erf({})",
    "where({0} < 0.25, {0} * 0.5, 1.5)",
    "where(max({0}, 0.75) == 0.75, -1, {0})",
    "where({0} != {0}, 2, {0})",
    "(min({0}, 1) >= 1)",
    "max({}, 0.25)",
    "min({}, -0.75)",
    "(1.5 - {})",
)
BINARY = (
    "({} + {})",
    "({} - {})",
    "({} / (abs({}) + 0.5))",
    "max({}, {})",
    "min({}, {})",
    "where({0} <= {1}, {0}, 0.5)",
    "where({0}, {1}, -1)",
)
REDUCE = ("+=", "+=", "+=", "max=", "min=", "*=")
NARROW = ("float16", "bfloat16")
INTEGER = (("-inf", "-128"), ("inf", "127"), ("0.25", "2"), ("0.75", "3"), ("1.5", "3"), ("0.5", "5"))
"""Numbers in texts, and whole ones that replace them."""
ROWS = 11
"""Of a table that is looked up."""
FEW, MANY, FACTORS = 30_000, 200_000, 200
"""Points of a program's largest statement, mostly and sometimes; factors of a product that is reduced."""


def pick(random: Generator, options: Sequence[T]) -> T:
    """Choose one."""
    return options[int(random.integers(len(options)))]


def chance(random: Generator, share: float) -> bool:
    """Say yes in this share of cases."""
    return bool(random.random() < share)


def shuffled(random: Generator, options: Sequence[T]) -> list[T]:
    """Put all in some order."""
    return [options[int(i)] for i in random.permutation(len(options))]


def draw_program(random: Generator, kind: str = "") -> Program:
    """Draw programs until one is legal: one in ten windows reads only padding, or has nothing to reduce.

    Args:
        random: numbers.
        kind: one of `PROGRAMS`; empty for any.
    """
    while True:
        text, sizes, *tables = (PROGRAMS[kind] if kind else pick(random, KINDS))(random)
        limit = FACTORS if "*=" in text or "prod(" in text else MANY if chance(random, 0.1) else FEW
        sizes = _smaller(sizes, limit)
        for stage in range(pick(random, (0, 0, 1, 1, 2))):
            text += "; " + _after(random, text, sizes, stage)
        try:
            program = _typed(random, text, sizes, _shapes(tables, sizes))
        except ProgramError:
            continue
        if len({n for n, _ in program.types}) < 12:
            program = _roomier(random, program)
            return program.with_constants(t for t in program.inputs if chance(random, 0.25))


def _roomier(random: Generator, program: Program) -> Program:
    """Maybe make a spread target larger than what is put there."""
    spread = [s.target.tensor for s in program.statements if is_spread(s.target)]
    if not spread or chance(random, 0.7):
        return program

    def larger(match: re.Match[str]) -> str:
        shape = [int(n) + int(random.integers(0, 5)) for n in match[2].split(",")]
        return f"{match[1]}[{','.join(map(str, shape))}]"

    try:
        return parse_canonical(re.sub(rf"(\b{spread[0]}:\w+)\[([\d,]+)\]", larger, program.text))
    except ProgramError:  # another statement reads it as a whole
        return program


def _shapes(tables: Sequence[Tables], sizes: Sizes) -> dict[str, tuple[int, ...]]:
    return {t: tuple(sizes.get(d, ROWS) for d in dims) for each in tables for t, dims in each.items()}


def _typed(random: Generator, text: str, sizes: Sizes, shapes: Mapping[str, tuple[int, ...]]) -> Program:
    """Read a program; in some, inputs and outputs are narrower than what is computed, all or any of them."""
    if not shapes and chance(random, 0.3) and (found := _whole(random, text, sizes)):
        return found
    whole = {"I": pick(random, INDICES)} if shapes and chance(random, 0.6) else {}
    program = parse(text, sizes, shapes, {"": pick(random, ("float32", "float64")), **whole})
    if program.arithmetic == "float64" or chance(random, 0.4):
        return program
    narrow = {t: pick(random, NARROW) for t in (*program.inputs, *program.outputs) if chance(random, 0.7)}
    return parse(text, sizes, shapes, {**pick(random, (narrow, {"": pick(random, NARROW)})), **whole})


def _whole(random: Generator, text: str, sizes: Sizes) -> Program | None:
    """Read a program of integers, if it has no functions of others; inputs have 8 bits, all or some."""
    for number, instead in INTEGER:
        text = text.replace(number, instead)
    try:
        program = parse(text, sizes, dtype="int8")
    except ProgramError:
        return None
    narrow = {t: "int8" for t in program.inputs if chance(random, 0.6)}
    return program if chance(random, 0.5) else parse(text, sizes, dtype=narrow or "int32")


def _smaller(sizes: Mapping[str, int], limit: int) -> Sizes:
    """Halve the largest axes until the points are few; axes that others are made of stay as they are."""
    found = dict(sizes)
    while prod(found.values()) > limit:
        largest = max(found, key=lambda axis: found[axis])
        found[largest] = (found[largest] + 1) // 2
    return found


def access(random: Generator, tensor: str, axes: Sequence[str]) -> str:
    """Read or write a tensor by these axes, in some order."""
    return f"{tensor}[{', '.join(shuffled(random, axes))}]"


def wrapped(random: Generator, text: str, share: float = 0.4) -> str:
    """Maybe put a function around."""
    return pick(random, UNARY).format(text) if chance(random, share) else text


def _sizes(random: Generator, axes: Sequence[str]) -> Sizes:
    """Choose sizes; in half of all programs small ones, so that whole tensors go into registers."""
    offered = SIZES[: pick(random, (8, 8, 14, 14, 24, 28))]
    return {axis: pick(random, offered) for axis in axes}


def _contraction(random: Generator) -> tuple[str, Sizes]:
    """One to three tensors over any axes, combined anyhow, reduced anyhow."""
    outputs = shuffled(random, "mnpq")[: pick(random, (0, 0, 1, 1, 2, 2, 2, 3))]
    reduced = shuffled(random, "kluv")[: pick(random, (1, 1, 1, 2, 2, 3))]
    axes = [*outputs, *reduced]
    count = pick(random, (1, 2, 2, 2, 2, 3))
    walked = [
        [a for a in axes if chance(random, share)] for share in shuffled(random, (0.7, 0.5, 0.3))[:count]
    ]
    for axis in axes:
        if not any(axis in some for some in walked):
            pick(random, walked).append(axis)
    reads = [wrapped(random, access(random, t, own), 0.25) for t, own in zip("ABD", walked, strict=False)]
    value = reads[0]
    for read in reads[1:]:
        value = f"{value} * {read}" if chance(random, 0.75) else pick(random, BINARY).format(value, read)
    value = wrapped(random, value, 0.15)
    if chance(random, 0.15):
        value = f"0.5 * {value}"
    return f"{access(random, 'C', outputs)} {pick(random, REDUCE)} {value}", _sizes(random, axes)


def _window(random: Generator, out: str, inner: str) -> tuple[str, bool]:
    stride, dilation = pick(random, (1, 1, 2, 3)), pick(random, (1, 1, 2))
    pad = pick(random, (0, 0, 1, 2))
    return f"{stride}*{out} + {dilation}*{inner} - {pad}", pad > 0


def _windowed(random: Generator, before: str, pad: str) -> tuple[str, Sizes]:
    (rows, pads_rows), (columns, pads_columns) = _window(random, "y", "r"), _window(random, "x", "s")
    dims = [*before, rows, columns] if chance(random, 0.5) else [rows, columns, *before]
    sizes = {a: int(random.integers(3, 20)) for a in "yx"} | {a: int(random.integers(1, 4)) for a in "rs"}
    sizes |= {a: pick(random, SIZES[:14]) for a in before}
    read = f"I[{', '.join(dims)}]"
    return f"pad({read}, {pad})" if pads_rows or pads_columns else read, sizes


def _convolution(random: Generator) -> tuple[str, Sizes]:
    """Strided, padded, dilated; full, grouped or depthwise; channels first or last."""
    shared, reduced, out = pick(random, (("n", "c", "k"), ("", "c", "k"), ("g", "c", "k"), ("c", "", "")))
    read, sizes = _windowed(random, shared + reduced, pick(random, ("0", "0", "-1.5")))
    weight = access(random, "W", shared.replace("n", "") + reduced + out + "rs")
    sizes |= {axis: pick(random, SIZES[:14]) for axis in out}
    return f"{access(random, 'O', shared + out + 'yx')} += {wrapped(random, read)} * {weight}", sizes


def _pooling(random: Generator) -> tuple[str, Sizes]:
    reduce = pick(random, REDUCE)
    read, sizes = _windowed(random, "c", {"max=": "-inf", "min=": "inf", "*=": "1"}.get(reduce, "0"))
    sizes |= {"r": 3, "s": 3}  # no window is all padding
    return f"O[{pick(random, ('c, y, x', 'y, x, c'))}] {reduce} {read}", sizes


def _concatenation(random: Generator) -> tuple[str, Sizes]:
    left = pick(random, (access(random, "A", "ra"), "2", "v[r]"))
    right = pick(random, (access(random, "B", "rb"), "B[r, b]", "v[r]", "3"))
    parts = f"{wrapped(random, left)} | {wrapped(random, right)}"
    return f"O[{pick(random, ('r, a + b', 'a + b, r'))}] = {parts}", _sizes(random, "rab")


def _elementwise(random: Generator) -> tuple[str, Sizes]:
    """Transposition, broadcast, stencils, shifts and strides, of one statement."""
    axes = pick(random, ("i", "ij", "ij", "ijk"))
    value = _value(random, axes, 2)
    return f"{access(random, 'O', axes)} = {value}", _sizes(random, axes)


def _place(random: Generator) -> tuple[str, Sizes]:
    """Where the greatest or least of something is, alone or in an expression; some are equal."""
    axes = pick(random, ("k", "ik", "ik", "ijk"))
    along = pick(random, axes)
    value = wrapped(random, access(random, "X", axes), 0.3)
    if chance(random, 0.3):
        value = f"max({value}, 0.75)"
    found = f"{pick(random, ('argmax', 'argmin'))}({value})"
    found = f"{found} * 0.5" if chance(random, 0.2) else found
    return f"{access(random, 'O', [a for a in axes if a != along])} = {found}", _sizes(random, axes)


def _look_up(random: Generator) -> tuple[str, Sizes, Tables]:
    """A table that another tensor subscripts, alone or in a product, reduced or not."""
    by, own = pick(random, ("t", "t", "tu", "")), pick(random, ("", "d", "d", "de", "td"))
    dims = shuffled(random, [*own, "rows"])
    index = f"I[{', '.join(by)}]"
    axes = sorted({*by, *own})
    value = wrapped(random, f"L[{', '.join(index if d == 'rows' else d for d in dims)}]", 0.3)
    if axes and chance(random, 0.5):
        read = access(random, "B", [a for a in axes if chance(random, 0.6)])
        value = pick(random, (*BINARY, "({} * {})")).format(value, read)
    kept = [a for a in axes if chance(random, 0.7)] if chance(random, 0.5) else axes
    reduce = "=" if len(kept) == len(axes) else pick(random, REDUCE[:5])
    return f"{access(random, 'O', kept)} {reduce} {value}", _sizes(random, axes), {"L": dims}


def _spread(random: Generator) -> tuple[str, Sizes]:
    """Transposed convolutions, products of polynomials, gaps between elements, and halves interleaved."""
    pairs = pick(random, ("y", "y", "yx"))
    inner = {"y": "r", "x": "s"}
    before, reduced = pick(random, ("", "", "k", "kn")), pick(random, ("", "c", "c"))
    windows = {a for a in pairs if chance(random, 0.85)}
    dims = [*before, *(_steps(random, a, inner[a] if a in windows else "") for a in pairs)]
    small = [inner[a] for a in pairs if a in windows]
    read = wrapped(random, access(random, "X", [*reduced, *pairs, *("n" if "n" in before else "")]), 0.25)
    weight = access(random, "W", [*reduced, *before.replace("n", ""), *small])
    axes = [*pairs, *small, *before, *reduced]
    value = read
    if small or "k" in before or chance(random, 0.5):
        value = f"{read} * {weight}" if chance(random, 0.7) else pick(random, BINARY).format(read, weight)
    lone = not reduced and not small
    reduce = "=" if lone and chance(random, 0.6) else pick(random, REDUCE)
    sizes = _sizes(random, axes)
    sizes |= {a: int(random.integers(1, 6)) for a in small if chance(random, 0.7)}
    return f"O[{', '.join(shuffled(random, dims))}] {reduce} {value}", sizes


def _steps(random: Generator, outer: str, inner: str) -> str:
    stride, dilation, offset = (
        pick(random, (1, 2, 2, 3)),
        pick(random, (1, 1, 1, 2)),
        pick(random, (0, 0, 0, 2)),
    )
    terms = [
        f"{stride}*{outer}",
        *([f"{dilation}*{inner}"] if inner else []),
        *([str(offset)] if offset else []),
    ]
    return " + ".join(terms)


def _value(random: Generator, axes: str, depth: int) -> str:
    if depth == 0 or chance(random, 0.3):
        number = pick(random, ("1.5", "-2", *axes))
        return number if chance(random, 0.15) else _shifted(random, axes)
    if chance(random, 0.4):
        return wrapped(random, _value(random, axes, depth - 1), 1)
    left, right = (_value(random, axes, depth - 1) for _ in range(2))
    return pick(random, (*BINARY, "({} * {})")).format(left, right)


def _shifted(random: Generator, axes: str) -> str:
    """Read a tensor; its name is by its rank and by whether it is padded, so that each has one rank."""
    chosen = [pick(random, axes) for _ in range(pick(random, (0, 1, 1, 2, 2, 3)))]
    shifts = [pick(random, ("", "", "", " + 1", " + 2", " - 1")) for _ in chosen]
    scales = [pick(random, ("", "", "", "2*", "3*")) for _ in chosen]
    index = ", ".join(f"{c}{axis}{o}" for axis, c, o in zip(chosen, scales, shifts, strict=True))
    padded = any("-" in shift for shift in shifts)
    tensor = f"{'P' if padded else 'T'}{len(chosen)}"
    return f"pad({tensor}[{index}], 0.25)" if padded else f"{tensor}[{index}]"


def _chain(random: Generator) -> tuple[str, Sizes]:
    text, names, tied = pick(random, CHAINS)
    sizes = _smaller(_sizes(random, names), FEW)
    return text, sizes | {axis: of(sizes) for axis, of in tied.items()}


KINDS: Sequence[Callable[[Generator], tuple[str, Sizes] | tuple[str, Sizes, Tables]]] = (
    *(_contraction, _contraction, _contraction, _contraction, _chain, _chain, _chain),
    *(_convolution, _pooling, _concatenation, _elementwise, _elementwise, _place, _look_up, _spread),
)
PROGRAMS = {kind.__name__.removeprefix("_"): kind for kind in KINDS}
"""Kinds of programs, by name."""


def _after(random: Generator, text: str, sizes: Mapping[str, int], stage: int) -> str:
    """A statement over what the last one wrote: by elements or reduced, with another tensor or without."""
    target = text.rsplit("; ", maxsplit=1)[-1].split("]", maxsplit=1)[0]
    name, written = target.split("[")
    axes = [a for a in written.replace("a + b", "").replace(" ", "").split(",") if a]
    axes = [a if a.isidentifier() else f"o{d}" for d, a in enumerate(axes)]
    if "a + b" in written:
        return f"Z{stage}[] += {name}[{written.replace('a + b', 'a')}]"
    value = wrapped(random, f"{name}[{', '.join(axes)}]")
    if axes and chance(random, 0.5):
        read = f"E{stage}[{', '.join(a for a in axes if chance(random, 0.6))}]"
        value = pick(random, (*BINARY, "({} * {})")).format(value, read)
    kept = [a for a in axes if chance(random, 0.6)] if chance(random, 0.4) else axes
    small = prod(sizes.get(a, FACTORS + 1) for a in axes if a not in kept) <= FACTORS
    reduce = "=" if len(kept) == len(axes) else pick(random, REDUCE if small else REDUCE[:5])
    return f"{access(random, f'Z{stage}', kept)} {reduce} {value}"
