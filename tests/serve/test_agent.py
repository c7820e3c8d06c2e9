"""The agent of the examples, which starts the service and improves programs by its tools."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from serve.test_exploits import LOOPS, SUM

pytest.importorskip("mcp", reason="needs mcp: pip install 'planish[serve]'")

ROOT = Path(__file__).parents[2]


def improved(folder: Path, *words: str, evaluations: int) -> str:
    """Run the agent; return what it says."""
    ended = subprocess.run(
        [sys.executable, "examples/agent/agent.py", *words, "--store", str(folder / "planish.db")],
        cwd=ROOT,
        env={**os.environ, "AGENT_EVALUATIONS": str(evaluations)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def values(said: str) -> list[float]:
    """Return the values of the candidates that were better than those before."""
    return [float(each) for each in re.findall(r"candidates: \w+ (\S+)", said)]


@pytest.mark.slow
def test_a_pass_list(tmp_path: Path) -> None:
    (tmp_path / "sum.ll").write_text(SUM)
    said = improved(tmp_path, str(tmp_path / "sum.ll"), evaluations=30)
    found = values(said)
    assert found == sorted(found, reverse=True)
    assert found[-1] < 14  # as it is
    assert re.search("smaller|baseline", said)


@pytest.mark.slow
def test_a_schedule(tmp_path: Path) -> None:
    words = ["--size", "m=32,n=32,k=32", "--space", "marked-steps", "--compare-seconds", "1"]
    said = improved(tmp_path, LOOPS, *words, evaluations=9)
    assert said.startswith("loops: C[m, n] +=")
    assert len(said.splitlines()) >= 2  # whether one of nine is faster is up to the machine


@pytest.mark.slow
def test_a_stablehlo_module(tmp_path: Path) -> None:
    pytest.importorskip("iree.compiler", reason="the level hlo is not installed")
    said = improved(tmp_path, "examples/hlo/regression.mlir", "--compare-seconds", "1", evaluations=3)
    assert said.startswith("hlo: // @main")
    assert len(said.splitlines()) >= 2
