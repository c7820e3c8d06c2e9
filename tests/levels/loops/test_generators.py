"""Every code generator does what the loop tree says, on every processor that its code runs on."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from levels.loops.chains import chains
from levels.loops.odd_trees import TREES, A, Z, along, call, tree
from levels.loops.random_programs import programs
from levels.loops.random_schedules import schedules
from levels.loops.random_trees import random_trees
from levels.loops.running import GENERATORS, Generate, wrong
from levels.loops.trees import Kind, buffers, execute, integers, matmul, ref
from planish.core import TargetError
from planish.levels.loops.ir.schedule import Schedule, unscheduled
from planish.levels.loops.ir.tree import Leaf, LoopTree
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Const, Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.lower.mathlib import EXPANDED
from planish.levels.loops.reference.inputs import aligned
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.steps import LoopStep, Pack, Parallel, Reorder, Split
from planish.levels.loops.testing.interpreter import interpret

FAMILIES = {
    family: st.sampled_from([g for name, g in GENERATORS.items() if name.startswith(family)])
    for family in sorted({name.partition("-")[0] for name in GENERATORS})
}
families = pytest.mark.parametrize("generators", FAMILIES.values(), ids=FAMILIES)
each = pytest.mark.parametrize("generate", GENERATORS.values(), ids=GENERATORS)
Generators = st.SearchStrategy[Generate]
MATMUL = "C[m,n] += A[m,k] * B[k,n]"


def same(kernel: LoopTree, generate: Generate, lanes: int = 1) -> None:
    """Compile, run, and compare with the interpreter; sums are exact."""
    arrays = integers(kernel)
    expected = interpret(kernel, arrays)
    got = execute(kernel, generate(kernel), arrays, lanes)
    for name, values in expected.items():
        np.testing.assert_array_equal(got[name], values, err_msg=f"{name} of {kernel}")


@each
@pytest.mark.parametrize("name", TREES)
def test_odd_trees(name: str, generate: Generate) -> None:
    same(TREES[name], generate)


@families
@settings(max_examples=examples(100))
@given(random_trees(), st.data())
def test_random_trees_in_strict_order(generators: Generators, kernel: LoopTree, data: st.DataObject) -> None:
    same(kernel, data.draw(generators))


@families
@settings(max_examples=examples(150))
@given(programs(points=1500) | chains(), st.data())
def test_any_schedule_of_any_program_is_right(
    generators: Generators, program: Program, data: st.DataObject
) -> None:
    schedule = data.draw(schedules(program.with_constants(program.inputs)))
    found = wrong(schedule, data.draw(generators), data.draw(st.sampled_from([1, 2])))
    assert found is None, f"{found}\n{program.text}\n{schedule.text}"


ORDERS = [
    ("m", "k", "n"), ("m", "n", "k"), ("k", "m", "n"), ("n", "k", "m"), ("m_4", "n_32", "k", "m", "n"),
    ("n_16", "k_8", "m", "k", "n"), ("m_6", "k_10", "n_5", "k_5", "m", "n", "k"),
    ("m_6", "n_32", "k_8", "k", "m", "n"),
]  # fmt: skip


@families
@settings(max_examples=examples(60))
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 70), st.integers(1, 40)), st.sampled_from(ORDERS),
    st.sampled_from(["float32", "float64"]), st.data(),
)  # fmt: skip
def test_tails_of_every_kind(
    generators: Generators,
    size: tuple[int, int, int],
    order: tuple[str, ...],
    dtype: str,
    data: st.DataObject,
) -> None:
    m, n, k = size
    kernel = matmul(m, n, k, order, dtype)
    arrays = integers(kernel)
    got = execute(kernel, data.draw(generators)(kernel), arrays)["C"]
    np.testing.assert_array_equal(got, (arrays["A"].reshape(m, k) @ arrays["B"].reshape(k, n)).ravel())


@each
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", sorted(EXPANDED))
def test_functions_are_accurate_and_know_infinity(function: str, dtype: str, generate: Generate) -> None:
    special = [0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 100.0, -100.0, 0.5, 88.0, -745.0]
    values = np.array([*special, *np.linspace(-20, 20, 333)], dtype)
    kinds = buffers(dtype, A=("input", len(values)), Z=("output", len(values)))
    kernel = LoopTree((along("i", Leaf(Z, None, call(function, A))),), (), kinds, (("i", len(values)),))
    got = execute(kernel, generate(kernel), {"A": values})["Z"]
    limit = np.finfo(np.dtype(dtype))
    with np.errstate(all="ignore"):
        exact = interpret(kernel, {"A": values})["Z"]
    np.testing.assert_allclose(got, exact, rtol=4 * limit.eps, atol=float(limit.tiny), equal_nan=True)


@each
@pytest.mark.parametrize("size", [1, 7, 16, 300, 1000])
@pytest.mark.parametrize("reduce", ["add", "max", "min", "mul"])
def test_long_reductions(reduce: str, size: int, generate: Generate) -> None:
    start = Leaf(ref("S"), None, Const(1.0))
    body = along("i", Leaf(ref("S"), reduce, A))
    kernel = LoopTree((start, body), (), buffers(A=("input", size), S=("output", 1)), (("i", size),))
    values = np.random.default_rng(0).uniform(0.9, 1.1, size)
    # A start that is no identity is counted once.
    got = execute(kernel, generate(kernel), {"A": values})["S"]
    np.testing.assert_allclose(got, interpret(kernel, {"A": values})["S"], rtol=1e-12)


# Parallel loops and the ahead part


@each
@pytest.mark.parametrize("lanes", [1, 2, 3, 7])
@pytest.mark.parametrize("step", [1, 4, 64])
def test_parallel_parts_meet_in_the_whole(step: int, lanes: int, generate: Generate) -> None:
    """Each part has temporaries of its own, and the tail belongs to the last."""
    outer = {f"i_{step}": step} if step > 1 else {}
    square = call("mul", ref("T"), ref("T"))
    body = along(
        "i", Leaf(ref("T"), None, ref("A", i=1, **outer)), Leaf(ref("Z", i=1, **outer), None, square)
    )
    body = along("i", body, step=step) if outer else body
    kinds: dict[str, Kind] = {"A": ("input", 37), "Z": ("output", 37), "T": ("temporary", 1, 1)}
    same(tree(replace(body, kind="parallel"), **kinds), generate, lanes)


@each
@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_parts_share_what_does_not_move(lanes: int, generate: Generate) -> None:
    """A lane may have the tail alone: what the other iterations have loaded is not there for it."""
    row = along("i", Leaf(ref("Z", i=1, j=3, j_2=6), None, call("add", A, ref("B", j=1, j_2=2))))
    body = replace(along("j", along("j", row), step=2), kind="parallel")
    kinds = buffers("float64", A=("input", 3), B=("input", 5), Z=("output", 15))
    same(LoopTree((body,), (), kinds, (("i", 3), ("j", 5))), generate, lanes)


@each
def test_each_root_is_an_entry_where_one_is_parallel(generate: Generate) -> None:
    first, second = along("i", Leaf(ref("T", i=1), None, A)), along("i", Leaf(Z, None, ref("T", i=1)))
    kinds: dict[str, Kind] = {"A": ("input", 37), "Z": ("output", 37), "T": ("temporary", 37)}
    assert [e.parallel for e in generate(tree(first, second, **kinds)).entries] == [False]
    mixed = tree(first, replace(second, kind="parallel"), **kinds)
    assert [(e.parallel, e.iterations) for e in generate(mixed).entries] == [(False, 1), (True, 37)]
    same(mixed, generate, lanes=2)


@each
def test_the_ahead_part_has_entries_of_its_own(generate: Generate) -> None:
    pack = along("i", Leaf(ref("P", i=1), None, call("neg", A)))
    body = along("i", Leaf(Z, None, ref("P", i=1)))
    kinds = buffers("float64", A=("input", 37), Z=("output", 37), P=("ahead", 37))
    kernel = LoopTree((body,), (pack,), kinds, (("i", 37),))
    assert len(generate(kernel).ahead_entries) == 1
    same(kernel, generate)


# Schedules


def scheduled(program: Program, *steps: LoopStep) -> Schedule:
    schedule = unscheduled(program)
    for step in steps:
        schedule = step.apply(schedule)
    return schedule


SCHEDULES = {
    "parallel iterations and their tail": scheduled(
        parse(MATMUL, {"m": 37, "n": 20, "k": 9}), Split("m", 8), Parallel("m:8")
    ),
    # Gathers, scatters and one element at a time.
    "an innermost loop that strides through everything": scheduled(
        parse("C[m,n] += A[k,m] * B[n,k]", {"m": 21, "n": 19, "k": 18}), Reorder(("n", "k", "m"))
    ),
    "weights packed in the order of use": scheduled(
        parse(MATMUL, {"m": 12, "n": 48, "k": 32}).with_constants(["B"]),
        Split("n", 16),
        Reorder(("n:16", "k", "m", "n")),
        Pack("B", "root", ahead=True),
    ),
    # Both walk 16 channels at a time, but by different strides in the packed tensor.
    "a loop of vectors inside one of as many elements": scheduled(
        parse("O[k,y,x] += I[c,y+r,x+s] * W[k,c,r,s]", {"k": 2, "c": 64, "y": 2, "x": 40, "r": 3, "s": 3}),
        Split("x", 20),
        Split("c", 16),
        Reorder(("k", "y", "x:20", "r", "s", "c:16", "x", "c")),
        Pack("I"),
    ),
}


@each
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str, generate: Generate) -> None:
    assert wrong(SCHEDULES[name], generate, cores=2) is None


@each
def test_code_that_schedules_share_is_of_the_very_padding(generate: Generate) -> None:
    for size, pad in ((40, 0.0), (40, 1.0), (41, 1.0), (40, 0.0)):
        program = parse(f"y[i] max= pad(x[i + r - 1], {pad})", {"i": size, "r": 3}, {"x": (size,)})
        kernel = lower(unscheduled(program))
        assert kernel.views
        y = aligned(program.type["y"])
        bound = Kernel(program, kernel, generate(kernel)).bind({"x": np.full(size, -1, np.float32)}, {"y": y})
        bound()
        assert y[0] == y[-1] == pad
        assert (y[1:-1] == -1).all()


@each
def test_mixed_types_are_refused(generate: Generate) -> None:
    kernel = matmul(2, 2, 2, ("m", "n", "k"))
    mixed = replace(kernel, buffers=(*kernel.buffers[:2], replace(kernel.buffers[2], dtype="float64")))
    with pytest.raises(TargetError, match="mixed element types: float32, float64"):
        generate(mixed)
