"""Libraries beside kernels on a GPU, and the clocks that the driver's tool prints."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from planish.core import Candidate, Failed, Target
from planish.levels.loops.backends import Library
from planish.levels.loops.gpu.clocks import FIELDS, TOOL, read_clocks, record_clocks
from planish.levels.loops.gpu.evaluator import GpuEvaluator
from planish.levels.loops.gpu.libraries import Convolution, Product, has_library, library_call
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.workloads import RESNET18, convolution, depthwise
from planish.measure.executors import InlineExecutor


@pytest.mark.parametrize(
    ("text", "equation"),
    [
        ("C[m,n] += A[m,k] * B[k,n]", "ab,bc->ac"),
        ("S[h,m,n] += A[h,m,k] * B[h,n,k]", "abc,adc->abd"),
        ("S[m] += A[m,n]", "ab->a"),
    ],
)
def test_products_are_those_of_einsum(text: str, equation: str) -> None:
    program = parse(
        text, {"m": 4, "n": 5, **({"k": 6} if "k" in text else {}), **({"h": 2} if "h" in text else {})}
    )
    found = library_call(program)
    assert isinstance(found, Product)
    assert found.equation == equation
    inputs = make_inputs(program)
    result = np.einsum(found.equation, *(inputs[name] for name in found.operands))
    assert result.shape == program.type[program.outputs[0]].shape


@pytest.mark.parametrize("name", sorted(RESNET18))
def test_convolutions_are_those_of_conv2d(name: str) -> None:
    _, _, _, kernel, stride = RESNET18[name]
    assert library_call(convolution(*RESNET18[name])) == Convolution("I", "W", stride, kernel // 2, False)


def test_depthwise_convolutions_have_a_group_for_each_channel() -> None:
    assert library_call(depthwise(28, 8, 3, 2)) == Convolution("I", "W", 2, 1, True)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("C[m,n] += A[m,k] * B[k,n]; D[m,n] = relu(C[m,n])", {"A": (4, 5), "B": (5, 6)}),
        ("C[m,n] max= A[m,k] * B[k,n]", {"A": (4, 5), "B": (5, 6)}),
        ("C[m,n] += exp(A[m,k]) * B[k,n]", {"A": (4, 5), "B": (5, 6)}),
        ("C[m] += A[m+k] * B[k]", {"A": (8,), "B": (3,)}),
        # Other paddings, and other strides along rows than along columns.
        ("O[k,y,x] += pad(I[c,y+r-1,x+s], 0) * W[k,c,r,s]", {"I": (2, 8, 8), "W": (3, 2, 3, 3)}),
        ("O[k,y,x] += I[c,2*y+r,x+s] * W[k,c,r,s]", {"I": (2, 9, 8), "W": (3, 2, 3, 3)}),
        ("O[k,y,x] += pad(I[c,y+r-1,x+s-1], 1) * W[k,c,r,s]", {"I": (2, 8, 8), "W": (3, 2, 3, 3)}),
    ],
)
def test_other_programs_have_no_call(text: str, shapes: dict[str, tuple[int, ...]]) -> None:
    assert library_call(parse(text, {}, shapes)) is None


def test_a_library_that_cannot_be_called_is_a_failure_of_its_own() -> None:
    """It is not installed, or made for processors alone, or there is no GPU."""
    if _has_gpu():
        pytest.skip("PyTorch finds a CUDA GPU")
    program = parse("S[m] += A[m,n]", {"m": 4, "n": 5})
    evaluator = GpuEvaluator(program, Target("", toolchain={"backend": "cuda:sm_90"}))
    with InlineExecutor(evaluator) as executor:
        executor.submit([Candidate((Library("torch"),))])
        (evaluation,) = executor.results()
    assert isinstance(evaluation.outcome, Failed)
    assert evaluation.outcome.reason == "TargetError"
    missing = "library 'torch' has no call for this program, or is not installed"
    expected = "PyTorch finds no CUDA GPU" if has_library("torch") else missing
    assert expected in evaluation.outcome.detail


def _has_gpu() -> bool:
    return has_library("torch") and bool(import_module("torch").cuda.is_available())


def test_clocks_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / TOOL
    tool.write_text("#!/bin/sh\necho '1755 MHz, 1980 MHz, 2619 MHz, 45, 120.00 W, 0x0000000000000004'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    gpu, processor = (Target("", toolchain={"backend": kind}) for kind in ("cuda:sm_90", "opencl"))
    path = tmp_path / "clocks.jsonl"
    assert record_clocks(path, gpu) == ["clock 1755 MHz of 1980 MHz, 45 C"]
    assert record_clocks(path, processor) == []
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["clocks.max.sm"] == "1980 MHz"
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert read_clocks() == {}
    assert len(FIELDS) == 6
