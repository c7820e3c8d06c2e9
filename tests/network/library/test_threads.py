"""Threads of a library: answers, calls at the same time, and children of a process."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

import planish
from network.compiled import assert_same, compiled, shared_library, small_model
from network_models import ModelWriter, resnet18
from planish.core.task import usable_cores
from planish.network.library.runtime import CompiledNetwork

pytestmark = pytest.mark.skipif(usable_cores() < 2, reason="this process may use one core")
SHAPE = (1, 3, 64, 64)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return resnet18(tmp_path_factory.mktemp("model") / "m.onnx", SHAPE[2], 32)


@pytest.fixture(scope="module")
def net(model: Path) -> CompiledNetwork:
    return shared_library(model, model.parent / "net", 2)


def inputs(count: int) -> list[np.ndarray]:
    return [np.random.default_rng(i).standard_normal(SHAPE).astype(np.float32) for i in range(count)]


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_answers_are_right_and_always_the_same(model: Path, net: CompiledNetwork) -> None:
    assert net.manifest["cores"] == 2
    shared = [layer["operators"] for layer in net.manifest["layers"] if layer["cores"] == 2]
    assert "Conv+Relu" in shared
    assert "WinogradInput" in shared
    assert_same(net, model)
    (x,) = inputs(1)
    first = net(x)
    assert all(np.array_equal(net(x), first) for _ in range(50))


def test_calls_of_eight_threads_share_one_team(net: CompiledNetwork) -> None:
    many = inputs(8)
    alone = [net(x) for x in many]
    before = threads()
    with ThreadPoolExecutor(8) as pool:
        for found, right in zip(pool.map(net, many * 20), alone * 20, strict=True):
            assert np.array_equal(found, right)
    # The system removes threads a moment after they have ended.
    end = time.monotonic() + 10
    while threads() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threads() <= before


def test_child_of_a_process_makes_its_own_threads(net: CompiledNetwork) -> None:
    many = inputs(4)
    alone = [net(x) for x in many]
    child = os.fork()
    if not child:
        right = all(np.array_equal(net(x), found) for x, found in zip(many, alone, strict=True))
        os._exit(0 if right and threads() == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are placed by Linux's system calls")
@pytest.mark.parametrize("is_alone", [False, True], ids=["all processors", "one processor"])
def test_the_other_thread_is_kept_off_the_processor_of_the_calling_one(
    net: CompiledNetwork, *, is_alone: bool
) -> None:
    (x,) = inputs(1)
    child = os.fork()
    if not child:
        usable = os.sched_getaffinity(0)
        if is_alone:
            os.sched_setaffinity(0, {min(usable)})
        net(x)
        (other,) = {int(each.name) for each in Path("/proc/self/task").iterdir()} - {os.getpid()}
        wanted = 1 if is_alone else len(usable) - 1
        end = time.monotonic() + 10
        while len(os.sched_getaffinity(other)) != wanted and time.monotonic() < end:
            net(x)  # at the first call the other thread may not have begun
        os._exit(0 if len(os.sched_getaffinity(other)) == wanted else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.slow
def test_more_threads_than_cores(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planish.levels.loops.backends.usable_cores", lambda: 9)
    assert_same(shared_library(model, tmp_path / "net", 9), model)


def python_kernels(path: Path) -> Path:
    """Write a model of large Python kernels, of each function whose loops are divided."""
    w = ModelWriter()
    x, wide = w.input("x", (64, 1024)), w.input("wide", (1, 8, 64, 128))
    whole = w.add("Cast", w.add("Mul", x, w.number(4)), to=TensorProto.INT64)
    index = w.add("Mod", whole, w.constant(np.array(64)))
    found = [w.add("Floor", x), w.add("Mod", x, w.number(0.75), fmod=1), w.add("Add", whole, index)]
    found += [w.add("Where", w.add("Less", x, w.number(0)), whole, index)]
    found += [w.add("Transpose", whole, perm=[1, 0]), w.add("Concat", whole, index, axis=1)]
    found += [w.add("Gather", whole, w.add("ArgMax", x, axis=0, keepdims=0), axis=0)]
    found += [w.add("GatherElements", x, index, axis=0)]
    found += [w.add("GatherND", x, w.add("Unsqueeze", index, w.whole(2)))]
    found += [w.add("OneHot", w.add("ArgMax", x, axis=0), w.whole(64), w.constant(np.array([0, 3])))]
    found += [w.add("CumSum", x, w.constant(np.array(axis))) for axis in (0, 1)]
    found += [w.add("ReduceSum", w.add("Reshape", whole, w.whole(8192, 2, 4)), w.whole(1))]
    found += [w.add("Trilu", x), *w.add("MaxPool", wide, kernel_shape=[2, 2], count=2)]
    sizes = w.constant(np.array([1, 1, 1.5, 1.5], np.float32))
    return w.save(path, *found, w.add("Resize", wide, "", sizes, mode="linear"))


@pytest.mark.slow
def test_loops_of_python_kernels_are_divided(tmp_path: Path) -> None:
    path = python_kernels(tmp_path / "m.onnx")
    net, alone = shared_library(path, tmp_path / "net", 2), shared_library(path, tmp_path / "alone", 1)
    divided = {layer["kernel"].split("_")[1] for layer in net.manifest["layers"] if layer["cores"] == 2}
    assert {"floor", "onehot", "cumsum", "resizeaxis", "gathernd", "copy", "join"} <= divided
    assert_same(net, path)
    feed = [
        np.random.default_rng(i).standard_normal(port["shape"]).astype(np.float32)
        for i, port in enumerate(net.manifest["inputs"])
    ]
    for mine, right in zip(net(*feed), alone(*feed), strict=True):
        assert np.array_equal(mine, right)


@pytest.mark.slow(after=3)
@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize(("direction", "batch"), [("bidirectional", 1), ("forward", 3)])
def test_directions_and_sequences_are_divided(
    tmp_path: Path, operator: str, direction: str, batch: int
) -> None:
    w = ModelWriter()
    x, start = w.input("x", (40, batch, 16)), w.input("start", (2 if batch == 1 else 1, batch, 64))
    gates, count = {"LSTM": (4, 3), "GRU": (3, 2), "RNN": (1, 2)}[operator]
    n = 2 if batch == 1 else 1
    weights = w.weight(n, gates * 64, 16), w.weight(n, gates * 64, 64), w.weight(n, 2 * gates * 64)
    outputs = w.add(operator, x, *weights, "", start, hidden_size=64, direction=direction, count=count)
    path = w.save(tmp_path / "m.onnx", *outputs)
    net = shared_library(path, tmp_path / "net", 2)
    assert operator in {layer["operators"] for layer in net.manifest["layers"] if layer["cores"] == 2}
    for seed in range(3):
        assert_same(net, path, seed)


def test_kernels_that_do_not_pay_run_on_one_core(tmp_path: Path) -> None:
    path = small_model(tmp_path / "m.onnx")
    assert_same(planish.compile(path, cores=2), path)
    assert compiled(path).network.manifest["cores"] == 1
