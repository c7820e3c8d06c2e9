"""Libraries for several shapes: the ranges of a shape, and calls that select a variant."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import planish
from network.compiled import run_onnxruntime
from network_models import ModelWriter
from planish.core import ProgramError
from planish.network.compiler import compile_model
from planish.network.library.runtime import CompiledNetwork
from planish.network.library.variants import concrete_shapes


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("", [""]),
        ("x=1x3", ["x=1x3"]),
        ("x=1..3x8", ["x=1x8", "x=2x8", "x=3x8"]),
        ("x=1x16..48:16", ["x=1x16", "x=1x32", "x=1x48"]),
        ("box=1..2x4,y=1..2", ["box=1x4,y=1", "box=2x4,y=2"]),
        ("x=1..2x5..6", ["x=1x5", "x=1x6", "x=2x5", "x=2x6"]),
    ],
)
def test_ranges(text: str, shapes: list[str]) -> None:
    assert concrete_shapes(text) == shapes


@pytest.mark.parametrize("text", ["x=3..1", "x=0..2", "x=1..a", "x=1..4:0", "x=..4", "x=1..65"])
def test_wrong_ranges_are_refused(text: str) -> None:
    with pytest.raises(ProgramError, match=r"range of sizes|64 at most"):
        concrete_shapes(text)


def model(path: Path) -> Path:
    """Write a network of images of any number and width, and a table that is looked up."""
    w = ModelWriter()
    x = w.add("Relu", w.conv(w.input("x", ("n", 3, 6, "w")), 3, 8, 3))
    mean = w.add("Flatten", w.add("GlobalAveragePool", x))
    return w.save(path, w.add("Gemm", mean, w.weight(8, 5), w.weight(5)), x)


def test_calls_select_their_variant(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx")
    net = planish.compile(path, output=tmp_path / "net", shape="x=1..2x3x6x7..8")
    for loaded in (net, CompiledNetwork(tmp_path / "net")):
        for n, width in ((2, 8), (1, 7), (1, 8), (2, 7), (2, 8)):
            x = np.random.default_rng(n).standard_normal((n, 3, 6, width)).astype(np.float32)
            for found, right in zip(loaded(x), run_onnxruntime(path, {"x": x}), strict=True):
                np.testing.assert_allclose(found, right, atol=1e-5)
    with pytest.raises(ProgramError, match="x' is float32"):
        net(np.zeros((3, 3, 6, 7), np.float32))


def test_variants_share_their_weights(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx")
    one = compile_model(path, output=None, shape="x=1x3x6x8", measures=False)
    two = compile_model(path, output=None, shape="x=1..2x3x6x8", measures=False)
    assert two.manifest["weights_bytes"] < 2 * one.manifest["weights_bytes"]
    assert len(two.variants) == 2


_PROGRAM = """
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    const int64_t shape[] = {2, 3, 6, 8}, other[] = {9, 3, 6, 8};
    const int64_t *const shapes[] = {shape}, *const others[] = {other};
    static float x[2 * 3 * 6 * 8], mean[2 * 5], image[2 * 8 * 6 * 8];
    const void *inputs[] = {x};
    void *outputs[] = {mean, image};
    void *workspace = aligned_alloc(MODEL_ALIGNMENT, MODEL_WORKSPACE_BYTES + MODEL_ALIGNMENT);
    int variant = model_find(shapes);
    if (MODEL_VARIANTS != 4 || model_find(others) != -1)
        return 10;
    if (model_run(-1, inputs, outputs, workspace) != MODEL_NO_VARIANT)
        return 11;
    for (int i = 0; i < 2 * 3 * 6 * 8; i++)
        x[i] = 0.01f * i;
    if (model_variants[variant].inputs[0].shape[3] != 8 || model_run(variant, inputs, outputs, workspace))
        return 12;
    for (int i = 0; i < 10; i++)
        printf("%.9g\\n", mean[i]);
    return 0;
}
"""


def test_variants_are_called_from_c(tmp_path: Path) -> None:
    path, net = model(tmp_path / "m.onnx"), tmp_path / "net"
    planish.compile(path, output=net, shape="x=1..2x3x6x7..8")
    (tmp_path / "main.c").write_text(_PROGRAM)
    command = ["cc", "-Wall", "-Werror", f"-I{net}", "main.c", net / "model.so", "-o", "main"]
    subprocess.run([*command, f"-Wl,-rpath,{net}"], cwd=tmp_path, check=True)
    ran = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True)
    x = (np.float32(0.01) * np.arange(288, dtype=np.float32)).reshape(2, 3, 6, 8)
    right = run_onnxruntime(path, {"x": x})[0].reshape(-1)
    np.testing.assert_allclose([float(line) for line in ran.stdout.split()], right, rtol=1e-4)
