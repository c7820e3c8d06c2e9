"""Threads of a library: answers, calls at the same time, and children of a process."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import planish
from network.compiled import assert_same, compiled, shared_library, small_model
from network_models import resnet18
from planish.core.cores import usable_cores
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


def test_more_threads_than_cores(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planish.levels.loops.backends.usable_cores", lambda: 9)
    assert_same(shared_library(model, tmp_path / "net", 9), model)


def test_kernels_that_do_not_pay_run_on_one_core(tmp_path: Path) -> None:
    path = small_model(tmp_path / "m.onnx")
    assert_same(planish.compile(path, cores=2), path)
    assert compiled(path).network.manifest["cores"] == 1
