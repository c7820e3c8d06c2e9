"""PyTorch's compiler as a peer: a model's file as a module that Inductor compiles ahead of time.

The processes in which networks are timed start no programs, as `torch.compile` does at the first call. So the
module is compiled before, by the same compiler, to a package that these processes load.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from planish.network.ir import Array
from planish.sandbox.tool import run_tool

COMPILE_S = 300.0
"""Seconds that the compilation may take."""
_PACKAGES = ("torch", "onnx2torch")


def has_torch() -> bool:
    """Return whether PyTorch is installed, and what makes modules of ONNX models."""
    return all(find_spec(name) is not None for name in _PACKAGES)


def compile_package(model: Path, feed: Path, package: Path, cores: int) -> str:
    """Compile a model for inputs in a process of its own; return why that fails, or nothing.

    Args:
        model: an ONNX file.
        feed: an `.npz` file of its inputs, in their order.
        package: the file to write, whose name ends with `.pt2`.
        cores: threads of the code.
    """
    command = [sys.executable, "-m", __name__, str(model), str(feed), str(package), str(cores)]
    try:
        ran = run_tool(command, seconds=COMPILE_S)
    except TimeoutError:
        return f"its compilation does not end within {COMPILE_S:g} s"
    lines = [line for line in ran.message.splitlines() if line.strip()]
    return "" if ran.code == 0 else (lines or ["its compiler ends without a message"])[-1]


def load_package(package: Path, inputs: Sequence[Array], cores: int) -> Callable[[], object]:
    """Load what `compile_package` wrote; return what runs it on inputs."""
    torch: Any = import_module("torch")
    torch.set_num_threads(cores)
    run = import_module("torch._inductor").aoti_load_package(str(package))
    tensors = [torch.from_numpy(each) for each in inputs]

    def call() -> object:
        with torch.inference_mode():
            return run(*tensors)

    return call


def _compile(model: str, feed: str, package: str, cores: str) -> None:
    torch: Any = import_module("torch")
    torch.set_num_threads(int(cores))
    with np.load(feed) as loaded:
        inputs = tuple(torch.from_numpy(loaded[name]) for name in loaded.files)
    module = import_module("onnx2torch").convert(model).eval()
    inductor: Any = import_module("torch._inductor")
    config: Any = import_module("torch._inductor.config")
    config.freezing = True  # weights are constants, as they are in the library
    with torch.inference_mode():
        exported = torch.export.export(module, inputs)
        inductor.aoti_compile_and_package(exported, package_path=package)


if __name__ == "__main__":
    _compile(*sys.argv[1:])
