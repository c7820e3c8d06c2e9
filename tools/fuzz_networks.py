"""Comparison of compiled networks with ONNX Runtime and with a reference in float64, on random networks.

`python tools/fuzz_networks.py --networks 200` takes some minutes. Networks have odd shapes, tensors of no
elements and of 0 to 6 dimensions, broadcasting, shared weights, integers, truth values and several outputs.
Each seed gives a network of operators, and one of images (`fuzz_images.py`), for which chains of kernels are
computed in strips. Prints each difference and each refusal with the seed that gives the network again; the
exit code is 1 if there was one. With `--state FILE` the same command continues an interrupted campaign. What
rounding decides, ONNX Runtime without optimizations also answers otherwise than the reference: such networks
are counted, and not judged.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto

from campaign import State
from fuzz_images import CACHES, draw_images, small_cache
from network_models import ModelWriter
from planish.core import PlanishError
from planish.levels.graph.sessions import SessionSettings, open_session
from planish.network.compiler import compile_model
from planish.network.verification import float64_answers

Array = NDArray[Any]
Shape = tuple[int, ...]

BAD = ("wrong", "refused", "failed")
"""Outcomes that are defects."""
TOLERANCE = 1e-4
"""Largest difference from the reference, as a share of the largest number of an output, or of 1."""
FOUND_SHARE = 0.3
"""Networks one of whose outputs has a shape that depends on data."""
_EXTENTS = (1, 1, 2, 2, 3, 4, 5, 7, 9)


class Tensor(NamedTuple):
    """A tensor of a network that is drawn.

    Args:
        name: of it.
        shape: of it.
        kind: "float", "int", "bool", or "found" where the shape depends on data.
    """

    name: str
    shape: Shape
    kind: str = "float"


class Drawing:
    """A network in the making.

    Args:
        seed: of all choices.
    """

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.writer = ModelWriter(seed)
        self.tensors: list[Tensor] = []
        self.weights: dict[Shape, str] = {}

    def choose(self, options: Sequence[Any]) -> Any:
        """Return one of several options."""
        return options[int(self.random.integers(len(options)))]

    def shape(self, low: int = 0, high: int = 6) -> Shape:
        """Draw a shape of few elements."""
        rank = int(self.random.integers(low, high + 1))
        found = [self.choose(_EXTENTS) for _ in range(rank)]
        while np.prod(found, dtype=np.int64) > 2000:
            found[int(np.argmax(found))] = 2
        if rank and self.random.random() < 0.03:
            found[int(self.random.integers(rank))] = 0
        return tuple(found)

    def weight(self, *shape: int) -> str:
        """Return a weight; one of the same shape may be shared."""
        if shape not in self.weights or self.random.random() < 0.5:
            self.weights[shape] = self.writer.weight(*shape)
        return self.weights[shape]

    def pick(self, kind: str = "float", low: int = 0, high: int = 9) -> Tensor | None:
        """Return a tensor of so many dimensions."""
        found = [t for t in self.tensors if t.kind == kind and low <= len(t.shape) <= high]
        return self.choose(found[-4:]) if found else None

    def add(
        self, operator: str, inputs: Sequence[str], shape: Sequence[int], kind: str = "float", **more: Any
    ) -> None:
        """Add a node of one output."""
        name = self.writer.add(operator, *inputs, **more)
        self.tensors.append(Tensor(name, tuple(int(n) for n in shape), kind))

    def broadcast(self, t: Tensor) -> Tensor:
        """Return a tensor or a weight that is broadcast with another one."""
        fitting = [
            other for other in self.tensors if other.kind == t.kind and _broadcasts(other.shape, t.shape)
        ]
        if fitting and self.random.random() < 0.6:
            return self.choose(fitting)
        shape = tuple(n if self.random.random() < 0.6 else 1 for n in t.shape)
        shape = shape[int(self.random.integers(len(shape) + 1)) :]
        if t.kind == "float":
            return Tensor(self.weight(*shape), shape)
        return Tensor(self.writer.constant(self.random.integers(1, 5, shape)), shape, t.kind)


def _broadcasts(a: Shape, b: Shape) -> bool:
    return all(n == m or 1 in (n, m) for n, m in zip(a[::-1], b[::-1], strict=False))


# Operators


_UNARY = (
    "Abs",
    "Neg",
    "Relu",
    "Sigmoid",
    "Tanh",
    "Exp",
    "Erf",
    "HardSwish",
    "LeakyRelu",
    "Elu",
    "Softplus",
    "Sin",
    "Cos",
    "Atan",
    "HardSigmoid",
    "Softsign",
    "Selu",
    "Mish",
    "Sqrt",
    "Log",
    "Reciprocal",
    "Identity",
)


def _unary(d: Drawing, t: Tensor) -> None:
    operator = d.choose(_UNARY)
    x = t.name
    if operator in ("Sqrt", "Log", "Reciprocal"):
        x = d.writer.add("Add", d.writer.add("Abs", x), d.writer.number(0.5))
    if operator == "Exp":
        x = d.writer.add("Tanh", x)
    d.add(operator, [x], t.shape)


def _binary(d: Drawing, t: Tensor) -> None:
    other = d.broadcast(t)
    pair = [t.name, other.name] if d.random.random() < 0.5 else [other.name, t.name]
    d.add(d.choose(("Add", "Sub", "Mul", "Max", "Min")), pair, np.broadcast_shapes(t.shape, other.shape))


def _reduction(d: Drawing, t: Tensor) -> None:
    axes = [int(a) for a in range(len(t.shape)) if d.random.random() < 0.5]
    keep = int(d.random.integers(2))
    if 0 in t.shape:
        return
    operator = d.choose(
        ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceL1", "ReduceSumSquare", "ReduceProd")
    )
    reduced = axes or list(range(len(t.shape)))
    shape = [1 if i in reduced else n for i, n in enumerate(t.shape) if keep or i not in reduced]
    more: dict[str, Any] = {"axes": axes} if axes else {}
    d.add(operator, [t.name], shape, keepdims=keep, **more)


def _transpose(d: Drawing, t: Tensor) -> None:
    if not t.shape:
        return
    order = [int(i) for i in d.random.permutation(len(t.shape))]
    d.add("Transpose", [t.name], [t.shape[i] for i in order], t.kind, perm=order)


def _reshape(d: Drawing, t: Tensor) -> None:
    size, found = int(np.prod(t.shape, dtype=np.int64)), list[int]()
    if not size:
        return
    while size > 1 and len(found) < 5:
        factors = [n for n in range(2, size + 1) if size % n == 0]
        found.append(d.choose(factors))
        size //= found[-1]
    found += [size] if size > 1 else []
    if d.random.random() < 0.3:
        found.insert(int(d.random.integers(len(found) + 1)), 1)
    d.add("Reshape", [t.name, d.writer.constant(np.array(found, np.int64))], found, t.kind)


def _slice(d: Drawing, t: Tensor) -> None:
    if not t.shape or 0 in t.shape:
        return
    starts, ends, steps, shape = list[int](), list[int](), list[int](), list[int]()
    for n in t.shape:
        step = d.choose((1, 1, 2, -1))
        start, end = sorted(int(i) for i in d.random.integers(0, n + 1, 2))
        if end == start:
            start, end = 0, n
        if step < 0:
            start, end = end - 1, start - 1 - (n if start == 0 else 0)
        starts.append(start)
        ends.append(end)
        steps.append(step)
        shape.append(len(range(n)[slice(start, end if end >= 0 else None, step)]))
    bounds = [d.writer.whole(*values) for values in (starts, ends, range(len(t.shape)), steps)]
    d.add("Slice", [t.name, *bounds], shape, t.kind)


def _concatenation(d: Drawing, t: Tensor) -> None:
    if not t.shape:
        return
    axis = int(d.random.integers(len(t.shape)))
    parts = [other for other in d.tensors if other.kind == t.kind and len(other.shape) == len(t.shape)]
    parts = [
        o
        for o in parts
        if all(a == b for i, (a, b) in enumerate(zip(o.shape, t.shape, strict=True)) if i != axis)
    ]
    chosen = [t, *(d.choose(parts) for _ in range(int(d.random.integers(1, 3))))]
    shape = list(t.shape)
    shape[axis] = sum(each.shape[axis] for each in chosen)
    d.add("Concat", [each.name for each in chosen], shape, t.kind, axis=axis)


def _pad(d: Drawing, t: Tensor) -> None:
    if not t.shape or 0 in t.shape:
        return
    mode = d.choose(("constant", "edge", "reflect"))
    most = [2 if mode != "reflect" else n - 1 for n in t.shape]
    before, after = ([int(d.random.integers(0, min(2, m) + 1)) for m in most] for _ in range(2))
    shape = [a + n + b for a, n, b in zip(before, t.shape, after, strict=True)]
    d.add("Pad", [t.name, d.writer.whole(*before, *after)], shape, t.kind, mode=mode)


def _gather(d: Drawing, t: Tensor) -> None:
    if not t.shape or 0 in t.shape:
        return
    axis = int(d.random.integers(len(t.shape)))
    n, indices = t.shape[axis], d.shape(0, 2)
    shape = t.shape[:axis] + indices + t.shape[axis + 1 :]
    known = d.pick("int")
    if known is not None and d.random.random() < 0.4:
        wrapped = d.writer.add("Mod", known.name, d.writer.constant(np.array(n)))
        shape = t.shape[:axis] + known.shape + t.shape[axis + 1 :]
        if len(shape) < 7:
            d.add("Gather", [t.name, wrapped], shape, t.kind, axis=axis)
        return
    d.add("Gather", [t.name, d.writer.constant(d.random.integers(-n, n, indices))], shape, t.kind, axis=axis)


def _expand(d: Drawing, t: Tensor) -> None:
    shape = [d.choose((2, 3)) if n == 1 else n for n in t.shape]
    shape = [2, *shape] if len(shape) < 6 else shape
    if d.random.random() < 0.5:
        d.add("Expand", [t.name, d.writer.whole(*shape)], shape, t.kind)
    elif t.shape:
        times = [int(d.random.integers(1, 3)) for _ in t.shape]
        d.add(
            "Tile",
            [t.name, d.writer.whole(*times)],
            [a * b for a, b in zip(t.shape, times, strict=True)],
            t.kind,
        )


def _split(d: Drawing, t: Tensor) -> None:
    axes = [i for i, n in enumerate(t.shape) if n > 1]
    if not axes:
        return
    axis = d.choose(axes)
    first = int(d.random.integers(1, t.shape[axis]))
    sizes = (first, t.shape[axis] - first)
    names = d.writer.add("Split", t.name, d.writer.whole(*sizes), count=2, axis=axis)
    for name, size in zip(names, sizes, strict=True):
        d.tensors.append(Tensor(name, (*t.shape[:axis], size, *t.shape[axis + 1 :]), t.kind))


def _product(d: Drawing, t: Tensor) -> None:
    if not t.shape or 0 in t.shape:
        return
    width = int(d.random.integers(1, 9))
    others = [o for o in d.tensors if len(o.shape) > 1 and o.kind == "float" and o.shape[-2] == t.shape[-1]]
    others = [
        o for o in others if _broadcasts(o.shape[:-2], t.shape[:-2]) and len(o.shape) + len(t.shape) < 8
    ]
    if others and len(t.shape) > 1 and d.random.random() < 0.5:
        other = d.choose(others)
        shape = (*np.broadcast_shapes(t.shape[:-2], other.shape[:-2]), *t.shape[-2:-1], *other.shape[-1:])
        d.add("MatMul", [t.name, other.name], shape)
    else:
        inner = list(t.shape)[-1]
        d.add("MatMul", [t.name, d.weight(inner, width)], (*t.shape[: len(t.shape) - 1], width))


def _image(d: Drawing) -> Tensor | None:
    t = d.pick("float", 3, 5)
    if t is None or 0 in t.shape:
        return None
    return t


def _convolution(d: Drawing, t: Tensor) -> None:
    image = _image(d)
    if image is None:
        return
    t, rank = image, len(image.shape) - 2
    channels = t.shape[1]
    groups = channels if d.random.random() < 0.3 else 1
    outer = groups * int(d.random.integers(1, 4))
    size = [int(d.random.integers(1, 4)) for _ in range(rank)]
    stride = [int(d.random.integers(1, 3)) for _ in range(rank)]
    pads = [s // 2 for s in size]
    if any(n + 2 * p < s for n, p, s in zip(t.shape[2:], pads, size, strict=True)):
        return
    weights, bias = d.weight(outer, channels // groups, *size), d.weight(outer)
    space = [(n + 2 * p - s) // k + 1 for n, p, s, k in zip(t.shape[2:], pads, size, stride, strict=True)]
    more: dict[str, Any] = {"group": groups, "strides": stride, "pads": pads * 2}
    d.add("Conv", [t.name, weights, bias], (t.shape[0], outer, *space), **more)


def _pool(d: Drawing, t: Tensor) -> None:
    image = _image(d)
    if image is None or min(image.shape[2:]) < 2:
        return
    t, rank = image, len(image.shape) - 2
    shape = (*t.shape[:2], *((n - 2) // 2 + 1 for n in t.shape[2:]))
    d.add(d.choose(("MaxPool", "AveragePool")), [t.name], shape, kernel_shape=[2] * rank, strides=[2] * rank)


def _normalization(d: Drawing, t: Tensor) -> None:
    if not t.shape or 0 in t.shape:
        return
    if d.random.random() < 0.5:
        axis = int(d.random.integers(-len(t.shape), len(t.shape)))
        d.add(d.choose(("Softmax", "LogSoftmax")), [t.name], t.shape, axis=axis)
    elif t.shape[-1] > 1:
        width = t.shape[-1]
        inputs = [t.name, d.writer.positive(width), d.weight(width)]
        d.add("LayerNormalization", inputs, t.shape, axis=-1, epsilon=0.1)


def _integers(d: Drawing, t: Tensor) -> None:
    """Make integers of floats."""
    scaled = d.writer.add("Mul", d.writer.add("Tanh", t.name), d.writer.number(9.0))
    d.add("Cast", [scaled], t.shape, "int", to=TensorProto.INT64)


def _whole(d: Drawing, t: Tensor) -> None:
    known = d.pick("int")
    if known is None:
        return
    other = d.broadcast(known)
    shape = np.broadcast_shapes(known.shape, other.shape)
    operator = d.choose(("Add", "Sub", "Mul", "Max", "Min", "Float", "Mod", "Less", "Equal"))
    if operator == "Float":
        d.add("Cast", [known.name], known.shape, to=TensorProto.FLOAT)
    elif operator == "Mod":
        d.add("Mod", [known.name, d.writer.constant(np.array(d.choose((3, -4, 7))))], known.shape, "int")
    elif operator in ("Less", "Equal"):
        d.add(operator, [known.name, other.name], shape, "bool")
    else:
        d.add(operator, [known.name, other.name], shape, "int")
    del t


def _choice(d: Drawing, t: Tensor) -> None:
    condition = d.pick("bool")
    other = d.broadcast(t)
    shape = np.broadcast_shapes(t.shape, other.shape)
    if condition is None or not _broadcasts(condition.shape, shape):
        d.add("Less", [t.name, d.writer.number(0.1)], t.shape, "bool")
        return
    if all(n >= m for n, m in zip(shape[::-1], condition.shape[::-1], strict=False)) and len(shape) >= len(
        condition.shape
    ):
        d.add("Where", [condition.name, t.name, other.name], np.broadcast_shapes(shape, condition.shape))


def _ordered(d: Drawing, t: Tensor) -> None:
    if not t.shape or 0 in t.shape:
        return
    axis = int(d.random.integers(len(t.shape)))
    kind = d.choose(("TopK", "ArgMax", "CumSum"))
    if kind == "TopK":
        k = int(d.random.integers(1, t.shape[axis] + 1))
        values, indices = d.writer.add("TopK", t.name, d.writer.whole(k), axis=axis, count=2)
        shape = (*t.shape[:axis], k, *t.shape[axis + 1 :])
        d.tensors += [Tensor(indices, shape, "int"), Tensor(values, shape)]
    elif kind == "ArgMax":
        d.add("ArgMax", [t.name], t.shape[:axis] + t.shape[axis + 1 :], "int", axis=axis, keepdims=0)
    else:
        more: dict[str, Any] = {"exclusive": int(d.random.integers(2)), "reverse": int(d.random.integers(2))}
        d.add("CumSum", [t.name, d.writer.constant(np.array(axis))], t.shape, **more)


def _found(d: Drawing, t: Tensor) -> None:
    """Find elements; what is computed of them has as many elements as there are, and is an output."""
    if not t.shape or 0 in t.shape:
        return
    test = d.writer.add("Greater", t.name, d.writer.number(float(d.random.normal())))
    rows = d.writer.add("Transpose", d.writer.add("NonZero", test), perm=[1, 0])
    values = d.writer.add("GatherND", t.name, rows)
    match d.choose(("elements", "rows", "sum", "written", "columns")):
        case "elements":
            d.add(d.choose(("Neg", "Tanh", "Relu")), [values], (), "found")
        case "rows":
            d.add("Mul", [rows, d.writer.whole(*range(1, len(t.shape) + 1))], (), "found")
        case "sum":
            d.add(d.choose(("ReduceSumSquare", "ReduceProd", "ReduceL1")), [values], (1,))
        case "written":
            d.add("ScatterND", [t.name, rows, d.writer.add("Abs", values)], t.shape)
        case _:
            axis = int(d.random.integers(len(t.shape)))
            kept = d.writer.constant(d.random.random(t.shape[axis]) < 0.5)
            d.add("Compress", [d.writer.add("Sin", t.name), kept], (), "found", axis=axis)


def _resize(d: Drawing, t: Tensor) -> None:
    image = d.pick("float", 4, 4)
    if image is None or 0 in image.shape:
        return
    size = [int(d.random.integers(1, 9)) for _ in range(2)]
    mode = d.choose(("nearest", "linear"))
    where = d.choose(("half_pixel", "asymmetric", "align_corners"))
    shape = (*image.shape[:2], *size)
    d.add(
        "Resize",
        [image.name, "", "", d.writer.whole(*shape)],
        shape,
        mode=mode,
        coordinate_transformation_mode=where,
    )
    del t


def _recurrence(d: Drawing, t: Tensor) -> None:
    image = d.pick("float", 3, 3)
    if image is None or 0 in image.shape:
        return
    steps, batch, inner = image.shape
    operator, hidden = d.choose(("LSTM", "GRU")), int(d.random.integers(1, 10))
    direction = d.choose(("forward", "reverse", "bidirectional"))
    directions = 2 if direction == "bidirectional" else 1
    y, h = d.writer.recurrent(operator, image.name, inner, hidden, direction)[:2]
    d.tensors += [Tensor(y, (steps, directions, batch, hidden)), Tensor(h, (directions, batch, hidden))]
    del t


OPERATORS: Sequence[Callable[[Drawing, Tensor], None]] = (
    _unary,
    _unary,
    _binary,
    _binary,
    _binary,
    _reduction,
    _transpose,
    _reshape,
    _slice,
    _concatenation,
    _pad,
    _gather,
    _expand,
    _split,
    _product,
    _product,
    _convolution,
    _convolution,
    _pool,
    _normalization,
    _integers,
    _whole,
    _whole,
    _choice,
    _ordered,
    _resize,
    _recurrence,
)


def draw_network(seed: int) -> tuple[onnx.ModelProto, Mapping[str, Array]]:
    """Draw a network, and inputs of it."""
    d = Drawing(seed)
    for index in range(int(d.random.integers(1, 4))):
        shape = d.shape(3, 5) if index == 0 else d.shape()
        d.tensors.append(Tensor(d.writer.input(f"x{index}", shape), shape))
    inputs = list(d.tensors)
    for _ in range(int(d.random.integers(3, 12))):
        t = d.pick("float") if d.random.random() < 0.85 else d.choose(d.tensors)
        operator = d.choose(OPERATORS)
        moves = operator in (_transpose, _reshape, _slice, _concatenation, _gather, _expand, _split)
        if t is None or len(t.shape) > 6 or np.prod(t.shape, dtype=np.int64) > 5000:
            continue
        if t.kind == "float" or (t.kind == "int" and moves):
            operator(d, t)
    made = d.tensors[len(inputs) :] or [Tensor(d.writer.add("Relu", inputs[0].name), inputs[0].shape)]
    extra = [d.choose(made) for _ in range(int(d.random.integers(0, 3)))]
    names = list(dict.fromkeys(t.name for t in [made[-1], *extra]))
    feed = {t.name: d.random.standard_normal(t.shape).astype(np.float32) for t in inputs}
    d.random = np.random.default_rng([seed, 1])
    if (t := d.pick("float", 1)) is not None and d.random.random() < FOUND_SHARE:
        _found(d, t)
        names += [each.name for each in d.tensors if each.name not in names][-1:]
    return d.writer.model(*dict.fromkeys(names)), feed


# Comparison


Draw = Callable[[int], tuple[onnx.ModelProto, Mapping[str, Array]]]


def apart(found: Array, right: Array) -> float:
    """Return the largest difference as a share of the largest number, or of 1; infinite where NaN differs."""
    if found.shape != right.shape:
        return np.inf
    a, b = found.astype(np.float64), right.astype(np.float64)
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    if not (same | finite).all():
        return np.inf
    largest = max(1.0, float(np.abs(b[finite]).max(initial=0.0)))
    return float(np.abs(a - b)[finite].max(initial=0.0)) / largest


def _where(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"({Path(frame.filename).name}:{frame.lineno})"


def judge_images(seed: int, folder: Path) -> tuple[str, str]:
    """Compile a network of images for a small cache, and compare it."""
    with small_cache(CACHES[seed % len(CACHES)]):
        return judge(seed, folder, draw_images)


def judge(seed: int, folder: Path, draw: Draw = draw_network) -> tuple[str, str]:
    """Compile a network and compare it; return what became of it, and details."""
    model, feed = draw(seed)
    path = folder / "network.onnx"
    onnx.save(model, str(path))
    try:
        right = [
            np.asarray(each)
            for each in open_session(model.SerializeToString(), SessionSettings(), as_it_is=True).run(feed)
        ]
    except Exception as error:  # noqa: BLE001 (the runtime has a class for each status)
        return "invalid", str(error)[:200]
    exact = float64_answers(model, feed) or right
    doubt = max(apart(a, b) for a, b in zip(right, exact, strict=True))
    if not doubt < TOLERANCE:
        return "decided by rounding", ""
    try:
        net = compile_model(path, output=None, measures=False, tolerance=1e30).network
        found = net(**feed)
    except PlanishError as error:
        return "refused", error.message
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a defect)
        return "failed", f"{type(error).__name__}: {error} {_where(error)}"
    answers = found if isinstance(found, tuple) else (found,)
    worst = max(apart(a, b) for a, b in zip(answers, exact, strict=True))
    if not worst < TOLERANCE + 10 * doubt:
        return "wrong", f"{worst:.1e} from the reference, ONNX Runtime {doubt:.1e}"
    return "right", ""


def main() -> int:
    """Compare networks, and print what differs."""
    parser = argparse.ArgumentParser(description="Compare compiled networks with ONNX Runtime.")
    parser.add_argument("--networks", type=int, default=200, help="seeds: two networks each")
    parser.add_argument("--seed", type=int, default=0, help="of the first network; the others follow")
    parser.add_argument("--state", type=Path, help="file of counts: the same command continues from there")
    options = parser.parse_args()
    state, started = State(options.state, f"networks {options.seed}", options.seed), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(state.first, options.seed + options.networks):
            for kind, compare in (("operators", judge), ("images", judge_images)):
                outcome, details = compare(seed, Path(folder))
                state.counts[outcome] += 1
                if outcome in BAD:
                    print(f"seed {seed}, {kind}: {outcome}: {details}", flush=True)
            state.save(seed + 1)
    seconds = time.monotonic() - started
    listed = ", ".join(f"{count} {name}" for name, count in sorted(state.counts.items()))
    print(f"{sum(state.counts.values())} networks, {seconds:.0f} s of them now: {listed}")
    return 1 if any(state.counts[name] for name in BAD) else 0


if __name__ == "__main__":
    sys.exit(main())
