"""GPU schedules on an OpenCL device: a processor, by PoCL, and a simulator, Oclgrind."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from levels.loops.gpu.hanging import Hanging
from planish.cli import gpu_batches
from planish.core import Candidate, Failed, Measured, PlanishError, Step, TargetError, Task, rng
from planish.core.recording import load_recording
from planish.levels.loops.evaluator import Verifier
from planish.levels.loops.gpu import evaluator, opencl
from planish.levels.loops.gpu.batch import read_batch, write_batch
from planish.levels.loops.gpu.devices import Gpu
from planish.levels.loops.gpu.running import Launch
from planish.levels.loops.gpu.source import kernel_source
from planish.levels.loops.gpu.space import GpuSpace
from planish.levels.loops.gpu.steps import BlockTile, ReduceTile, SharedTile, VectorLanes
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.roofline import DeviceRoofline
from planish.measure.executors import InlineExecutor, LocalExecutor
from planish.sandbox import Limits
from planish.tuning.api import tune_program
from planish.tuning.settings import Budget

pytest.importorskip("pyopencl", reason="pyopencl is not installed")
if not any("pthread" in title or "cpu" in title for title in opencl.device_titles()):
    pytest.skip("there is no processor as an OpenCL device", allow_module_level=True)

LEVEL = LoopsLevel()
MATMUL = "C[m,n] += A[m,k] * B[k,n]"
TILED = (
    *(BlockTile("m", 4, 2), BlockTile("n", 4, 4), ReduceTile("k", 8)),
    *(SharedTile("A"), SharedTile("B"), VectorLanes("n")),
)


def task(text: str = MATMUL, **options: str) -> Task:
    program = LEVEL.load(text, {"backend": "opencl:portable", **options})
    return Task(program, LEVEL.target(program, 1), (LEVEL.objectives["time_s"],), LEVEL.version)


SMALL = {"size": "m=33,n=30,k=20"}


@pytest.mark.slow(after=4)
@pytest.mark.parametrize(
    ("text", "options"),
    [
        (MATMUL, SMALL),
        (MATMUL, {**SMALL, "dtype": "float16"}),
        (MATMUL, {**SMALL, "dtype": "bfloat16"}),
        (MATMUL, {**SMALL, "dtype": "int8"}),
        (f"{MATMUL}; D[m,n] = max(C[m,n], tanh(C[m,n])) + sigmoid(E[n])", {**SMALL, "dtype": "float64"}),
        ("O[k,y,x] += pad(I[c, y+r-1, x+s-1], 0) * W[k,c,r,s]", {"shape": "I=3,8,8,W=6,3,3,3"}),
        ("S[m] += exp(X[m,n]); Y[m,n] = exp(X[m,n]) / S[m]", {"size": "m=9,n=40"}),
        ("A[i] = argmax(X[i,k])", {"size": "i=6,k=11"}),
        ("Y[t,d] = E[I[t],d]", {"size": "t=6,d=9", "shape": "E=5,9"}),
    ],
)
def test_candidates_compute_what_the_program_says(text: str, options: dict[str, str]) -> None:
    of = task(text, **options)
    space = LEVEL.space(of, "template")
    assert isinstance(space, GpuSpace)
    # All kinds of candidates for one program; of the others each compiles for a while.
    found = [space.start(), *([Candidate(), space.sample(rng(1, 1))] if options == SMALL else [])]
    with InlineExecutor(LEVEL.evaluator(of)()) as executor:
        executor.submit(found)
        for evaluation in executor.results():
            assert isinstance(evaluation.outcome, Measured), evaluation
            assert evaluation.outcome.values["time_s"] > 0


def test_what_is_kept_is_verified_on_further_inputs() -> None:
    of = task(**SMALL)
    with InlineExecutor(LEVEL.evaluator(of, final=True)()) as executor:
        executor.submit([Candidate(TILED)])
        (evaluation,) = executor.results()
    assert isinstance(evaluation.outcome, Measured)


def broken(monkeypatch: pytest.MonkeyPatch, before: str, after: str, declared: str = "") -> str:
    """Evaluate a kernel in whose source something was replaced or declared; return why it failed."""
    write = kernel_source

    def changed(*args: object) -> str:
        source = write(*args)  # pyright: ignore[reportArgumentType]
        assert before in source
        return declared + source.replace(before, after)

    monkeypatch.setattr(evaluator, "kernel_source", changed)
    with InlineExecutor(LEVEL.evaluator(task(**SMALL))()) as executor:
        executor.submit([Candidate(TILED[:2])])
        (evaluation,) = executor.results()
    assert isinstance(evaluation.outcome, Failed)
    return evaluation.outcome.detail


AT, SUM = (
    "i_m_8 * 240 + i_n_16 * 16 + i_m_2 * 60 + i_n_4 * 4 + i_m * 30 + i_n",
    "t_C_1[i_m * 4 + i_n]",
)
RESULT = f"= {SUM};"


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("t_C[", "t_C[990 + 0 * ", "memory beside C is written"),
        ("i_k < 20", "i_k < 19", "elements are wrong"),
        (RESULT, "= NAN;", "elements are wrong"),
        # Right where the output is not what it wrote before, and then no more.
        (RESULT, f"+= (t_C[{AT}] == {SUM}) ? 1 : {SUM} - t_C[{AT}];", "elements are wrong"),
    ],
    ids=["memory beside a buffer", "a wrong element", "NaN", "right in the first call alone"],
)
def test_a_wrong_kernel_is_refused(
    monkeypatch: pytest.MonkeyPatch, before: str, after: str, why: str
) -> None:
    assert why in broken(monkeypatch, before, after)


@pytest.mark.parametrize("right", [1, 2, 10])
def test_a_kernel_that_counts_its_calls_is_refused(monkeypatch: pytest.MonkeyPatch, right: int) -> None:
    """It corrupts the first element after so many calls."""
    monkeypatch.setenv("PYOPENCL_BUILD_OPTIONS", "-cl-std=CL2.0")  # for variables that outlive a launch
    first = "get_global_id(0) == 0 && i_m == 0 && i_n == 0"
    corrupted = f"= {SUM} + ({first} && ++calls > {right} ? 1 : 0);"
    assert "elements are wrong" in broken(monkeypatch, RESULT, corrupted, "__global int calls = 0;")


def test_a_kernel_that_is_wrong_from_its_eleventh_call_on_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is right whenever it is verified before it is timed, and in the first calls that are timed."""
    import pyopencl as cl

    run, begin, calls = opencl.OpenClDevice.run, Verifier.begin_last, -1000

    def timed_from_here(self: Verifier, runs: Any) -> None:
        nonlocal calls
        begin(self, runs)
        calls = 0

    def corrupting(self: opencl.OpenClDevice, launches: Sequence[Launch]) -> int:
        nonlocal calls
        calls += 1
        nanoseconds = run(self, launches)
        if calls > 10:
            first = launches[-1].arguments[-1]
            cl.enqueue_fill_buffer(vars(self)["_queue"], first, b"\x42", 0, 4).wait()
        return nanoseconds

    monkeypatch.setattr(Verifier, "begin_last", timed_from_here)
    monkeypatch.setattr(opencl.OpenClDevice, "run", corrupting)
    with InlineExecutor(LEVEL.evaluator(task(**SMALL))()) as executor:
        executor.submit([Candidate(TILED[:2])])
        (evaluation,) = executor.results()
    assert isinstance(evaluation.outcome, Failed)
    assert evaluation.outcome.reason == "wrong answer"
    assert evaluation.outcome.detail.endswith("after the timed calls")


@pytest.mark.slow
def test_a_kernel_that_hangs_is_ended_with_its_process() -> None:
    of = task(**SMALL)
    spec = Hanging(of.program, of.target)
    with LocalExecutor(spec, limits=Limits(build=60, verify=8)) as executor:
        executor.submit([Candidate(TILED[:2]), Candidate(TILED), Candidate(TILED[:1])])
        found = {each.candidate: each.outcome for each in executor.results()}
    assert found[Candidate(TILED)] == Failed("verify", "timeout", "over 8 s")
    assert isinstance(found[Candidate(TILED[:1])], Measured)
    assert isinstance(found[Candidate(TILED[:2])], Measured)


def test_what_the_device_lacks_is_not_launched() -> None:
    of = task(size="m=482,n=4,k=1088")
    features = {each for each in of.target.features if not each.startswith("shared=")}
    of = replace(of, target=replace(of.target, features=frozenset({*features, f"shared={1 << 20}"})))
    with InlineExecutor(LEVEL.evaluator(of)()) as executor:
        executor.submit([Candidate((BlockTile("m", 241), SharedTile("A")))])
        (evaluation,) = executor.results()
    assert isinstance(evaluation.outcome, Failed)
    # 256 bytes too many.
    assert "a block shares 1048832 bytes, the device has 1048576" in evaluation.outcome.detail


def test_a_time_that_a_gpus_peaks_do_not_allow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    of = task(**SMALL)
    gpu = replace(Gpu.of(of.target), processor=False, bandwidth=1, gflops=1)
    of = replace(of, target=replace(of.target, features=gpu.features | {"opencl"}))

    def refuses(*_: object) -> str:
        return "a call took no time"

    monkeypatch.setattr(DeviceRoofline, "refuses", refuses)
    with InlineExecutor(LEVEL.evaluator(of)()) as executor:
        executor.submit([Candidate(TILED[:2])])
        (evaluation,) = executor.results()
    assert isinstance(evaluation.outcome, Failed)
    assert evaluation.outcome.detail == "a call took no time"


def test_the_simulator_executes_the_same_kernels() -> None:
    if not any("Oclgrind" in title for title in opencl.device_titles()):
        pytest.skip("Oclgrind is not installed")
    of = task(size="m=5,n=6,k=4", backend="opencl:oclgrind")
    steps = (BlockTile("m", 2, 2), BlockTile("n", 2, 2), ReduceTile("k", 2), SharedTile("A"))
    with InlineExecutor(LEVEL.evaluator(of)()) as executor:
        executor.submit([Candidate(steps)])
        (evaluation,) = executor.results()
    assert isinstance(evaluation.outcome, Measured), evaluation


def test_a_target_says_what_the_device_has() -> None:
    target = task(**SMALL).target
    assert "opencl" in target.features
    assert target.toolchain["backend"] == "opencl:portable"
    assert any(feature.startswith("shared=") for feature in target.features)
    assert LEVEL.read(task(**SMALL).program.text, target) == task(**SMALL).program


def test_an_unknown_device_is_reported() -> None:
    with pytest.raises(TargetError, match=r"there is no OpenCL device 'tpu'. Known: .*pthread"):
        task(**SMALL, backend="opencl:tpu")


@pytest.fixture
def _without_pyopencl(monkeypatch: pytest.MonkeyPatch) -> None:
    found = opencl.all_devices
    monkeypatch.setattr(opencl, "all_devices", found.__wrapped__)
    monkeypatch.setitem(sys.modules, "pyopencl", None)


@pytest.mark.usefixtures("_without_pyopencl")
def test_without_pyopencl_one_line_says_what_to_install() -> None:
    with pytest.raises(TargetError, match=r"needs pyopencl.*pip install 'planish\[opencl\]'"):
        opencl.find_device()


def test_a_kernel_is_exported_and_called(tmp_path: Path) -> None:
    of = task(f"{MATMUL}; D[m,n] = relu(C[m,n])", **SMALL)
    files = LEVEL.export(of, Candidate(TILED), tmp_path)
    assert sorted(file.suffix for file in files) == [".c", ".cl", ".json"]
    record = json.loads(next(file for file in files if file.suffix == ".json").read_text())
    assert record["kernels"][0]["threads"] == 16
    assert "__kernel" in next(file for file in files if file.suffix == ".cl").read_text()
    a, b = (np.arange(n * k, dtype=np.float32).reshape(n, k) % 5 - 2 for n, k in ((33, 20), (20, 30)))
    found = LEVEL.function(of, Candidate(TILED))(a, b)
    assert np.array_equal(found, np.maximum(a @ b, 0))


def test_a_search_in_sandboxed_workers_is_stored_and_described(tmp_path: Path) -> None:
    program = task(size="m=40,n=40,k=40").program
    store, budget = tmp_path / "a.db", Budget(trials=2)
    found = tune_program(LEVEL, program, budget=budget, store=store, compares=False)
    assert found.run.trials == 2
    described = LEVEL.describe(found.task, found.exported)
    assert "blocks" in described["kernels"]
    assert "__kernel" in described["source"]


def test_a_step_of_processors_is_refused_on_a_gpu() -> None:
    of = task(**SMALL)
    with pytest.raises(PlanishError, match="a GPU has no space 'steps'"):
        LEVEL.space(of, "steps")
    with InlineExecutor(LEVEL.evaluator(of)()) as executor:
        executor.submit([Candidate((Step(),))])
        (evaluation,) = executor.results()
    assert isinstance(evaluation.outcome, Failed)


@pytest.mark.slow
def test_a_batch_is_measured_and_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_batches, "ROUNDS", 1)
    write_batch(task(size="m=16,n=16,k=8"), 2, 0, tmp_path)
    for _ in range(2):
        gpu_batches.measure([tmp_path])
    said = capsys.readouterr().out
    kept = len(read_batch(tmp_path).candidates)
    assert said.count(f"{kept} of {kept} candidates measured") == 2
    recording = load_recording(tmp_path / "results.jsonl.gz")
    assert all(isinstance(outcome, Measured) for outcome in recording.outcomes.values())
    assert len(recording.outcomes) == kept
