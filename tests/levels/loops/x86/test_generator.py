"""Machine code does what the loop tree says, on every processor that it can be run on."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from levels.loops.chains import chains
from levels.loops.odd_trees import TREES
from levels.loops.random_trees import random_trees
from levels.loops.trees import execute, integers
from planish.core import TargetError
from planish.levels.loops.codegen.x86.compile import compile_tree
from planish.levels.loops.codegen.x86.isa import IsaName, best_isa, supported_isas
from planish.levels.loops.ir.schedule import Schedule, unscheduled
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.lower.mathlib import EXPANDED
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.steps import Pack, Parallel, Reorder, Split
from planish.testing.interpreter import interpret
from planish.testing.programs import programs
from planish.testing.schedules import schedules

SETS: list[IsaName] = supported_isas()
pytestmark = pytest.mark.skipif(not SETS, reason="this processor has neither AVX-512 nor AVX2 with FMA")


def run(schedule: Schedule, isa: IsaName, cores: int = 1) -> tuple[dict[str, NDArray[Any]], str | None]:
    """Compute a schedule on poisoned outputs; gives them, and what is wrong with them."""
    program = schedule.program
    tree = lower(schedule)
    inputs = make_inputs(program)
    outputs = {name: aligned(program.type[name]) for name in program.outputs}
    for array in outputs.values():
        array.fill(np.nan)
    Kernel(program, tree, compile_tree(tree, isa), cores).bind(inputs, outputs)()
    return outputs, check(program, outputs, reference(program, inputs))


def same(kernel: LoopTree, isa: IsaName) -> None:
    """Compile, run, and compare with the interpreter; sums are exact."""
    arrays = integers(kernel)
    expected = interpret(kernel, arrays)
    got = execute(kernel, compile_tree(kernel, isa), arrays, 1)
    for name, values in expected.items():
        np.testing.assert_array_equal(got[name], values, err_msg=f"{name} of {kernel}")


@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("name", TREES)
def test_odd_trees(name: str, isa: IsaName) -> None:
    same(TREES[name], isa)


@settings(max_examples=100)
@given(random_trees(), st.sampled_from(SETS))
def test_random_trees_in_strict_order(kernel: LoopTree, isa: IsaName) -> None:
    same(kernel, isa)


@settings(max_examples=150)
@given(programs(points=1500) | chains(), st.data())
def test_any_schedule_of_any_program_is_right(program: Program, data: st.DataObject) -> None:
    schedule = data.draw(schedules(program.with_constants(program.inputs)))
    isa = data.draw(st.sampled_from(SETS))
    _, wrong = run(schedule, isa)
    assert wrong is None, f"{wrong}\n{program.text}\n{schedule.text}\n{isa}"


@settings(max_examples=40)
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 70), st.integers(1, 40)),
    st.sampled_from([("m", "k", "n"), ("k", "m", "n"), ("m", "n", "k"), ("n", "k", "m")]),
    st.sampled_from(SETS),
    st.sampled_from(["float32", "float64"]),
)
def test_tails_of_every_kind(
    size: tuple[int, int, int], order: tuple[str, ...], isa: IsaName, dtype: str
) -> None:
    m, n, k = size
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": m, "n": n, "k": k}, dtype=dtype)
    schedule = unscheduled(program)
    known = [axis for axis in order if program.size[axis] > 1]
    if len(known) > 1:
        schedule = Reorder(tuple(known)).apply(schedule)
    for axis, factor in (("m", 6), ("n", 32), ("k", 8)):
        if program.size[axis] > factor:
            schedule = Split(axis, factor).apply(schedule)
    assert run(schedule, isa)[1] is None


@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", sorted(EXPANDED))
def test_functions_are_accurate_and_know_infinity(isa: IsaName, dtype: str, function: str) -> None:
    special = [0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 100.0, -100.0, 0.5, 88.0]
    values = np.array([*special, *np.linspace(-20, 20, 60)], dtype)
    program = parse(f"y[i] = {function}(x[i])", {"i": len(values)}, dtype=dtype)
    tree = lower(unscheduled(program))
    got = aligned(program.type["y"])
    Kernel(program, tree, compile_tree(tree, isa)).bind({"x": values}, {"y": got})()
    exact = values.astype(np.float64)
    with np.errstate(all="ignore"):
        expected = {
            "exp": lambda: np.exp(exact),
            "log": lambda: np.log(exact),
            "tanh": lambda: np.tanh(exact),
            "sigmoid": lambda: 1 / (1 + np.exp(-exact)),
            "relu": lambda: np.maximum(exact, 0),
            "erf": lambda: np.array([math.erf(x) for x in exact]),
        }[function]()
        limit = np.finfo(np.dtype(dtype))
        expected = np.where(np.abs(expected) > limit.max, np.copysign(np.inf, expected), expected)
    np.testing.assert_allclose(got, expected, rtol=4 * limit.eps, atol=float(limit.tiny), equal_nan=True)


@pytest.mark.parametrize("isa", SETS)
def test_parallel_iterations_and_their_tail_meet_in_the_whole(isa: IsaName) -> None:
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 37, "n": 20, "k": 9})
    schedule = Split("m", 8).apply(unscheduled(program))
    assert run(Parallel("m:8").apply(schedule), isa, cores=2)[1] is None


@pytest.mark.parametrize("isa", SETS)
def test_a_bad_schedule_is_followed_all_the_same(isa: IsaName) -> None:
    """The innermost loop strides through everything: gathers, scatters and one element at a time."""
    program = parse("C[m,n] += A[k,m] * B[n,k]", {"m": 21, "n": 19, "k": 18})
    assert run(Reorder(("n", "k", "m")).apply(unscheduled(program)), isa)[1] is None


def test_results_stay_in_registers_over_the_reduction() -> None:
    """The listing of a register tile has one load and one store of each result, and no spill."""
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 6, "n": 64, "k": 100})
    schedule = Reorder(("k", "m", "n")).apply(unscheduled(program))
    if "avx512" not in SETS:
        pytest.skip("the tile is made for AVX-512")
    text = compile_tree(lower(schedule), "avx512").assembly("f")
    stores = [line for line in text.splitlines() if "vmovups [" in line]
    assert len(stores) == 6 * 64 // 16
    assert all("rsp" not in line for line in stores)
    assert sum("vfmadd231ps" in line for line in text.splitlines()) < 6 * 64 // 16 * 100


def test_packed_weights_are_read_in_the_order_of_use() -> None:
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 12, "n": 48, "k": 32}).with_constants(["B"])
    schedule = Split("n", 16).apply(unscheduled(program))
    schedule = Reorder(("n:16", "k", "m", "n")).apply(schedule)
    schedule = Pack("B", "root", ahead=True).apply(schedule)
    assert all(run(schedule, isa)[1] is None for isa in SETS)


@pytest.mark.parametrize("isa", SETS)
def test_a_loop_of_vectors_inside_one_of_as_many_elements(isa: IsaName) -> None:
    """Both loops walk 16 channels at a time, but by different strides in the packed tensor."""
    sizes = {"k": 2, "c": 64, "y": 2, "x": 40, "r": 3, "s": 3}
    schedule = unscheduled(parse("O[k,y,x] += I[c,y+r,x+s] * W[k,c,r,s]", sizes))
    order = ("k", "y", "x:20", "r", "s", "c:16", "x", "c")
    for step in (Split("x", 20), Split("c", 16), Reorder(order), Pack("I")):
        schedule = step.apply(schedule)
    assert run(schedule, isa)[1] is None


def test_mixed_types_are_refused() -> None:
    program = parse("C[m] = A[m]", {"m": 4})
    tree = lower(unscheduled(program))
    mixed = type(tree)(
        tree.body, tree.ahead, (*tree.buffers[:-1], type(tree.buffers[-1])("C", "float64", 4, "output")),
        tree.sizes, tree.derived,
    )  # fmt: skip
    with pytest.raises(TargetError, match="mixed element types"):
        compile_tree(mixed)


def test_the_error_on_a_processor_without_vectors_says_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planish.levels.loops.codegen.x86.isa.cpu_features", frozenset[str])
    with pytest.raises(TargetError, match="portable"):
        best_isa()


@pytest.mark.parametrize("isa", SETS)
def test_code_that_schedules_share_is_of_the_very_padding(isa: IsaName) -> None:
    for size, pad in ((40, 0.0), (40, 1.0), (41, 1.0), (40, 0.0)):
        program = parse(f"y[i] max= pad(x[i + r - 1], {pad})", {"i": size, "r": 3}, {"x": (size,)})
        tree = lower(unscheduled(program))
        assert tree.views
        y = aligned(program.type["y"])
        Kernel(program, tree, compile_tree(tree, isa)).bind({"x": np.full(size, -1, np.float32)}, {"y": y})()
        assert y[0] == y[-1] == pad
        assert (y[1:-1] == -1).all()
