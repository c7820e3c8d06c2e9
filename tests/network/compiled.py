"""Compiling of a test's model, and comparing of its answers with ONNX Runtime's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from network_models import ModelWriter
from planish.levels.graph.source import read_model
from planish.levels.loops.backends import this_machine
from planish.network.compiler import Compilation, compile_model
from planish.network.fusion import FusedKernel
from planish.network.ir import Network
from planish.network.library.assembly import Built, build
from planish.network.library.files import write_library
from planish.network.library.runtime import CompiledNetwork
from planish.network.placing import place_tensors
from planish.network.python_kernels.program import PythonKernel
from planish.network.reader import read_network
from planish.network.rewrites.pipeline import rewrite, rewrite_layouts
from planish.network.tuning import DefaultTimes
from planish.network.verification import TOLERANCE


def compiled(
    path: Path, *, fuse: bool = True, shape: str = "", tolerance: float | None = None
) -> Compilation:
    """Compile a model without tuning and timing."""
    return compile_model(path, output=None, measures=False, fuse=fuse, shape=shape, tolerance=tolerance)


def operators(found: Compilation) -> list[str]:
    """List the operators of each kernel."""
    return [layer["operators"] for layer in found.network.manifest["layers"]]


def assert_same(network: CompiledNetwork, path: Path, seed: int = 1) -> None:
    """Compare with ONNX Runtime on inputs that the compilation did not see."""
    draw = np.random.default_rng(seed)
    feed: dict[str, NDArray[Any]] = {}
    for port in network.manifest["inputs"]:
        whole = port["dtype"] != "float32"
        values = draw.integers(0, 2, port["shape"]) if whole else 3 * draw.standard_normal(port["shape"])
        feed[port["name"]] = np.asarray(values, port["dtype"])
    found = network(**feed)
    for mine, right in zip(
        found if isinstance(found, tuple) else (found,), run_onnxruntime(path, feed), strict=True
    ):
        assert mine.shape == right.shape
        scale = max(1e-30, float(np.abs(right[np.isfinite(right)]).max(initial=0)))
        np.testing.assert_allclose(mine / scale, right / scale, rtol=0, atol=2e-5)


def small_model(path: Path) -> Path:
    """Write a convolution with what follows it."""
    w = ModelWriter()
    x = w.add("Relu", w.conv(w.input("x", (1, 3, 8, 8)), 3, 8, 3))
    return w.save(path, w.add("GlobalAveragePool", x))


def run_onnxruntime(path: Path, feed: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Run a model without optimizations."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return [np.asarray(each) for each in session.run(None, dict(feed))]


def laid_out(path: Path) -> Network:
    """Read a model, with its layouts."""
    return rewrite_layouts(read_network(read_model(path, {}))[0])


def built_library(path: Path, cores: int = 1) -> Built:
    """Compile a model by default schedules; threads share all loops that can be, whether it pays or not."""
    return built_network(rewrite(laid_out(path), TOLERANCE, this_machine(cores)), cores)


def built_network(network: Network, cores: int) -> Built:
    """Compile a network likewise, as it is rewritten."""
    return built_with(*place_tensors(network), cores)


def built_with(network: Network, kernels: Sequence[FusedKernel | PythonKernel], cores: int) -> Built:
    """Compile the kernels of a network likewise."""
    target = this_machine(cores)
    return build(network, kernels, DefaultTimes(target).schedules(kernels), target)


def shared_library(path: Path, folder: Path, cores: int) -> CompiledNetwork:
    """Make the library of `built_library`."""
    folder.mkdir()
    write_library(built_library(path, cores), folder)
    return CompiledNetwork(folder)
