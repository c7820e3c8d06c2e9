"""Shapes that depend on data: answers and shapes are ONNX Runtime's, and what is not covered is refused."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import planish
from network.compiled import run_onnxruntime
from network_models import ModelWriter, yolo
from planish.core import ProgramError
from planish.network.library.runtime import CompiledNetwork

Feed = dict[str, np.ndarray]


def check(path: Path, *feeds: Feed) -> CompiledNetwork:
    """Compare with ONNX Runtime on inputs in which other numbers of elements are found."""
    net = planish.compile(path, output=path.parent / "net")
    for feed in feeds:
        found = net(**feed)
        answers = found if isinstance(found, tuple) else (found,)
        for mine, right in zip(answers, run_onnxruntime(path, feed), strict=True):
            assert (mine.dtype, mine.shape) == (right.dtype, right.shape)
            np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-5)
    return net


def some(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def none_and_all(array: np.ndarray) -> list[np.ndarray]:
    return [array, np.full_like(array, -9), np.full_like(array, 9)]


def test_nonzero_elements_and_what_is_computed_of_them(tmp_path: Path) -> None:
    w = ModelWriter()
    x, table = w.input("x", (3, 4, 5)), w.weight(60, 7)
    at = w.add("NonZero", w.add("Greater", x, w.number(0.5)))
    rows = w.add("Transpose", at, perm=[1, 0])
    picked = w.add("GatherND", x, rows)
    index = w.add("Mod", w.add("ReduceSum", rows, w.whole(1), keepdims=0), w.constant(np.array(60)))
    dense = w.add("MatMul", w.add("Gather", table, index), w.weight(7, 3))
    last = w.add("Softmax", w.add("Add", dense, w.add("Unsqueeze", picked, w.whole(1))), axis=-1)
    wide = w.add("Concat", last, w.add("Cast", rows, to=TensorProto.FLOAT), axis=1)
    path = w.save(tmp_path / "m.onnx", at, rows, w.add("Mul", picked, w.number(2)), wide)
    check(path, *({"x": each} for each in none_and_all(some(3, 4, 5))))


def test_reductions_see_only_what_was_found(tmp_path: Path) -> None:
    w = ModelWriter()
    x = w.input("x", (6, 4))
    rows = w.add("Transpose", w.add("NonZero", w.add("Relu", x)), perm=[1, 0])
    picked = w.add("GatherND", x, rows)
    sums = [w.add("ReduceSum", picked, w.whole(0)), w.add("ReduceSum", rows, w.whole(0))]
    sums += [w.add("ReduceProd", picked, axes=[0]), w.add("ReduceL2", picked, axes=[0])]
    extremes = [w.add("ReduceMax", picked, axes=[0]), w.add("ReduceMin", rows, axes=[0])]
    best = w.add("ArgMax", picked, axis=0)
    again = w.add("NonZero", w.add("Greater", picked, w.number(1.0)))
    few = w.add("Slice", picked, w.whole(0), w.whole(3), w.whole(0))
    path = w.save(tmp_path / "m.onnx", *sums, *extremes, best, again, few)
    check(path, {"x": some(6, 4)}, {"x": np.full((6, 4), 9, np.float32)})


def test_elements_that_are_written_back(tmp_path: Path) -> None:
    w = ModelWriter()
    x = w.input("x", (5, 3))
    rows = w.add("Transpose", w.add("NonZero", w.add("Greater", x, w.number(0))), perm=[1, 0])
    updates = w.add("Neg", w.add("GatherND", x, rows))
    added = w.add("ScatterND", x, rows, updates, reduction="add")
    path = w.save(tmp_path / "m.onnx", w.add("ScatterND", x, rows, updates), added, opset=16)
    check(path, *({"x": each} for each in none_and_all(some(5, 3))))


def test_compressed_and_unique_elements(tmp_path: Path) -> None:
    w = ModelWriter()
    x, kept = w.input("x", (4, 5)), w.input("kept", (5,), TensorProto.BOOL)
    numbers = w.input("numbers", (2, 9), TensorProto.INT64)
    columns = w.add("Compress", x, kept, axis=1)
    flat = w.add("Compress", x, kept)
    outputs = [columns, w.add("Relu", columns), flat, w.add("Compress", kept, kept)]
    known = w.constant(np.array([0, 1, 1, 0, 1], bool))
    outputs += [w.add("Compress", x, known, axis=1), w.add("Compress", x, known)]
    outputs += w.add("Unique", numbers, count=4) + w.add("Unique", w.add("Round", x), count=2)
    path = w.save(tmp_path / "m.onnx", *outputs)
    draw = np.random.default_rng(0)
    feeds: list[Feed] = [
        {"x": some(4, 5), "kept": np.array(bits, bool), "numbers": draw.integers(0, most, (2, 9))}
        for bits, most in (([1, 0, 1, 1, 0], 5), ([0] * 5, 1), ([1] * 5, 99))
    ]
    check(path, *feeds)


@pytest.mark.parametrize("centered", [0, 1])
def test_boxes_that_are_not_suppressed(tmp_path: Path, centered: int) -> None:
    w = ModelWriter()
    boxes, scores = w.input("boxes", (2, 30, 4)), w.input("scores", (2, 3, 30))
    limits = w.whole(5), w.number(0.4), w.number(0.3)
    chosen = w.add("NonMaxSuppression", boxes, scores, *limits, center_point_box=centered)
    unlimited = w.add("NonMaxSuppression", boxes, scores, w.whole(99))
    nothing = w.add("NonMaxSuppression", boxes, scores)
    index = w.add("Squeeze", w.add("Slice", chosen, w.whole(2), w.whole(3), w.whole(1)), w.whole(1))
    first = w.add("Squeeze", w.add("Slice", boxes, w.whole(0), w.whole(1), w.whole(0)), w.whole(0))
    found = w.add("Gather", first, index, axis=0)
    path = w.save(tmp_path / "m.onnx", chosen, unlimited, nothing, w.add("Add", found, w.number(1)))
    draw = np.random.default_rng(centered)
    at = draw.uniform(0, 4, (2, 30, 4)).astype(np.float32)
    seen = draw.uniform(0, 1, (2, 3, 30)).astype(np.float32)
    tied = np.full_like(seen, 0.5)
    check(path, *({"boxes": at, "scores": each} for each in (seen, 0.1 * seen, tied)))


@pytest.mark.slow
def test_detector_with_its_selection_of_boxes(tmp_path: Path) -> None:
    path = yolo(tmp_path / "m.onnx", 64, 8, 3, selects=True)
    net = planish.compile(path)
    for seed in range(3):
        image = 3 * some(1, 3, 64, 64, seed=seed)
        for mine, right in zip(net(image), run_onnxruntime(path, {"x": image}), strict=True):
            assert mine.shape == right.shape
            assert len(mine) > 3
            np.testing.assert_allclose(mine, right, rtol=1e-3, atol=1e-3)


def count_of(w: ModelWriter, found: str) -> str:
    return w.add("Gather", w.add("Shape", found), w.constant(np.array(1)))


def doubled(w: ModelWriter, found: str) -> str:
    return w.add("Concat", found, found, axis=1)


def mean(w: ModelWriter, found: str) -> str:
    return w.add("ReduceMean", w.add("Cast", found, to=TensorProto.FLOAT), axes=[1])


@pytest.mark.parametrize("use", [count_of, doubled, mean])
def test_what_needs_the_number_of_elements_is_refused(
    tmp_path: Path, use: Callable[[ModelWriter, str], str]
) -> None:
    w = ModelWriter()
    path = w.save(tmp_path / "m.onnx", use(w, w.add("NonZero", w.input("x", (3, 4)))))
    with pytest.raises(ProgramError, match=r"of elements that were found|as many as data have"):
        planish.compile(path)


def test_extents_of_different_origin_are_refused(tmp_path: Path) -> None:
    w = ModelWriter()
    x = w.input("x", (3, 4))
    one, other = w.add("NonZero", x), w.add("NonZero", w.add("Relu", x))
    path = w.save(tmp_path / "m.onnx", w.add("Add", one, other))
    with pytest.raises(ProgramError, match="different extents"):
        planish.compile(path)


_MAIN = r"""
#include <stdio.h>
#include "model.h"

int main(void)
{
    static float x[6] = {0, 1, 0, 2, 3, 0};
    static int64_t at[12], shape[2];
    static char space[MODEL_WORKSPACE_BYTES + MODEL_ALIGNMENT];
    uintptr_t end = (uintptr_t)space + MODEL_ALIGNMENT - 1;
    const void *inputs[] = {x};
    void *outputs[] = {at, shape};
    int code = model_run(inputs, outputs, (void *)(end - end % MODEL_ALIGNMENT));
    printf("%d %d %d:", code, model_outputs[0].shape_output, model_outputs[1].shape_output);
    for (int i = 0; i < shape[0] * shape[1]; i++)
        printf(" %d", (int)at[i]);
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="cc is not installed")
def test_c_programs_receive_the_shape(tmp_path: Path) -> None:
    w = ModelWriter()
    path = w.save(tmp_path / "m.onnx", w.add("NonZero", w.input("x", (2, 3))))
    planish.compile(path, output=tmp_path / "net")
    (tmp_path / "main.c").write_text(_MAIN)
    folder, program = tmp_path / "net", tmp_path / "main"
    command: list[Any] = ["cc", "-Wall", "-Werror", "-I", folder, tmp_path / "main.c", folder / "model.so"]
    subprocess.run([*command, f"-Wl,-rpath,{folder}", "-o", program], check=True)
    ran = subprocess.run([program], check=True, capture_output=True, text=True)
    assert ran.stdout == "0 1 -1: 0 1 1 1 0 1"
