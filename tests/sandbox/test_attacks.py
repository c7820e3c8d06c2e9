"""Candidates of any level compute and write to their scratch folder, and do nothing else, in real workers."""

import os
import socket
from importlib.util import find_spec
from pathlib import Path

import pytest

from planish.core import Candidate, EvaluatorSpec, Measured, evaluate
from planish.core.registry import level_named
from planish.measure.executors import LocalExecutor
from planish.sandbox import linux
from planish.tuning.api import task_of
from planish.tuning.settings import Settings
from sandbox.attacks import Attacker, ProcessIds

pytestmark = pytest.mark.usefixtures("new_interpreters")
needs_all = pytest.mark.skipif(
    linux.abi() < linux.SCOPED or not linux.is_there(),
    reason="this kernel's Landlock knows no signals, or it has no seccomp",
)


def loops(folder: Path) -> tuple[EvaluatorSpec, Candidate]:
    del folder
    level = level_named("loops")
    task = task_of(level, level.load("C[m,n] += A[m,k] * B[k,n]", {"size": "m=8,n=8,k=8"}), Settings())
    return level.evaluator(task), Candidate()


def hlo(folder: Path) -> tuple[EvaluatorSpec, Candidate]:
    from levels.hlo.workloads import INFERENCE, PREDICT, task, write_all

    module = write_all(folder / "in", PREDICT, INFERENCE)
    return level_named("hlo").evaluator(task(module)), Candidate()


def graph(folder: Path) -> tuple[EvaluatorSpec, Candidate]:
    from levels.graph.models import convolutions, write

    level = level_named("graph")
    file = write(convolutions((1, 3, 8, 8)), folder / "net.onnx")
    wanted = Settings(objectives=("latency", "peak_memory"))
    return level.evaluator(task_of(level, level.load(str(file), {}), wanted)), Candidate()


def llvm(folder: Path) -> tuple[EvaluatorSpec, Candidate]:
    from levels.llvm.modules import COUNTED

    level = level_named("llvm")
    (folder / "counted.ll").write_text(COUNTED)
    wanted = Settings(objectives=("instructions",))
    task = task_of(level, level.load(str(folder / "counted.ll"), {}), wanted)
    return level.evaluator(task), Candidate()


LEVELS = {
    "llvm": (llvm, "llvmlite"),
    "loops": (loops, "numpy"),
    "hlo": (hlo, "jaxlib"),
    "graph": (graph, "onnxruntime"),
}


@pytest.mark.slow(after=2)
@needs_all
@pytest.mark.parametrize("name", LEVELS)
def test_a_candidate_that_attacks_reaches_nothing(name: str, tmp_path: Path) -> None:
    spec_of, library = LEVELS[name]
    if find_spec(library) is None:
        pytest.skip(f"no {library}")
    spec, candidate = spec_of(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("key")
    values = attacked(spec, candidate, secret)
    assert {what for what, done in values.items() if done} == {"scratch"}
    assert secret.read_text() == "key"


def attacked(spec: EvaluatorSpec, candidate: Candidate, secret: Path) -> dict[str, float]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        attacker = Attacker(spec, secret, port, os.getpid())
        with LocalExecutor(attacker, lock=secret.with_name("lock")) as executor:
            (answer,) = evaluate(executor, [candidate])
            assert isinstance(answer.outcome, Measured), answer.outcome
            assert not [note for note in executor.notes if "confined" in note]
    return dict(answer.outcome.values)


def test_another_sandbox_means_another_process(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    same, open_elsewhere = ProcessIds(), ProcessIds((str(other),))
    with LocalExecutor(same, lock=tmp_path / "lock") as executor:
        first = pid_of(executor)
        executor.serve(ProcessIds())
        assert pid_of(executor) == first
        executor.serve(open_elsewhere)
        assert pid_of(executor) != first


def pid_of(executor: LocalExecutor) -> float:
    (answer,) = evaluate(executor, [Candidate()])
    assert isinstance(answer.outcome, Measured), answer.outcome
    return answer.outcome.values["pid"]
