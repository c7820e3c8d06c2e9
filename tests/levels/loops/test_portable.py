"""The portable back end does what the loop tree says, for any vector width."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levels.loops.chains import chains
from levels.loops.odd_trees import TREES, A, Z, along, call, tree
from levels.loops.random_trees import random_trees
from levels.loops.trees import Array, Kind, buffers, execute, integers, matmul, ref
from planish.core import TargetError
from planish.levels.loops.codegen.llvm.compile import compile_tree, emit, emit_object
from planish.levels.loops.codegen.llvm.jit import describe
from planish.levels.loops.ir.tree import Leaf, Loop, LoopTree
from planish.levels.loops.lang.program import Const, Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.lower.mathlib import EXPANDED
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.runtime.kernels import Kernel
from planish.testing.interpreter import interpret
from planish.testing.programs import programs
from planish.testing.schedules import schedules

WIDTHS = (64, 128, 256, 512)


def same(kernel: LoopTree, width: int, lanes: int = 1) -> None:
    """Compile, run, and compare with the interpreter; sums are exact."""
    arrays = integers(kernel)
    expected = interpret(kernel, arrays)
    got = execute(kernel, compile_tree(kernel, vector_bits=width), arrays, lanes)
    for name, values in expected.items():
        np.testing.assert_array_equal(got[name], values, err_msg=f"{name} of {kernel}")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", TREES)
def test_odd_trees(name: str, width: int) -> None:
    same(TREES[name], width)


@settings(max_examples=100)
@given(random_trees(), st.sampled_from(WIDTHS))
def test_random_trees_in_strict_order(kernel: LoopTree, width: int) -> None:
    same(kernel, width)


@settings(max_examples=120)
@given(programs(points=1500) | chains(), st.data())
def test_any_schedule_of_any_program_is_right(program: Program, data: st.DataObject) -> None:
    schedule = data.draw(schedules(program.with_constants(program.inputs)))
    width, cores = data.draw(st.sampled_from(WIDTHS)), data.draw(st.sampled_from([1, 2]))
    kernel = lower(schedule)
    inputs = make_inputs(program)
    outputs = {name: aligned(program.type[name]) for name in program.outputs}
    for array in outputs.values():
        array.fill(np.nan)
    Kernel(program, kernel, compile_tree(kernel, vector_bits=width), cores).bind(inputs, outputs)()
    wrong = check(program, outputs, reference(program, inputs))
    assert wrong is None, f"{wrong}\n{program.text}\n{schedule.text}\n{width}"


ORDERS = [
    ("m", "n", "k"), ("k", "m", "n"), ("n", "k", "m"), ("m_4", "n_32", "k", "m", "n"),
    ("n_16", "k_8", "m", "k", "n"), ("m_6", "k_10", "n_5", "k_5", "m", "n", "k"),
]  # fmt: skip


@settings(max_examples=60)
@given(
    st.integers(1, 40), st.integers(1, 70), st.integers(1, 30), st.sampled_from(ORDERS),
    st.sampled_from(WIDTHS), st.sampled_from(["float32", "float64"]),
)  # fmt: skip
def test_tails_of_every_kind(m: int, n: int, k: int, order: tuple[str, ...], width: int, dtype: str) -> None:
    kernel = matmul(m, n, k, order, dtype)
    arrays = integers(kernel)
    got = execute(kernel, compile_tree(kernel, vector_bits=width), arrays)["C"]
    np.testing.assert_array_equal(got, (arrays["A"].reshape(m, k) @ arrays["B"].reshape(k, n)).ravel())


@pytest.mark.parametrize("size", [1, 7, 16, 300, 1000])
@pytest.mark.parametrize("reduce", ["add", "max", "min", "mul"])
def test_long_reductions_have_several_accumulators(reduce: str, size: int) -> None:
    start = Leaf(ref("S"), None, Const(1.0))
    body = along("i", Leaf(ref("S"), reduce, A))
    kernel = LoopTree((start, body), (), buffers(A=("input", size), S=("output", 1)), (("i", size),))
    values = np.random.default_rng(0).uniform(0.9, 1.1, size)
    got = execute(kernel, compile_tree(kernel), {"A": values})["S"]
    np.testing.assert_allclose(got, interpret(kernel, {"A": values})["S"], rtol=1e-12)


@pytest.mark.parametrize("width", [64, 512])
@pytest.mark.parametrize("lanes", [1, 2, 3, 7])
@pytest.mark.parametrize("step", [1, 4, 64])
def test_parallel_parts_meet_in_the_whole(step: int, lanes: int, width: int) -> None:
    """Each part has temporaries of its own, and the tail belongs to the last."""
    outer = {f"i_{step}": step} if step > 1 else {}
    square = call("mul", ref("T"), ref("T"))
    body = along(
        "i", Leaf(ref("T"), None, ref("A", i=1, **outer)), Leaf(ref("Z", i=1, **outer), None, square)
    )
    body = along("i", body, step=step) if outer else body
    kinds: dict[str, Kind] = {"A": ("input", 37), "Z": ("output", 37), "T": ("temporary", 1, 1)}
    same(tree(replace(body, kind="parallel"), **kinds), width, lanes)


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_parts_share_what_does_not_move(lanes: int) -> None:
    """A lane may have the tail alone: what the other iterations have loaded is not there for it."""
    row = along("i", Leaf(ref("Z", i=1, j=3, j_2=6), None, call("add", A, ref("B", j=1, j_2=2))))
    body = replace(along("j", along("j", row), step=2), kind="parallel")
    kinds = buffers("float64", A=("input", 3), B=("input", 5), Z=("output", 15))
    same(LoopTree((body,), (), kinds, (("i", 3), ("j", 5))), 512, lanes)


def test_each_root_is_an_entry_where_one_is_parallel() -> None:
    first, second = along("i", Leaf(ref("T", i=1), None, A)), along("i", Leaf(Z, None, ref("T", i=1)))
    kinds: dict[str, Kind] = {"A": ("input", 37), "Z": ("output", 37), "T": ("temporary", 37)}
    serial = compile_tree(tree(first, second, **kinds))
    assert [e.parallel for e in serial.entries] == [False]
    mixed = tree(first, replace(second, kind="parallel"), **kinds)
    assert [(e.parallel, e.iterations) for e in compile_tree(mixed).entries] == [(False, 1), (True, 37)]
    same(mixed, 512, lanes=2)


def test_the_ahead_part_has_entries_of_its_own() -> None:
    pack = along("i", Leaf(ref("P", i=1), None, call("neg", A)))
    body = along("i", Leaf(Z, None, ref("P", i=1)))
    kinds = buffers("float64", A=("input", 37), Z=("output", 37), P=("ahead", 37))
    kernel = LoopTree((body,), (pack,), kinds, (("i", 37),))
    code = compile_tree(kernel)
    assert len(code.ahead_entries) == 1
    same(kernel, 512)


@pytest.mark.parametrize("width", [64, 512])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", sorted(EXPANDED))
def test_functions_are_accurate_and_know_infinity(function: str, dtype: str, width: int) -> None:
    special = [0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 100.0, -100.0, 0.5, 88.0, -745.0]
    values = np.array([*special, *np.linspace(-20, 20, 333)], dtype)
    kinds = buffers(dtype, A=("input", len(values)), Z=("output", len(values)))
    kernel = LoopTree((along("i", Leaf(Z, None, call(function, A))),), (), kinds, (("i", len(values)),))
    got = execute(kernel, compile_tree(kernel, vector_bits=width), {"A": values})["Z"]
    limit = np.finfo(np.dtype(dtype))
    with np.errstate(all="ignore"):
        exact = interpret(kernel, {"A": values})["Z"]
    np.testing.assert_allclose(got, exact, rtol=4 * limit.eps, atol=float(limit.tiny), equal_nan=True)


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
    assert emit_object(kernel, "f", machine).startswith(b"\x7fELF")
    assert struct.unpack_from("<H", emit_object(kernel, "f", machine), 18)[0] in (183, 243)


def test_what_llvm_does_not_know_is_refused() -> None:
    with pytest.raises(TargetError, match="no code generator"):
        emit(matmul(2, 2, 2, ("m", "n", "k")), "f", describe("pdp11-dec-unix", "", ""))


def test_mixed_types_are_refused() -> None:
    kernel = matmul(2, 2, 2, ("m", "n", "k"))
    mixed = replace(kernel, buffers=(*kernel.buffers[:2], replace(kernel.buffers[2], dtype="float64")))
    with pytest.raises(TargetError, match="mixed element types: float32, float64"):
        compile_tree(mixed)


def test_size_of_the_code_is_bounded() -> None:
    """A request to unroll is capped: a large nest still is a small function."""
    order = ("m", "n", "k")
    kernel = matmul(64, 64, 64, order)

    def unrolled(loop: Loop) -> Loop:
        body = tuple(unrolled(n) if isinstance(n, Loop) else n for n in loop.body)
        return replace(loop, kind="unroll", body=body)

    whole = replace(kernel, body=tuple(unrolled(n) for n in kernel.body if isinstance(n, Loop)))
    assert len(emit_object(whole, "f")) < 200_000
    arrays: dict[str, Array] = integers(whole)
    got = execute(whole, compile_tree(whole), arrays)["C"]
    np.testing.assert_array_equal(
        got.reshape(64, 64), arrays["A"].reshape(64, 64) @ arrays["B"].reshape(64, 64)
    )
