"""Libraries for other processors: made here, and run by qemu; called from C on AArch64."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from network.compiled import run_onnxruntime, small_model
from network_models import resnet18
from planish.core import PlanishError, ProgramError, TargetError
from planish.levels.loops.codegen.llvm import jit
from planish.network.compiler import compile_model
from planish.network.library.assembly import Built
from planish.network.verification import Answers, emulated_answers


def needs(*tools: str) -> pytest.MarkDecorator:
    """Skip a test where a tool is missing."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@needs("qemu-aarch64")
def test_networks_for_aarch64_are_verified_by_qemu(tmp_path: Path) -> None:
    said = list[str]()
    path = resnet18(tmp_path / "m.onnx", 32, 8)
    found = compile_model(path, output=tmp_path / "net", target="aarch64", cores=2, on_progress=said.append)
    assert said[-1].startswith("verified under qemu-aarch64: differs")
    assert 0 <= found.difference <= 1e-5
    manifest = json.loads((tmp_path / "net" / "manifest.json").read_text())
    assert manifest["target"]["processor"] == "aarch64"
    with pytest.raises(TargetError, match="another processor"):
        _ = found.network


@needs("qemu-aarch64")
def test_wrong_answers_of_another_processor_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def zeroed(built: Built, qemu: str) -> Answers:
        return emulated_answers(replace(built, weights=memoryview(bytes(len(built.weights)))), qemu)

    monkeypatch.setattr("planish.network.verification.emulated_answers", zeroed)
    with pytest.raises(ProgramError, match="differs from ONNX Runtime's"):
        compile_model(small_model(tmp_path / "m.onnx"), output=tmp_path / "net", target="aarch64")
    assert not (tmp_path / "net").exists()


@needs("qemu-aarch64", "aarch64-linux-gnu-gcc")
def test_library_for_aarch64_is_called_from_c(tmp_path: Path) -> None:
    path, net = small_model(tmp_path / "m.onnx"), tmp_path / "net"
    compile_model(path, output=net, target="aarch64", cores=2)
    source = Path(__file__).parents[3] / "examples" / "network" / "main.c"
    command = ["aarch64-linux-gnu-gcc", f"-I{net}", source, net / "model.so", "-o", tmp_path / "main"]
    subprocess.run([*command, f"-Wl,-rpath,{net}"], check=True)
    run = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", tmp_path / "main"]
    lines = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
    right = run_onnxruntime(path, {"x": np.ones((1, 3, 8, 8), np.float32)})[0].reshape(-1)
    np.testing.assert_allclose([float(each) for each in lines[1:]], right[:4], rtol=1e-5)


@pytest.mark.skipif(not jit.host_machine().triple.startswith("x86_64"), reason="they are of x86-64")
def test_older_processors_of_the_same_architecture(tmp_path: Path) -> None:
    said = list[str]()
    path = small_model(tmp_path / "m.onnx")
    compile_model(path, output=tmp_path / "net", target="x86-64", on_progress=said.append)
    assert said[-1].startswith("verified: differs")


def test_schedules_are_verified_here_where_nothing_emulates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = list[str]()
    path = small_model(tmp_path / "m.onnx")
    compile_model(path, output=tmp_path / "net", target="aarch64", on_progress=said.append)
    assert said[-1].startswith("verified by its schedules on this machine: differs")


def test_what_another_processor_cannot_have(tmp_path: Path) -> None:
    path = small_model(tmp_path / "m.onnx")
    with pytest.raises(TargetError, match="cannot be tuned on this machine"):
        compile_model(path, output=tmp_path / "net", target="aarch64", seconds=5)
    with pytest.raises(PlanishError, match="pdp11"):
        compile_model(path, output=tmp_path / "net", target="pdp11")
