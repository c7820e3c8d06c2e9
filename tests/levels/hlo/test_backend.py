"""What compilers compute, refuse and take, and the cache of what they compiled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from levels.hlo.modules import CHAIN, SUM, evaluate
from levels.hlo.workloads import INFERENCE, PREDICT, task, write_all
from levels.outcomes import failure, measured
from planish.core import Candidate, Measured, PlanishError, ProgramError, TargetError
from planish.core import evaluate as evaluate_all
from planish.levels.hlo import program_from
from planish.levels.hlo.backend import (
    BackendError,
    CompiledFiles,
    Executable,
    HloBackend,
    XlaBackend,
    compute,
    open_backend,
)
from planish.levels.hlo.edits import Narrow, ReplaceConstant
from planish.levels.hlo.evaluator import (
    TOLERANCE,
    Comparing,
    Comparison,
    agreement,
    cross_check,
    difference,
    tolerated,
)
from planish.levels.hlo.ir.mlir import TensorType
from planish.levels.hlo.ir.normal import entry_text, load
from planish.levels.hlo.machine import versions
from planish.levels.hlo.patch import original, replay
from planish.levels.hlo.workload.arguments import signature
from planish.measure.executors import InlineExecutor, LocalExecutor

# Where the checks run, what is missing is a failure.
needs_iree = pytest.mark.skipif(
    find_spec("iree") is None and os.environ.get("CI") != "true", reason="IREE is not installed"
)

TYPES = """
func.func public @main(%a: tensor<2xi1>, %b: tensor<3xi64>, %c: tensor<f64>, %d: tensor<2x2xui8>)
    -> (tensor<2x2xui8>, tensor<2xi1>, tensor<f64>, tensor<3xi64>) {
  %0 = stablehlo.add %d, %d : tensor<2x2xui8>
  %1 = stablehlo.not %a : tensor<2xi1>
  %2 = stablehlo.negate %c : tensor<f64>
  %3 = stablehlo.negate %b : tensor<3xi64>
  return %0, %1, %2, %3 : tensor<2x2xui8>, tensor<2xi1>, tensor<f64>, tensor<3xi64>
}
"""

ONE_SUM = """
func.func public @main(%images: tensor<1x3xf32> loc("images")) -> tensor<1x3xf32> {
  %start = stablehlo.constant dense<5.0> : tensor<f32>
  %s = stablehlo.reduce(%images init: %start) applies stablehlo.add across dimensions = [0]
      : (tensor<1x3xf32>, tensor<f32>) -> tensor<3xf32>
  %two = stablehlo.constant dense<2.0> : tensor<3xf32>
  %m = stablehlo.multiply %s, %two : tensor<3xf32>
  %r = stablehlo.reshape %m : (tensor<3xf32>) -> tensor<1x3xf32>
  return %r : tensor<1x3xf32>
}
"""
"""XLA drops the 5: a sum over one element."""


@pytest.fixture(scope="module", params=["xla", pytest.param("iree", marks=needs_iree)])
def backend(request: pytest.FixtureRequest) -> HloBackend:
    return open_backend(request.param)


def run(backend: HloBackend, text: str, *arrays: Any) -> Sequence[Any]:
    executable = backend.compile(entry_text(load(text), "main"))
    return compute(backend, executable, signature(program_from(text)).arguments, arrays)


@pytest.mark.parametrize("text", [CHAIN, SUM])
def test_results_are_those_of_the_interpreter(backend: HloBackend, text: str) -> None:
    draw = np.random.default_rng(0)
    if text == CHAIN:
        arrays: list[Any] = [draw.random((2, 3), "f") for _ in range(2)]
    else:
        arrays = [draw.random((4, 3), "f"), np.array(2, np.int32)]
    found = run(backend, text, *arrays)
    for one, other in zip(found, evaluate(load(text), *arrays), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_arrays_of_every_type_go_in_and_come_out(backend: HloBackend) -> None:
    d, a, c, b = run(
        backend,
        TYPES,
        np.array([True, False]),
        np.array([1, 2**40, -3]),
        np.array(0.1),
        np.array([[1, 2], [3, 200]], np.uint8),
    )
    assert (d.dtype, d.tolist()) == (np.uint8, [[2, 4], [6, 144]])
    assert (a.dtype, a.tolist()) == (np.bool_, [False, True])
    assert (b.dtype, b.tolist()) == (np.int64, [-1, -(2**40), 3])
    assert c.shape == ()
    assert abs(c + 0.1) < 1e-12


NOT_FINITE = """
func.func public @main(%x: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<3x5xf32>
  %a = stablehlo.multiply %zero, %x : tensor<3x5xf32>
  %b = stablehlo.subtract %x, %x : tensor<3x5xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1]
      : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
  return %a, %b, %m : tensor<3x5xf32>, tensor<3x5xf32>, tensor<3xf32>
}
"""

ARG_MAX = """
func.func public @main(%x: tensor<4x8xf32> loc("images")) -> (tensor<4xf32>, tensor<4xi32>) {
  %i = stablehlo.iota dim = 1 : tensor<4x8xi32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %least), (%i init: %zero) across dimensions = [1]
      : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
      %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %m = stablehlo.select %g, %a, %b : tensor<i1>, tensor<f32>
      %n = stablehlo.select %g, %p, %q : tensor<i1>, tensor<i32>
      stablehlo.return %m, %n : tensor<f32>, tensor<i32>
    }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi32>
}
"""


def test_what_is_not_finite_is_as_in_ieee_754(backend: HloBackend) -> None:
    x = np.array([[np.inf, -np.inf, np.nan, -0.0, 1e38], [-1] * 4 + [np.nan], [-np.inf] * 5], np.float32)
    with np.errstate(invalid="ignore"):
        expected = [np.float32(0) * x, x - x, x.max(axis=1)]
    for one, other in zip(run(backend, NOT_FINITE, x), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.signbit(run(backend, NOT_FINITE, x)[0][0, 3])


def test_a_reduction_of_two_operands_is_computed_or_refused(backend: HloBackend) -> None:
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    try:
        largest, indices = run(backend, ARG_MAX, x)
    except BackendError:
        return  # that is not cross-checked, and no other one
    np.testing.assert_array_equal(largest, x.max(axis=1))
    np.testing.assert_array_equal(indices, x.argmax(axis=1))


class Refusing(XlaBackend):
    name = "second"

    def __init__(self) -> None:
        """Start no client."""

    def compile(self, text: str) -> Executable:
        raise BackendError(f"no reduction of two operands in {len(text)} bytes")


def test_a_back_end_that_does_not_take_a_module_is_not_cross_checked(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, PREDICT, INFERENCE))
    evaluator = Comparison(Comparing(of.program), [open_backend("xla"), Refusing()])
    (found,) = evaluate_all(InlineExecutor(evaluator), [Candidate()])
    assert agreement(found.outcome).agrees is None
    assert "does not run by second: no reduction of two operands" in agreement(found.outcome).why


def test_results_are_arguments_again(backend: HloBackend) -> None:
    executable = backend.compile(entry_text(load(CHAIN), "main"))
    x, y = (backend.put(np.full((2, 3), value, np.float32)) for value in (1, 2))
    for _ in range(3):
        (x,) = executable([x, y])
    assert backend.get(x).tolist() == [[22.0] * 3] * 2
    assert backend.get(y).tolist() == [[2.0] * 3] * 2


@pytest.mark.slow(after=3)
@pytest.mark.parametrize(
    "arrays",
    [
        [np.zeros((3, 2), "f"), np.zeros((2, 3), "f")],
        [np.zeros((2, 3), "i"), np.zeros((2, 3), "f")],
        [np.zeros((2, 3), "f")],
    ],
)
def test_arrays_of_other_shapes_and_types_are_refused(backend: HloBackend, arrays: list[Any]) -> None:
    with pytest.raises(ProgramError, match="the function takes"):
        run(backend, CHAIN, *arrays)


def test_what_is_no_module_is_one_line(backend: HloBackend) -> None:
    with pytest.raises(BackendError, match="undeclared") as caught:
        backend.compile("func.func @main(%x: tensor<2xf32>) { return %y : tensor<2xf32> }")
    assert "\n" not in caught.value.message


def test_numbers_of_type_bfloat16_go_in_and_come_out(backend: HloBackend) -> None:
    x = np.array([[1, -2.5, 3e38]] * 2, ml_dtypes.bfloat16)
    (found,) = run(backend, CHAIN.replace("f32", "bf16"), x, x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found.astype("f")[:, :2], [[3.0, -7.5]] * 2)
    assert np.isinf(found.astype("f")[:, 2]).all()


def test_types_that_numpy_lacks_are_refused() -> None:
    backend = open_backend()
    executable = backend.compile(entry_text(load(CHAIN), "main"))
    with pytest.raises(ProgramError, match="f8E5M2 are not supported"):
        compute(backend, executable, [TensorType((2,), "f8E5M2")], [np.ones(2)])


@pytest.mark.parametrize(("element", "dtype"), [("f32", "np.float32"), ("bf16", "ml_dtypes.bfloat16")])
def test_xla_runs_without_jax(element: str, dtype: str, tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules["jax"] = None
import ml_dtypes, numpy as np
from planish.levels.hlo.backend import open_backend
b = open_backend()
e = b.compile({CHAIN.replace("f32", element)!r})
x = b.put(np.full((2, 3), 0.5, {dtype}))
print(b.get(e([x, x])[0]).astype("f").tolist(), [m for m in sys.modules if m.startswith("jax.")])
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, text=True, stdout=subprocess.PIPE, cwd=tmp_path
    )
    assert ran.stdout == "[[1.5, 1.5, 1.5], [1.5, 1.5, 1.5]] []\n"


def test_back_ends_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlanishError, match="Did you mean 'iree'"):
        open_backend("ireee")

    monkeypatch.setattr(sys, "path", [])  # nothing is installed there
    with pytest.raises(TargetError, match=r"'iree' is not installed\. Install it.* pip install .*\[hlo\]"):
        versions("iree")


def test_flags_are_part_of_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    assert versions()["flags"] == "--xla_cpu_enable_fast_math=true"
    monkeypatch.delenv("XLA_FLAGS")
    assert "flags" not in versions()


@needs_iree
def test_compilers_that_disagree_are_flagged(tmp_path: Path) -> None:
    workload = INFERENCE.replace('weights = "w.npz"\n', "")
    of = task(write_all(tmp_path, ONE_SUM, workload))
    np.savez(tmp_path / "data" / "set.npz", images=np.ones((60, 3), "f"), labels=np.zeros(60, int))
    of = task(tmp_path / "net.mlir")
    asked = [Candidate(), Candidate((ReplaceConstant("4", 0.0),))]
    apart, same = cross_check(of, asked, LocalExecutor)
    assert failure(apart) == ("verify", "the back ends disagree")
    assert same == Measured({"difference": 0.0})


@needs_iree
def test_compilers_that_agree_tell_how_well(tmp_path: Path) -> None:
    (found,) = cross_check(task(write_all(tmp_path, PREDICT, INFERENCE)), [Candidate()], LocalExecutor)
    assert measured(found).values["difference"] < 1e-6


def test_compilers_may_round_narrow_numbers_to_either_side(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, PREDICT, INFERENCE))
    plain = replay(of.program.module, Candidate())
    assert tolerated(plain) == TOLERANCE
    ops = tuple(Narrow.match(plain))
    for element, step in (("bf16", 2.0**-7), ("f16", TOLERANCE)):
        assert tolerated(replay(of.program.module, Candidate((Narrow(ops, element),)))) == step


def test_differences_are_relative_and_see_nan() -> None:
    one = np.array([1.0, 1000.0, np.nan, np.inf])
    assert difference(one, one) == 0
    assert difference(one, one + np.array([1, 0, 0, 0])) == pytest.approx(1e-3)
    assert difference(one, np.array([1.0, 1000.0, 2.0, np.inf])) == np.inf
    assert difference(one, -one) == np.inf
    assert difference(np.array([np.nan]), np.array([np.nan])) == 0
    assert difference(np.array([1, 2]), np.array([1, 3])) == pytest.approx(1 / 3)


DRAFT = original(program_from(SUM))
TEXT = entry_text(DRAFT.root, DRAFT.function)


def answers(kept: CompiledFiles | None) -> list[bytes]:
    backend = open_backend("xla", files=kept)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    held = [backend.put(x), backend.put(np.array(3, np.int32))]
    return [backend.get(each).tobytes() for each in backend.compile(TEXT)(held)]


def files(kept: CompiledFiles) -> list[Path]:
    return sorted(kept.folder.glob("*.xla"))


def test_what_was_compiled_is_read_and_gives_the_same_answers() -> None:
    kept = CompiledFiles()
    assert answers(kept) == answers(None)
    before = [each.stat().st_mtime_ns for each in files(kept)]
    assert before
    assert answers(kept) == answers(None)
    assert [each.stat().st_mtime_ns for each in files(kept)] == before, "nothing is compiled again"


def test_other_cores_are_other_code() -> None:
    kept = CompiledFiles()
    answers(kept)
    assert kept.find(TEXT, 1) is not None
    assert kept.find(TEXT, 2) is None


@pytest.mark.parametrize("length", [0, 20, 1000])
def test_a_file_that_is_cut_off_is_compiled_anew(length: int) -> None:
    kept = CompiledFiles()
    answers(kept)
    for file in files(kept):
        file.write_bytes(file.read_bytes()[:length])
    assert answers(kept) == answers(None)


def test_a_folder_that_is_gone_keeps_nothing() -> None:
    kept = CompiledFiles()
    shutil.rmtree(kept.folder)
    assert answers(kept) == answers(None)
    assert kept.find(TEXT, 1) is None


def test_the_oldest_goes_where_there_is_no_room() -> None:
    kept = CompiledFiles(capacity=76)
    for number, text in enumerate("abc"):
        kept.keep(text, 1, b"1234")
        assert len(files(kept)) == min(2, number + 1)
    assert kept.find("c", 1) == b"1234"
