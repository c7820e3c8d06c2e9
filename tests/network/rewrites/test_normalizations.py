"""Softmax and layer normalization that are written as several operators."""

from math import inf
from pathlib import Path

import pytest

from network.compiled import assert_same, compiled, operators
from network_models import ModelWriter

SHAPE = (2, 5, 24)


def softmax(w: ModelWriter, x: str, axis: int, *, sum_axis: int | None = None, shifted: str = "") -> str:
    """Write softmax as JAX does; with other axes, or another difference, it is none."""
    most = w.add("Max", w.add("ReduceMax", x, axes=[axis], keepdims=1), w.number(-inf))
    power = w.add("Exp", w.add("Sub", shifted or x, most))
    axes = w.whole(axis if sum_axis is None else sum_axis)
    return w.add("Div", power, w.add("ReduceSum", power, axes, keepdims=1))


def mean(w: ModelWriter, x: str, *, by_sum: bool) -> str:
    if not by_sum:
        return w.add("ReduceMean", x, axes=[-1], keepdims=1)
    total = w.add("ReduceSum", x, w.whole(-1), keepdims=1)
    return w.add("Div", total, w.number(SHAPE[-1]))


def normalized(w: ModelWriter, x: str, form: str, other: str = "") -> str:
    """Write layer normalization as JAX, Flax, or PyTorch without weights do.

    By another tensor's variance it is none.
    """
    by_sum, scale = form != "torch", w.weight(SHAPE[-1])
    rest = w.add("Sub", x, mean(w, x, by_sum=by_sum))
    apart = w.add("Sub", other, mean(w, other, by_sum=by_sum)) if other else rest
    square = w.add("Mul", apart, apart) if by_sum else w.add("Pow", apart, w.number(2))
    variance = mean(w, square, by_sum=by_sum)
    if form == "flax":
        middle = mean(w, x, by_sum=True)
        less = w.add("Sub", mean(w, w.add("Mul", x, x), by_sum=True), w.add("Mul", middle, middle))
        variance = w.add("Max", w.number(0), less)
    root = w.add("Sqrt", w.add("Add", variance, w.number(1e-5)))
    if form == "flax":
        return w.add("Mul", rest, w.add("Mul", w.add("Reciprocal", root), scale))
    if form == "torch":
        return w.add("Div", rest, root)
    return w.add(
        "Add", w.add("Mul", w.add("Mul", rest, w.add("Reciprocal", root)), scale), w.weight(SHAPE[-1])
    )


@pytest.mark.parametrize("axis", [-1, 1])
def test_softmax_is_one_kernel(tmp_path: Path, axis: int) -> None:
    w = ModelWriter()
    path = w.save(tmp_path / "m.onnx", softmax(w, w.input("x", SHAPE), axis))
    found = compiled(path)
    assert operators(found) == ["Softmax"]
    assert_same(found.network, path)


@pytest.mark.parametrize(
    ("form", "kernel"),
    [
        ("torch", "LayerNormalization"),
        ("jax", "LayerNormalization+Mul+Add"),
        ("flax", "LayerNormalization+Mul"),
    ],
)
def test_layer_normalization_is_one_kernel(tmp_path: Path, form: str, kernel: str) -> None:
    w = ModelWriter()
    path = w.save(tmp_path / "m.onnx", normalized(w, w.input("x", SHAPE), form))
    found = compiled(path)
    assert operators(found) == [kernel]
    assert_same(found.network, path)


def test_what_resembles_them_stays(tmp_path: Path) -> None:
    """Sums along another dimension, differences of another tensor, and the variance of another one."""
    w = ModelWriter()
    x, y = w.input("x", SHAPE), w.input("y", SHAPE)
    results = softmax(w, x, -1, sum_axis=1), softmax(w, x, -1, shifted=y), normalized(w, x, "jax", other=y)
    path = w.save(tmp_path / "m.onnx", *results)
    found = compiled(path)
    assert not any("Softmax" in each or "LayerNormalization" in each for each in operators(found))
    assert_same(found.network, path)
