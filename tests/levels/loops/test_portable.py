"""The portable back end has code for processors of any architecture, and of a bounded size."""

from dataclasses import replace

import numpy as np
import pytest

from levels.loops.trees import execute, integers, matmul
from planish.core import TargetError
from planish.levels.loops.codegen.llvm.compile import compile_tree, emit
from planish.levels.loops.codegen.llvm.jit import describe, host_machine
from planish.levels.loops.ir.tree import Loop


def test_a_register_tile_is_loaded_and_stored_once() -> None:
    """The tile's results stay in registers over the reduction: no spill, and one multiply-add for each."""
    kernel = matmul(6, 64, 100, ("k", "m", "n"))
    text = emit(kernel, "f", describe("x86_64-unknown-linux-gnu", "skylake-avx512", "+avx512vl", None))
    lines = text.splitlines()
    assert sum("vfmadd" in line for line in lines) == 6 * 64 // 16
    stores = [x for x in lines if x.strip().startswith("vmovups\t%zmm")]
    assert len(stores) == 6 * 64 // 16
    assert not any("rsp" in x for x in stores)


@pytest.mark.parametrize(
    ("triple", "cpu", "fused"),
    [("aarch64-unknown-linux-gnu", "cortex-a76", "fmla"), ("riscv64-unknown-linux-gnu", "", "fmadd")],
)
def test_other_processors_have_code_too(triple: str, cpu: str, fused: str) -> None:
    features = "+f,+d" if "riscv" in triple else ""
    machine = describe(triple, cpu, features)
    kernel = matmul(13, 21, 8, ("m_4", "n_8", "k", "m", "n"))
    assert fused in emit(kernel, "f", machine)


def test_what_llvm_does_not_know_is_refused() -> None:
    with pytest.raises(TargetError, match="no code generator"):
        emit(matmul(2, 2, 2, ("m", "n", "k")), "f", describe("pdp11-dec-unix", "", ""))


def test_size_of_the_code_is_bounded() -> None:
    """A request to unroll is capped: a large nest still is a small function."""
    kernel = matmul(64, 64, 64, ("m", "n", "k"))

    def unrolled(loop: Loop) -> Loop:
        body = tuple(unrolled(n) if isinstance(n, Loop) else n for n in loop.body)
        return replace(loop, kind="unroll", body=body)

    whole = replace(kernel, body=tuple(unrolled(n) for n in kernel.body if isinstance(n, Loop)))
    assert len(emit(whole, "f", host_machine()).splitlines()) < 40_000
    arrays = integers(whole)
    got = execute(whole, compile_tree(whole), arrays)["C"]
    np.testing.assert_array_equal(
        got.reshape(64, 64), arrays["A"].reshape(64, 64) @ arrays["B"].reshape(64, 64)
    )
