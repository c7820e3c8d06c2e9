"""Whole networks: answers, calls from threads, and what is refused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, numpy_helper
from onnx.external_data_helper import set_external_data

import planish
from amounts import examples
from network.compiled import assert_same, compiled, operators, small_model
from network_models import ModelWriter, bert, dcgan, densenet, magika, mobilenet, resnet18, silero
from planish.core import PlanishError, ProgramError
from planish.levels.graph.source import read_model
from planish.network.compiler import compile_model
from planish.network.fusion import FusedKernel, kernels_of
from planish.network.library import arena as memory
from planish.network.library.runtime import CompiledNetwork
from planish.network.reader import read_network
from planish.network.verification import float64_answers


@pytest.mark.parametrize(
    "write",
    [
        partial(resnet18, size=32, width=8),
        partial(mobilenet, size=32, blocks=((1, 16, 1, 1), (6, 24, 2, 2))),
        partial(bert, layers=1, width=32, heads=2, length=10),
        dcgan,
        partial(silero, hidden=16),
        partial(magika, length=64, width=8, kinds=7),
    ],
    ids=["resnet", "mobilenet", "bert", "dcgan", "silero", "magika"],
)
def test_networks(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    path = write(tmp_path / "m.onnx")
    assert_same(compiled(path).network, path)


@st.composite
def networks(draw: st.DrawFn) -> tuple[ModelWriter, tuple[str, ...]]:
    """Draw a network of images: branches that meet again, shared weights, several outputs, odd shapes."""
    w = ModelWriter(draw(st.integers(0, 1000)))
    n, c, h, v = (draw(st.integers(1, k)) for k in (2, 9, 9, 9))
    values = [(w.input("x", (n, c, h, v)), (n, c, h, v))]
    for _ in range(draw(st.integers(1, 7))):
        x, (n, c, h, v) = draw(st.sampled_from(values))
        kind = draw(
            st.sampled_from(["conv", "depthwise", "pool", "act", "swish", "add", "concat", "turn", "mean"])
        )
        if kind == "conv":
            outer, size, stride = (
                draw(st.integers(1, 9)),
                draw(st.sampled_from([1, 3])),
                draw(st.integers(1, 2)),
            )
            made = w.conv(x, c, outer, size, stride), (n, outer, -(-h // stride), -(-v // stride))
        elif kind == "depthwise":
            made = w.conv(x, c, c, 3, 1, c), (n, c, h, v)
        elif kind == "pool":
            made = w.add("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), (n, c, h, v)
        elif kind == "act":
            made = w.add(draw(st.sampled_from(["Relu", "Tanh", "Sigmoid"])), x), (n, c, h, v)
        elif kind == "swish":
            made = w.add("Mul", x, w.add("Sigmoid", x)), (n, c, h, v)
        elif kind == "add":
            others = [name for name, shape in values if shape == (n, c, h, v)]
            made = w.add("Add", x, draw(st.sampled_from([*others, w.weight(c, 1, 1)]))), (n, c, h, v)
        elif kind == "concat":
            made = w.add("Concat", x, x, axis=1), (n, 2 * c, h, v)
        elif kind == "turn":
            made = w.add("Transpose", x, perm=[0, 1, 3, 2]), (n, c, v, h)
        else:
            made = w.add("ReduceMean", x, axes=[1], keepdims=1), (n, 1, h, v)
        values.append(made)
    names = list(dict.fromkeys([values[-1][0], draw(st.sampled_from(values[1:]))[0]]))
    return w, tuple(names)


@pytest.mark.slow
@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=networks(), fuse=st.booleans())
def test_random_networks(tmp_path: Path, drawn: tuple[ModelWriter, tuple[str, ...]], fuse: bool) -> None:
    w, outputs = drawn
    path = w.save(tmp_path / "m.onnx", *outputs)
    assert_same(compiled(path, fuse=fuse).network, path)


@given(
    st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20)
)
def test_memory_of_tensors_that_live_at_once_is_apart(drawn: list[tuple[int, int, int]]) -> None:
    lives = [memory.Lifetime(str(i), n, a, max(a, b)) for i, (n, a, b) in enumerate(drawn)]
    arena = memory.plan_arena(lives)
    for one in lives:
        assert arena.offsets[one.name] % memory.ALIGNMENT == 0
        assert arena.offsets[one.name] + one.size <= arena.size
        for other in lives:
            if one.name < other.name and one.first <= other.last and other.first <= one.last:
                a, b = arena.offsets[one.name], arena.offsets[other.name]
                assert a + one.size <= b or b + other.size <= a
    assert arena.least <= arena.size


def test_workspace_is_little_more_than_tensors_need_at_a_time(tmp_path: Path) -> None:
    network, _ = read_network(read_model(densenet(tmp_path / "m.onnx", growth=8), {}))
    kernels, last = kernels_of(network), dict[str, int]()
    for index, kernel in enumerate(kernels):
        last |= dict.fromkeys(map(network.root, kernel.operands.values()), index)
    lives = [
        memory.Lifetime(name, network.types[name].bytes, index, last[name])
        for index, kernel in enumerate(kernels)
        if isinstance(kernel, FusedKernel) and (name := kernel.output) in last
    ]
    arena = memory.plan_arena(lives)
    assert arena.size <= 1.1 * arena.least


def test_threads_may_call_one_library_at_once(tmp_path: Path) -> None:
    net = planish.compile(resnet18(tmp_path / "m.onnx", 32, 8))
    inputs = np.random.default_rng(0).standard_normal((16, 1, 3, 32, 32)).astype(np.float32)
    alone = [net(x) for x in inputs]
    with ThreadPoolExecutor(8) as threads:
        for found, right in zip(threads.map(net, inputs), alone, strict=True):
            assert np.array_equal(found, right)


def test_equal_layers_share_a_kernel_and_weights(tmp_path: Path) -> None:
    w = ModelWriter()
    x, weights = w.input("x", (1, 8, 9, 9)), w.weight(8, 8, 3, 3)
    for _ in range(5):
        x = w.add("Relu", w.add("Conv", x, weights, pads=[1, 1, 1, 1]))
    found = compiled(w.save(tmp_path / "m.onnx", x))
    # The first and the last convert the layout besides.
    assert found.kernels == 3
    assert len({layer["kernel"] for layer in found.network.manifest["layers"]}) == 3
    assert found.network.manifest["weights_bytes"] <= 3 * 8 * 8 * 3 * 3 * 4


def test_folder_is_read_again(tmp_path: Path) -> None:
    path = small_model(tmp_path / "m.onnx")
    planish.compile(path, output=tmp_path / "net")
    assert sorted(each.name for each in (tmp_path / "net").iterdir()) == [
        "manifest.json",
        "model.h",
        "model.so",
    ]
    assert_same(CompiledNetwork(tmp_path / "net"), path)


def test_folder_is_written_again_while_its_library_is_loaded(tmp_path: Path) -> None:
    x = np.ones((1, 3, 8, 8), np.float32)
    networks = list[CompiledNetwork]()
    for factor in (2.0, 3.0, 3.0):
        w = ModelWriter()
        path = w.save(
            tmp_path / "m.onnx", w.add("Mul", w.input("x", x.shape), w.constant(np.array(factor, np.float32)))
        )
        networks.append(planish.compile(path, output=tmp_path / "net"))
    assert [float(net(x).max()) for net in networks] == [2.0, 3.0, 3.0]


@pytest.mark.slow
def test_tuned_kernels_are_taken_from_the_store(tmp_path: Path) -> None:
    path, store = small_model(tmp_path / "m.onnx"), tmp_path / "a.db"
    seconds = 3.0
    while not store.exists() or not planish.runs(store=store):  # a machine may be slow
        net = planish.compile(path, seconds=seconds, store=store)
        assert_same(net, path)
        seconds *= 3


def test_open_shapes_are_given(tmp_path: Path) -> None:
    w = ModelWriter()
    path = w.save(tmp_path / "m.onnx", w.add("Relu", w.conv(w.input("x", ("n", 3, "h", 8)), 3, 4, 3)))
    with pytest.raises(ProgramError, match="open shape"):
        planish.compile(path)
    net = planish.compile(path, shape={"x": (2, 3, 5, 8)})
    assert net.manifest["outputs"][0]["shape"] == [2, 4, 5, 8]
    assert_same(net, path)


def test_wrong_arrays_are_refused(tmp_path: Path) -> None:
    net = planish.compile(small_model(tmp_path / "m.onnx"))
    x = np.zeros((1, 3, 8, 8), np.float32)
    for wrong in ((), (x, x), (x[0],), (x.astype(np.float64),)):
        with pytest.raises(ProgramError):
            net(*wrong)
    with pytest.raises(ProgramError):
        net(y=x)


def test_library_that_differs_is_not_written(tmp_path: Path) -> None:
    path = resnet18(tmp_path / "m.onnx", 32, 8)
    with pytest.raises(ProgramError, match="differs from ONNX Runtime's"):
        planish.compile(path, output=tmp_path / "net", tolerance=1e-12)
    assert not (tmp_path / "net").exists()


def test_rounding_that_a_network_amplifies_is_no_mistake(tmp_path: Path) -> None:
    w = ModelWriter()
    far = w.constant(np.full(4, 30000, np.float32))
    x = w.add("Conv", w.input("x", (1, 3, 6, 6)), w.weight(4, 3, 3, 3), far)
    ones, zeros = w.constant(np.ones(4, np.float32)), w.constant(np.zeros(4, np.float32))
    # Optimizations compute the bias and the mean, whose difference is 0, before they are added.
    path = w.save(tmp_path / "m.onnx", w.add("BatchNormalization", x, ones, zeros, far, ones))
    facts = planish.compile(path, output=tmp_path / "net").manifest
    assert facts["difference"] > facts["tolerance"]


def test_types_that_are_not_covered_are_refused(tmp_path: Path) -> None:
    w = ModelWriter()
    path = w.save(
        tmp_path / "m.onnx", w.add("Cast", w.input("x", (3,), TensorProto.BFLOAT16), to=TensorProto.FLOAT)
    )
    with pytest.raises(ProgramError, match="bfloat16, which is not covered"):
        planish.compile(path)


def test_float16_is_read_and_written_exactly(tmp_path: Path) -> None:
    w = ModelWriter()
    wide = w.add("Cast", w.input("x", (1 << 16,), TensorProto.FLOAT16), to=TensorProto.FLOAT)
    made = w.model(wide, w.add("Cast", w.input("y", (1 << 14,)), to=TensorProto.FLOAT16))
    made.graph.output[1].type.tensor_type.elem_type = TensorProto.FLOAT16
    onnx.save(made, tmp_path / "m.onnx")
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    draw = np.random.default_rng(0)
    y = draw.standard_normal(1 << 14) * 10.0 ** draw.uniform(-9, 6, 1 << 14)
    ties = x[: 1 << 10].astype(np.float32) + np.float32(2**-25)
    y = np.asarray([*y[: -len(ties) - 3], *ties, np.inf, -np.inf, 65520], np.float32)
    found, narrow = planish.compile(tmp_path / "m.onnx")(x, y)
    np.testing.assert_array_equal(found, x.astype(np.float32))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(narrow, y.astype(np.float16))


def test_models_of_float16_are_as_right_as_onnxruntime(tmp_path: Path) -> None:
    w = ModelWriter()
    weights = w.constant(np.random.default_rng(0).standard_normal((8, 16, 3, 3)).astype(np.float16))
    x = w.add("Conv", w.input("x", (1, 16, 9, 9), TensorProto.FLOAT16), weights)
    made = w.model(w.add("Tanh", x))
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    onnx.save(made, tmp_path / "m.onnx")
    net = planish.compile(tmp_path / "m.onnx")
    x = np.random.default_rng(1).standard_normal((1, 16, 9, 9)).astype(np.float16)
    exact = float64_answers(made, {"x": x})
    assert exact is not None
    assert np.abs(net(x) - exact[0]).max() <= 2**-11


def test_folder_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    path, said = small_model(tmp_path / "m.onnx"), list[str]()
    (tmp_path / "file").write_text("")
    for output in (tmp_path / "file", tmp_path / "file" / "net"):
        with pytest.raises(PlanishError, match=r"cannot write to .*is not a folder"):
            compile_model(path, output=output, on_progress=said.append)
    assert not said


def test_weights_that_are_missing(tmp_path: Path) -> None:
    w = ModelWriter()
    model = w.model(w.conv(w.input("x", (1, 3, 8, 8)), 3, 8, 3))
    onnx.save_model(model, tmp_path / "m.onnx", save_as_external_data=True, location="w", size_threshold=0)
    assert_same(planish.compile(tmp_path / "m.onnx"), tmp_path / "m.onnx")
    (tmp_path / "w").unlink()
    with pytest.raises(ProgramError, match=r"cannot read .*The weights of"):
        planish.compile(tmp_path / "m.onnx")


def test_weights_that_are_no_numbers(tmp_path: Path) -> None:
    w, weights = ModelWriter(), np.ones((4, 3, 3, 3), np.float32)
    weights[0, 0] = np.nan
    path = w.save(tmp_path / "m.onnx", w.add("Conv", w.input("x", (1, 3, 8, 8)), w.constant(weights)))
    with pytest.raises(ProgramError, match="is NaN in 9 of 108 elements"):
        planish.compile(path)


@pytest.mark.slow
def test_models_of_more_than_2_gib(tmp_path: Path) -> None:
    """Weights begin after 2 GiB of a file that is a hole: it takes no room on the disk."""
    w = ModelWriter()
    x = w.add("MatMul", w.input("x", (4, 300)), w.add("Transpose", w.weight(500, 300), perm=[1, 0]))
    shape = w.whole(2, 2, -1)
    model, offset = w.model(w.add("Add", w.add("Reshape", x, shape), w.weight(500))), 1 << 31
    whole = w.save(tmp_path / "whole.onnx", *(each.name for each in model.graph.output))
    with (tmp_path / "w").open("wb") as file:
        for tensor in model.graph.initializer:
            content = numpy_helper.to_array(tensor).tobytes()
            file.seek(offset)
            file.write(content)
            set_external_data(tensor, "w", offset, len(content))
            tensor.ClearField("raw_data")
            offset += len(content)
    onnx.save(model, tmp_path / "m.onnx")
    net = planish.compile(tmp_path / "m.onnx")
    assert_same(net, whole)
    # The weights are transposed when the model is read.
    assert [layer["operators"] for layer in net.manifest["layers"]] == ["MatMul", "Add"]


@pytest.mark.parametrize("kind", [TensorProto.BOOL, TensorProto.INT64])
def test_inputs_that_are_outputs(tmp_path: Path, kind: int) -> None:
    w = ModelWriter()
    x = w.input("x", (11,), kind)
    made = w.model(x, w.add("Relu", w.input("y", (2,))))
    made.graph.output[0].type.tensor_type.elem_type = kind
    onnx.save(made, tmp_path / "m.onnx")
    net, given = planish.compile(tmp_path / "m.onnx"), np.arange(11) % 3 > 0
    given = given.astype(net.manifest["inputs"][0]["dtype"])
    found, _ = net(given, np.ones(2, np.float32))
    assert np.array_equal(found, given)


def test_interrupted_tuning_is_resumed(tmp_path: Path) -> None:
    path, net = small_model(tmp_path / "m.onnx"), tmp_path / "net"
    command = [
        sys.executable,
        "-c",
        "from planish.cli.script import main; main()",
        "compile",
        path,
        "-o",
        net,
    ]
    command += ["--store", tmp_path / "a.db"]
    with subprocess.Popen([*command, "--seconds", "60"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "tuning for" not in process.stderr.readline():
            assert process.poll() is None
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 128 + signal.SIGINT
    assert "Run the same command" in rest
    assert not net.exists()
    assert len(planish.runs(store=tmp_path / "a.db")) == 1


def test_memory_does_not_grow(tmp_path: Path) -> None:
    planish.compile(small_model(tmp_path / "m.onnx"), output=tmp_path / "net")
    x = np.ones((1, 3, 8, 8), np.float32)

    def pages() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1])

    def use() -> None:
        net = CompiledNetwork(tmp_path / "net")
        for _ in range(200):
            net(x)

    use()
    before = pages()
    for _ in range(20):
        use()
    # Half a page for each library that was opened, and a thousandth of one for each call.
    assert pages() - before < 10


def test_manifest_says_how_far_answers_are_apart(tmp_path: Path) -> None:
    planish.compile(small_model(tmp_path / "m.onnx"), output=tmp_path / "net")
    facts = json.loads((tmp_path / "net" / "manifest.json").read_text())
    assert 0 <= facts["difference"] <= facts["tolerance"] == 1e-4


def test_images_keep_their_channels_last_through_moves(tmp_path: Path) -> None:
    w = ModelWriter()
    x = w.conv(w.input("x", (1, 3, 8, 6)), 3, 16, 3)
    a, b = w.add("Split", x, w.constant(np.array([6, 10], np.int64)), axis=1, count=2)
    up = w.add("ConvTranspose", b, w.weight(10, 5, 2, 2), w.weight(5), strides=[2, 2])
    down = w.add("ConvTranspose", w.add("Relu", x), w.weight(16, 4, 4, 4), strides=[2, 2], pads=[1] * 4)
    factors = w.constant(np.array([1, 1, 2, 2], np.float32))
    nearest: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    wide = w.add("Resize", a, "", factors, **nearest)
    # One of them is of the network's input, which is row-major.
    y = w.add("Concat", up, wide, down, w.add("Resize", "x", "", factors, **nearest), axis=1)
    y = w.add("Relu", w.add("Add", y, w.weight(1, 18, 16, 12)))
    path = w.save(tmp_path / "m.onnx", w.add("MatMul", y, w.weight(12, 4)), w.add("GlobalAveragePool", y))
    found = compiled(path)
    assert sum("Reorder" in each for each in operators(found)) == 2
    assert_same(found.network, path)


def test_what_is_repeated_once_is_a_view(tmp_path: Path) -> None:
    w = ModelWriter()
    x = w.add("Relu", w.input("x", (2, 3)))
    names = w.add("Expand", x, w.whole(1, 2, 1)), w.add("Tile", x, w.whole(1, 1))
    path = w.save(tmp_path / "m.onnx", *(w.add("Sigmoid", name) for name in names))
    assert not {"Expand", "Copy"}.intersection(operators(compiled(path)))
    path = w.save(tmp_path / "m.onnx", *names)
    assert_same(compiled(path).network, path)


def test_element_wise_operators_join_what_is_before_a_view(tmp_path: Path) -> None:
    w = ModelWriter()
    x, other = w.input("x", (4, 6)), w.input("other", (1, 4, 1, 5))
    shape = w.constant(np.array([1, 4, 1, 5], np.int64))
    y = w.add("Reshape", w.add("Gemm", x, w.weight(6, 5)), shape)
    y = w.add("Add", w.add("Tanh", y), w.weight(1, 5))
    y = w.add("Mul", y, w.add("Sigmoid", w.add("Max", other, y)))
    path = w.save(tmp_path / "m.onnx", y, w.add("ReduceMax", y, axes=[3]))
    found = compiled(path)
    assert operators(found) == ["Gemm+Tanh+Add+Max+Sigmoid+Mul", "ReduceMax"]
    assert_same(found.network, path)
