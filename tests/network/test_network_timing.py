"""Timing of a library and of ONNX Runtime in one process."""

from __future__ import annotations

import hashlib
import shutil
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from network.compiled import compiled, small_model
from planish.core import Candidate, Measured
from planish.network.timing import NetworkSpec, Runtime


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("net")
    made = compiled(small_model(folder / "model.onnx")).network
    for file in made.folder.iterdir():
        shutil.copy(file, folder)
    np.savez(folder / "feed.npz", *(np.ones(p["shape"], p["dtype"]) for p in made.manifest["inputs"]))
    return folder


@pytest.mark.parametrize("runtime", ["planish", "onnxruntime"])
def test_a_runtime_is_timed_when_other_threads_have_stopped(folder: Path, runtime: str) -> None:
    evaluator, began = NetworkSpec(str(folder))(), threading.Event()

    def work() -> None:
        data, end = bytes(1 << 22), time.monotonic() + 0.2
        began.set()
        while time.monotonic() < end:
            hashlib.sha256(data)  # releases the lock of the interpreter for some milliseconds

    thread, alive = threading.Thread(target=work), list[bool]()

    @contextmanager
    def clock(stage: str) -> Generator[None]:
        alive.append(stage == "run" and thread.is_alive())
        yield

    thread.start()
    began.wait()
    assert isinstance(evaluator.evaluate(Candidate((Runtime(runtime),)), clock), Measured)
    assert alive == [False]
