"""Random small tensor programs over the whole notation of the `loops` level, to fuzz what consumes them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from hypothesis import reject
from hypothesis import strategies as st

from planish.core.errors import ProgramError
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program, accesses

_Text = tuple[str, dict[str, int]]

_UNARY = {
    "neg": "-({})",
    "abs": "abs({})",
    "sqrt": "sqrt(abs({}) + 0.5)",
    "exp": "exp(min({}, 4))",
    "log": "log(abs({}) + 0.5)",
    "relu": "relu({})",
    "tanh": "tanh({})",
    "sigmoid": "sigmoid({})",
    "erf": "erf({})",
    "<": "where({0} < 0.5, {0}, 2)",
    "!=": "({} != 0.5)",
}
_BINARY = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "div": "({} / (abs({}) + 0.5))",
    "max": "max({}, {})",
    "min": "min({}, {})",
    "<=": "where({0} <= {1}, {1}, 0.5)",
    "==": "where({0} == {1}, {0}, -1)",
}
_REDUCE = {"add": "+=", "max": "max=", "min": "min=", "mul": "*="}


@st.composite
def programs(
    draw: st.DrawFn,
    *,
    points: int = 3000,
    dtypes: Sequence[str] = ("float32", "float64"),
    functions: Sequence[str] = (*_UNARY, *_BINARY),
    reductions: Sequence[str] = tuple(_REDUCE),
) -> Program:
    """Draw a program: a contraction, convolution, pooling, concatenation or anything else, and what follows.

    Every function stays in its domain and its range, whatever the inputs are.

    Args:
        points: bounds the points of a statement's iteration space.
        dtypes: the element types of inputs and outputs to choose from.
        functions: the element-wise functions that may occur, besides the product of a contraction.
        reductions: the reductions that may occur; "add" is needed for contractions.
    """
    kinds = [_elementwise, _concatenation]
    kinds += [_contraction, _convolution] if "add" in reductions else []
    kinds += [_free, _pooling] if reductions else []
    text, sizes = draw(st.sampled_from(kinds))(draw, functions, reductions)
    _shrink(sizes, points)
    for stage in range(draw(st.sampled_from([0, 0, 1, 2]))):
        text += "; " + _after(draw, text, functions, stage)
    return _parsed(draw, text, sizes, draw(st.sampled_from(list(dtypes))))


def _parsed(draw: st.DrawFn, text: str, sizes: dict[str, int], dtype: str) -> Program:
    """Read the program; maybe make tensors that windows walk larger than they must be."""
    try:
        program = parse(text, sizes, dtype=dtype)
    except ProgramError as error:
        if "only padding" in error.message or "is not a value of int8" in error.message:
            reject()
        raise
    shapes: dict[str, tuple[int, ...]] = {}
    for access in (a for s in program.statements for a in accesses(s.value)):
        if access.tensor in program.inputs and draw(st.booleans()):
            shape = program.type[access.tensor].shape
            windows = [len(i.terms) > 1 or i.offset != 0 for i in access.index]
            shapes[access.tensor] = tuple(n + 2 * w for n, w in zip(shape, windows, strict=True))
    return parse(text, sizes, shapes, dtype)


def _extent(draw: st.DrawFn) -> int:
    return draw(st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 19, 31, 33]))


def _shrink(sizes: dict[str, int], points: int) -> None:
    while prod(sizes.values()) > points:
        largest = max(sizes, key=lambda axis: sizes[axis])
        sizes[largest] = (sizes[largest] + 1) // 2


def _sizes(draw: st.DrawFn, axes: str) -> dict[str, int]:
    return {axis: _extent(draw) for axis in axes}


def _access(draw: st.DrawFn, tensor: str, axes: Sequence[str]) -> str:
    return f"{tensor}[{', '.join(draw(st.permutations(axes)))}]"


def _wrapped(draw: st.DrawFn, text: str, functions: Sequence[str]) -> str:
    """Maybe put a function around."""
    unary = [f for f in functions if f in _UNARY]
    if unary and draw(st.booleans()):
        return _UNARY[draw(st.sampled_from(unary))].format(text)
    return text


def _combined(draw: st.DrawFn, left: str, right: str, functions: Sequence[str]) -> str:
    binary = [f for f in functions if f in _BINARY]
    return _BINARY[draw(st.sampled_from(binary))].format(left, right) if binary else left


def _contraction(draw: st.DrawFn, functions: Sequence[str], _: Sequence[str]) -> _Text:
    """GEMM, GEMV, outer products, batches, several reduced axes; any order of the axes."""
    a, b, both, reduced = (
        draw(st.sampled_from(s)) for s in (["m", "", "mp"], ["n", ""], ["", "b"], ["k", "kl"])
    )
    left, right = _access(draw, "A", a + both + reduced), _access(draw, "B", b + both + reduced)
    left = _wrapped(draw, left, functions)
    scale = draw(st.sampled_from(["", "", "0.5 * ", "S[] * "]))
    if scale and {"div", "sqrt"} <= set(functions) and draw(st.booleans()):
        # A factor that has no axis, and has to be computed, as attention is scaled.
        scale += "(2 / sqrt(9)) * "
    return f"{_access(draw, 'C', a + b + both)} += {scale}{left} * {right}", _sizes(
        draw, a + b + both + reduced
    )


def _window(draw: st.DrawFn, out: str, inner: str) -> tuple[str, bool]:
    stride, dilation = draw(st.sampled_from([1, 1, 2, 3])), draw(st.sampled_from([1, 1, 2]))
    pad = draw(st.sampled_from([0, 0, 1, 2]))
    return f"{stride}*{out} + {dilation}*{inner} - {pad}", pad > 0


def _windowed(draw: st.DrawFn, before: str, value: str) -> _Text:
    (rows, pad_rows), (columns, pad_columns) = _window(draw, "y", "r"), _window(draw, "x", "s")
    dims = [*before, rows, columns]
    if draw(st.booleans()):
        dims = [rows, columns, *before]
    read = f"I[{', '.join(dims)}]"
    sizes = {axis: draw(st.integers(3, 9)) for axis in "yx"} | {a: draw(st.integers(1, 3)) for a in "rs"}
    return f"pad({read}, {value})" if pad_rows or pad_columns else read, sizes


def _convolution(draw: st.DrawFn, functions: Sequence[str], _: Sequence[str]) -> _Text:
    """Strided, padded, dilated; full, grouped or depthwise; channels first or last."""
    shared, reduced, out = draw(
        st.sampled_from([("n", "c", "k"), ("", "c", "k"), ("g", "c", "k"), ("c", "", "")])
    )
    read, sizes = _windowed(draw, shared + reduced, "0")
    weight = _access(draw, "W", shared.replace("n", "") + reduced + out + "rs")
    target = _access(draw, "O", shared + out + "yx")
    sizes |= {axis: draw(st.integers(1, 5)) for axis in shared + reduced + out}
    return f"{target} += {_wrapped(draw, read, functions)} * {weight}", sizes


def _pooling(draw: st.DrawFn, _: Sequence[str], reductions: Sequence[str]) -> _Text:
    reduce = draw(st.sampled_from(list(reductions)))
    read, sizes = _windowed(draw, "c", {"max": "-inf", "min": "inf", "mul": "1"}.get(reduce, "0"))
    sizes |= {"c": draw(st.integers(1, 6)), "r": 3, "s": 3}  # no window is all padding
    return f"O[{draw(st.sampled_from(['c, y, x', 'y, x, c']))}] {_REDUCE[reduce]} {read}", sizes


def _concatenation(draw: st.DrawFn, functions: Sequence[str], _: Sequence[str]) -> _Text:
    parts = [_access(draw, "A", "ra"), "2", _access(draw, "B", "rb"), "B[r, b]", "v[r]"]
    left, right = (_wrapped(draw, draw(st.sampled_from(p)), functions) for p in (parts[:2], parts[1:]))
    order = draw(st.sampled_from(["r, a + b", "a + b, r"]))
    return f"O[{order}] = {left} | {right}", _sizes(draw, "rab")


def _elementwise(draw: st.DrawFn, functions: Sequence[str], _: Sequence[str]) -> _Text:
    """Transposition, broadcast, stencils of one statement."""
    axes = draw(st.sampled_from(["i", "ij", "ijk"]))
    value = _value(draw, axes, functions, depth=2)
    return f"{_access(draw, 'O', axes)} = {value}", _sizes(draw, axes)


def _free(draw: st.DrawFn, functions: Sequence[str], reductions: Sequence[str]) -> _Text:
    """A reduction of any expression."""
    axes = draw(st.sampled_from(["ik", "ijk", "ijkl", "k"]))
    out = "".join(a for a in axes if a in "ij")
    reduce = _REDUCE[draw(st.sampled_from(list(reductions)))]
    value = _combined(draw, _read(draw, 0, axes), _value(draw, axes, functions, depth=1), functions)
    sizes = _sizes(draw, axes)
    return f"{_access(draw, 'O', out)} {reduce} {value}", sizes


def _value(draw: st.DrawFn, axes: str, functions: Sequence[str], depth: int) -> str:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["1.5", "-2"])) if draw(st.integers(0, 5)) == 0 else _leaf(draw, axes)
    if draw(st.booleans()):
        return _wrapped(draw, _value(draw, axes, functions, depth - 1), functions)
    left, right = (_value(draw, axes, functions, depth - 1) for _ in range(2))
    return _combined(draw, left, right, functions)


def _leaf(draw: st.DrawFn, axes: str) -> str:
    chosen = draw(st.lists(st.sampled_from(list(axes)), max_size=3))
    return _read(draw, len(chosen), "".join(chosen))


def _read(draw: st.DrawFn, kind: int, axes: str) -> str:
    """Read a tensor; its name is by its rank and by whether it is padded, so that each has one rank."""
    shifts = [draw(st.sampled_from(["", "", " + 1", " + 2", " - 1"])) for _ in axes]
    scales = [draw(st.sampled_from(["", "", "", "2*", "3*"])) for _ in axes]
    index = ", ".join(f"{c}{axis}{o}" for axis, c, o in zip(axes, scales, shifts, strict=True))
    padded = any("-" in o for o in shifts)
    tensor = f"{'P' if padded else 'T'}{len(axes)}_{kind}"
    return f"pad({tensor}[{index}], 0.25)" if padded else f"{tensor}[{index}]"


def _after(draw: st.DrawFn, text: str, functions: Sequence[str], stage: int) -> str:
    """An element-wise statement over what the last one wrote; with a bias, or with the reverse order."""
    last = text.rsplit("; ", maxsplit=1)[-1]
    target = last[: last.index("]") + 1]
    name, axes = target[:-1].split("[")
    axes = axes.replace("a + b", "t").split(", ") if axes else []
    value = _wrapped(draw, f"{name}[{', '.join(axes)}]", functions)
    if axes and draw(st.booleans()):
        value = _combined(draw, value, f"bias{stage}[{draw(st.sampled_from(axes))}]", functions)
    return f"Z{stage}[{', '.join(draw(st.permutations(axes)))}] = {value}"
