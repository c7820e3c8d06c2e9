"""The operators of `operators.py`: each as a program of ours, and as the libraries' calls on its arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Access, Apply, Expr, Program
from planish.levels.loops.workloads import convolution, depthwise

Array = NDArray[Any]
Call = Callable[[], Any]
Libraries = Callable[[Mapping[str, Array], Array], dict[str, Call]]
"""From the inputs by name, and an array for the result, to the ways of NumPy."""
Torch = Callable[[Any, Mapping[str, Any], Any], dict[str, Call]]
"""From torch, and tensors over the same memory, to its ways, which return the result or write it."""


@dataclass(frozen=True)
class Case:
    """An operator.

    Args:
        name: in the table.
        program: what is tuned.
        numpy: NumPy's ways.
        torch: torch's ways.
        last: the same with the channels last, where a library is given that choice too.
    """

    name: str
    program: Program
    numpy: Libraries = field(default=lambda _a, _o: {})
    torch: Torch = field(default=lambda _t, _a, _o: {})
    last: Program | None = None


def cases() -> Iterator[Case]:
    """List all, the most telling first."""
    yield from _products()
    yield from _networks()
    yield from _convolutions()
    yield from _movements()


def _products() -> Iterator[Case]:
    for n in (64, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096):
        yield _product(f"matmul {n}", "mk,kn->mn", {"m": n, "n": n, "k": n})
    yield _product("matmul 512 double", "mk,kn->mn", {"m": 512, "n": 512, "k": 512}, "float64")
    yield _product("matmul m=1 4096", "mk,kn->mn", {"m": 1, "n": 4096, "k": 4096})
    yield _product("matmul m=8 1024", "mk,kn->mn", {"m": 8, "n": 1024, "k": 1024})
    yield _product("matvec 4096", "mk,k->m", {"m": 4096, "k": 4096})
    yield _product("transposed A 512", "km,kn->mn", {"m": 512, "n": 512, "k": 512})
    yield _product("transposed B 512", "mk,nk->mn", {"m": 512, "n": 512, "k": 512})
    yield _product("attention scores", "hqd,hkd->hqk", {"h": 12, "q": 128, "k": 128, "d": 64})
    yield _product("attention values", "hqk,hkd->hqd", {"h": 12, "q": 128, "k": 128, "d": 64})
    yield _product("batched 64", "bmk,bkn->bmn", {"b": 16, "m": 64, "n": 64, "k": 64})
    for name, n, k in (("project", 768, 768), ("widen", 3072, 768), ("narrow", 768, 3072)):
        yield _product(f"BERT {name}", "mk,nk->mn", {"m": 128, "n": n, "k": k})
    yield _product("inner 1M", "i,i->", {"i": 1 << 20})
    yield _product("outer 1000", "i,j->ij", {"i": 1000, "j": 1000})


def _product(name: str, subscripts: str, sizes: dict[str, int], dtype: str = "float32") -> Case:
    reads, _, target = subscripts.partition("->")
    a, b = reads.split(",")
    reduced = set(a + b) - set(target)
    text = f"C[{','.join(target)}] {'+' if reduced else ''}= A[{','.join(a)}] * B[{','.join(b)}]"

    def numpy(arrays: Mapping[str, Array], out: Array) -> dict[str, Call]:
        x, y = arrays["A"], arrays["B"]
        x = x.T if a == "km" else x
        y = y.swapaxes(-1, -2) if b in ("nk", "hkd") and "d" not in target else y
        if subscripts == "i,j->ij":
            return {"numpy": partial(np.multiply.outer, x, y, out=out)}
        return {"numpy": partial(np.matmul, x, y, out=out)}

    def torch(t: Any, arrays: Mapping[str, Any], out: Any) -> dict[str, Call]:
        x, y = arrays["A"], arrays["B"]
        x = x.T if a == "km" else x
        y = y.transpose(-1, -2) if b in ("nk", "hkd") and "d" not in target else y
        if subscripts == "i,j->ij":
            return {"torch": partial(t.outer, x, y, out=out)}
        return {"torch": partial(t.dot, x, y) if not target else partial(t.matmul, x, y, out=out)}

    return Case(name, parse(text, sizes, dtype=dtype), numpy, torch)


LAYER_NORM = """M[r] += X[r,c]
D[r,c] = X[r,c] - M[r] / 1000
V[r] += D[r,c] * D[r,c]
Y[r,c] = D[r,c] / sqrt(V[r] / 1000 + 0.00001) * G[c] + B[c]"""
SOFTMAX = "M[r] max= X[r,c]; E[r,c] = exp(X[r,c] - M[r]); S[r] += E[r,c]; Y[r,c] = E[r,c] / S[r]"
LSTM = """P[b,g,h] = sum(X[b,k] * W[g,h,k]) + sum(H[b,j] * U[g,h,j]) + B[g,h]
N[b,h] = sigmoid(P[b,1,h]) * C[b,h] + sigmoid(P[b,0,h]) * tanh(P[b,2,h])
Y[b,h] = sigmoid(P[b,3,h]) * tanh(N[b,h])"""
GELU = "Y[r,c] = 0.5 * X[r,c] * (1 + tanh(0.7978845608 * (X[r,c] + 0.044715 * X[r,c] * X[r,c] * X[r,c])))"


def _softmax(arrays: Mapping[str, Array], out: Array) -> dict[str, Call]:
    x = arrays["X"]

    def call() -> Array:
        np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
        np.exp(out, out=out)
        return np.divide(out, out.sum(axis=-1, keepdims=True), out=out)

    return {"numpy": call}


def _lstm(t: Any, a: Mapping[str, Any], out: Any) -> dict[str, Call]:
    del out
    w, u, bias = a["W"].reshape(1024, 256), a["U"].reshape(1024, 256), a["B"].reshape(1024)
    none = t.zeros_like(bias)
    return {"torch": lambda: t.lstm_cell(a["X"], (a["H"], a["C"]), w, u, bias, none)[0]}


def _networks() -> Iterator[Case]:
    rows = {"r": 512, "c": 1000}
    yield Case(
        "layer norm 512x1000",
        parse(LAYER_NORM, rows),
        torch=lambda t, a, _o: {
            "torch": lambda: t.nn.functional.layer_norm(a["X"], (1000,), a["G"], a["B"], 1e-5)
        },
    )
    yield Case(
        "softmax 512x1000",
        parse(SOFTMAX, rows),
        _softmax,
        lambda t, a, _o: {"torch": partial(t.softmax, a["X"], -1)},
    )
    shapes = {"X": (8, 256), "H": (8, 256), "W": (4, 256, 256), "U": (4, 256, 256), "C": (8, 256)}
    yield Case("LSTM cell batch 8", parse(LSTM, {}, shapes), torch=_lstm)
    big = {"r": 1000, "c": 1000}
    yield Case(
        "gelu 1M",
        parse(GELU, big),
        torch=lambda t, a, _o: {"torch": partial(t.nn.functional.gelu, a["X"], approximate="tanh")},
    )
    for name in ("exp", "tanh", "sigmoid"):
        numpy: Libraries = partial(_unary_numpy, name)
        torch: Torch = partial(_unary_torch, name)
        yield Case(f"{name} 1M", parse(f"Y[r,c] = {name}(X[r,c])", big), numpy, torch)
    wide = {"r": 5000, "c": 5000}
    yield Case(
        "A+B 100 MB",
        parse("C[r,c] = A[r,c] + B[r,c]", wide),
        lambda a, o: {"numpy": partial(np.add, a["A"], a["B"], out=o)},
        lambda t, a, o: {"torch": partial(t.add, a["A"], a["B"], out=o)},
    )
    yield Case(
        "A+B 1M",
        parse("C[r,c] = A[r,c] + B[r,c]", big),
        lambda a, o: {"numpy": partial(np.add, a["A"], a["B"], out=o)},
        lambda t, a, o: {"torch": partial(t.add, a["A"], a["B"], out=o)},
    )
    yield Case(
        "bias and relu",
        parse("Y[r,c] = relu(X[r,c] + B[c])", big),
        torch=lambda t, a, o: {"torch": lambda: t.add(a["X"], a["B"], out=o).relu_()},
    )


def _unary_numpy(name: str, arrays: Mapping[str, Array], out: Array) -> dict[str, Call]:
    return {} if name == "sigmoid" else {"numpy": partial(getattr(np, name), arrays["X"], out=out)}


def _unary_torch(name: str, t: Any, arrays: Mapping[str, Any], out: Any) -> dict[str, Call]:
    return {"torch": partial(getattr(t, name), arrays["X"], out=out)}


def _convolutions() -> Iterator[Case]:
    """ResNet-50's and MobileNet's (size, inputs, outputs, kernel, stride), one image, and others."""
    resnet = [(224, 3, 64, 7, 2), (56, 64, 64, 1, 1), (56, 64, 64, 3, 1), (56, 64, 256, 1, 1)]
    resnet += [(56, 256, 64, 1, 1), (56, 128, 128, 3, 2), (28, 128, 128, 3, 1), (28, 512, 128, 1, 1)]
    resnet += [(28, 256, 256, 3, 2), (14, 256, 256, 3, 1), (14, 1024, 256, 1, 1), (14, 256, 1024, 1, 1)]
    resnet += [(14, 512, 512, 3, 2), (7, 512, 512, 3, 1), (7, 512, 2048, 1, 1)]
    for size, inputs, outputs, kernel, stride in resnet:
        name = f"conv {kernel}x{kernel}/{stride} {inputs}-{outputs} at {size}"
        program = convolution(size, inputs, outputs, kernel, stride)
        ways = partial(_convolve, stride, kernel // 2, 1)
        yield Case(name, program, torch=ways, last=channels_last(program))
    for size, channels, stride in [
        (112, 32, 1),
        (112, 64, 2),
        (56, 128, 1),
        (28, 256, 1),
        (14, 512, 1),
        (14, 512, 2),
    ]:
        name = f"depthwise 3x3/{stride} {channels} at {size}"
        program = depthwise(size, channels, 3, stride)
        ways = partial(_convolve, stride, 1, channels)
        yield Case(name, program, torch=ways, last=channels_last(program))
    yield Case(
        "conv1d 64-64 3 of 1000",
        parse(
            "O[k,x] += pad(I[c,x+r-1],0) * W[k,c,r]", {}, {"I": (64, 1000), "W": (64, 64, 3)}
        ).with_constants(["W"]),
        torch=partial(_convolve, 1, 1, 1),
    )
    text = "O[k,z,y,x] += pad(I[c,z+q-1,y+r-1,x+s-1],0) * W[k,c,q,r,s]"
    shapes = {"I": (16, 16, 28, 28), "W": (32, 16, 3, 3, 3)}
    yield Case(
        "conv3d 16-32 at 16x28x28",
        parse(text, {}, shapes).with_constants(["W"]),
        torch=partial(_convolve, 1, 1, 1),
    )


LAST: Mapping[int, tuple[int, ...]] = {3: (1, 2, 0), 4: (2, 3, 1, 0)}
"""Where the dimensions of an array with so many come from once channels are last."""


def channels_last(program: Program) -> Program:
    """Give a convolution of two dimensions with the channels last: of the image, the result, the weights."""

    def moved(access: Expr) -> Access:
        assert isinstance(access, Access)
        return replace(access, index=tuple(access.index[d] for d in LAST[len(access.index)]))

    (statement,) = program.statements
    value = statement.value
    assert isinstance(value, Apply)
    read = replace(value, args=tuple(map(moved, value.args)))
    statement = replace(statement, target=moved(statement.target), value=read)
    shapes = {name: tuple(kind.shape[d] for d in LAST[len(kind.shape)]) for name, kind in program.types}
    types = tuple((name, replace(kind, shape=shapes[name])) for name, kind in program.types)
    return replace(program, statements=(statement,), types=types)


def _convolve(
    stride: int, pad: int, groups: int, t: Any, arrays: Mapping[str, Any], out: Any
) -> dict[str, Call]:
    """Give torch's convolution: as it is, with channels last, and with the weights reordered ahead."""
    del out
    x, w = arrays["I"][None], arrays["W"]
    w = w[:, None] if groups > 1 else w
    dims = x.dim() - 2
    conv: Any = partial(getattr(t.nn.functional, f"conv{dims}d"), stride=stride, padding=pad, groups=groups)
    calls: dict[str, Call] = {"torch": partial(conv, x, w)}
    if dims == 2:
        last = {"memory_format": t.channels_last}
        calls["torch NHWC"] = partial(conv, x.to(**last), w.to(**last))
        ops: Any = t.ops.mkldnn
        sides = [pad] * 2, [stride] * 2, [1, 1], groups
        ready = ops._reorder_convolution_weight(w, *sides, list(x.shape))
        calls["torch reordered"] = partial(ops._convolution_pointwise, x, ready, None, *sides, "none", [], "")
    return calls


def _movements() -> Iterator[Case]:
    sizes = {"r": 4096, "c": 1000}
    for name, symbol, ways in (("sum", "+", ("r", "c")), ("max", "max", ("r", "c"))):
        for kept in ways:
            axis = 1 if kept == "r" else 0
            torch = "amax" if name == "max" else name
            yield Case(
                f"{name} of {'rows' if kept == 'r' else 'columns'}",
                parse(f"O[{kept}] {symbol}= I[r,c]", sizes),
                lambda a, o, n=name, x=axis: {"numpy": lambda: getattr(np, n)(a["I"], axis=x, out=o)},
                lambda t, a, o, n=torch, x=axis: {"torch": lambda: getattr(t, n)(a["I"], x, out=o)},
            )
    yield Case(
        "sum of all",
        parse("O[] += I[r,c]", sizes),
        lambda a, o: {"numpy": lambda: np.sum(a["I"], out=o)},
        lambda t, a, _o: {"torch": lambda: t.sum(a["I"])},
    )
    yield Case(
        "transpose 2048",
        parse("O[c,r] = I[r,c]", {"r": 2048, "c": 2048}),
        lambda a, o: {"numpy": lambda: np.copyto(o, a["I"].T)},
        lambda _t, a, o: {"torch": lambda: o.copy_(a["I"].T)},
    )
    yield Case(
        "permute 64x128x256 to cab",
        parse("O[c,a,b] = I[a,b,c]", {"a": 64, "b": 128, "c": 256}),
        lambda a, o: {"numpy": lambda: np.copyto(o, a["I"].transpose(2, 0, 1))},
        lambda _t, a, o: {"torch": lambda: o.copy_(a["I"].permute(2, 0, 1))},
    )
    yield Case(
        "max pool 3x3/2 64 at 112",
        parse(
            "O[c,y,x] max= pad(I[c,2*y+r-1,2*x+s-1],-inf)",
            {"r": 3, "s": 3, "y": 56, "x": 56},
            {"I": (64, 112, 112)},
        ),
        torch=lambda t, a, _o: {"torch": lambda: t.max_pool2d(a["I"][None], 3, 2, 1)},
    )
    yield Case(
        "mean pool 7x7 2048",
        parse("S[c] += I[c,y,x]; O[c] = S[c] / 49", {"c": 2048, "y": 7, "x": 7}),
        torch=lambda t, a, _o: {"torch": lambda: t.nn.functional.adaptive_avg_pool2d(a["I"][None], 1)},
    )
