"""Tensors that are stored in fewer bits than they are computed in: widened, summed wide, rounded once."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from amounts import examples
from levels.loops.random_programs import programs
from levels.loops.random_schedules import schedules
from levels.loops.running import BUILDERS, outputs_of, wrong, wrong_in_tree
from planish.core import Candidate, PlanishError, ProgramError, Target, TargetError
from planish.levels.loops.backends import Library, available_backends, compile_with, tree_of
from planish.levels.loops.codegen.kernel import arithmetic_of
from planish.levels.loops.evaluator import verify_again
from planish.levels.loops.export import function_of
from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.ir.tree import Buffer, Leaf, Loop, LoopTree, Ref
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.notation import Tensor, axes, program
from planish.levels.loops.lang.parse import parse, parse_canonical
from planish.levels.loops.lang.program import Const, Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.reference.numpy_baseline import numpy_callable
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.steps import Pack, Reorder, Split

Array = NDArray[Any]
GEMM = "C[m,n] += A[m,k] * B[k,n]"
SIZES = {"m": 5, "n": 37, "k": 9}
NARROW = ("float16", "bfloat16")
BACKENDS = available_backends()


# Notation


def test_sums_of_narrow_tensors_are_kept_wide() -> None:
    assert parse(GEMM, {"m": 2, "n": 3, "k": 4}, dtype="float16").text == (
        "C_1[m, n] += (A[m, k] * B[k, n]); C[m, n] = C_1[m, n] | k=4,m=2,n=3 | "
        "A:float16[2,4] B:float16[4,3] C_1:float32[2,3] C:float16[2,3]"
    )


@pytest.mark.parametrize(
    ("dtype", "types"),
    [
        ("float32", {"A": "float32", "B": "float32", "C": "float32", "D": "float32"}),
        ("bfloat16", {"A": "bfloat16", "B": "bfloat16", "C": "float32", "D": "bfloat16"}),
        ("A=float16", {"A": "float16", "B": "float32", "C": "float32", "D": "float32"}),
        ("bfloat16,B=float16", {"A": "bfloat16", "B": "float16", "C": "float32", "D": "bfloat16"}),
        ("float16, D=float32", {"A": "float16", "B": "float16", "C": "float32", "D": "float32"}),
        ("qint8", {"A": "qint8", "B": "qint8", "C": "float32", "D": "float32"}),
        ("float16,B=qint8", {"A": "float16", "B": "qint8", "C": "float32", "D": "float16"}),
        ("float64", {"A": "float64", "B": "float64", "C": "float64", "D": "float64"}),
    ],
)
def test_types_of_all_and_of_some(dtype: str, types: dict[str, str]) -> None:
    made = parse(f"{GEMM}; D[m,n] = relu(C[m,n])", SIZES, dtype=dtype)
    assert {name: kind.dtype for name, kind in made.types} == types
    assert parse_canonical(made.text) == made


def test_types_in_python() -> None:
    m, n, k = axes("m n k")
    A, B, C = Tensor("A", "float16"), Tensor("B"), Tensor("C", "bfloat16")
    C[m, n] += A[m, k] * B[k, n]
    assert program(C, sizes=SIZES) == parse(GEMM, SIZES, dtype="A=float16,C=bfloat16")
    assert program(C, sizes=SIZES, dtype="float32") == parse(GEMM, SIZES)


def test_parts_of_a_concatenation_that_are_reduced() -> None:
    made = parse("O[m,a+b] += A[m,k,a] | B[m,b]", {"m": 2, "a": 3, "b": 4, "k": 5}, dtype="float16")
    assert made.text.startswith("O_1[m, a] += A[m, k, a]; O[m, a] = O_1[m, a]; O[m, b + 3] = B[m, b] | ")


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        ("half", "element type 'half' is not supported"),
        ("A=half", "element type 'half' is not supported"),
        ("=float16", 'names no element types. Write dtype="float16", or dtype="A=float16"'),
        ("float16,float32", "has two element types"),
        ("Z=float16", "an element type is given for 'Z', which no statement has"),
        (
            "C=float16",
            "C is written and read, so it cannot be float16. Give float16 to inputs and outputs; what",
        ),
        ("D=qint8", "D is written, so it cannot be qint8: inputs alone are"),
        ("B=qint8,D=int32", "the tensors have types int32, qint8"),
        ("A=float16,B=float64", "the tensors have types float16, float64. Give all of them one; float16,"),
    ],
)
def test_errors(dtype: str, message: str) -> None:
    with pytest.raises(ProgramError) as raised:
        parse(f"{GEMM}; D[m,n] = relu(C[m,n])", SIZES, dtype=dtype)
    assert message in str(raised.value)


def test_a_tree_that_rounds_each_partial_sum_is_refused() -> None:
    leaf = Leaf(Ref("C", 0, ()), "add", Ref("A", 0, ((("k", 1), 1),)))
    kinds = Buffer("A", "float16", 4, "input"), Buffer("C", "float16", 1, "output")
    tree = LoopTree((Leaf(leaf.target, None, Const(0.0)), Loop("k", 1, (leaf,))), (), kinds, (("k", 4),))
    with pytest.raises(TargetError, match="C of float16 is reduced into"):
        arithmetic_of(tree)


# What is computed


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", BUILDERS)
def test_a_product_is_that_of_numpy(name: str, dtype: str) -> None:
    """Of small integers, so that every order gives the same sums: only the last rounding is left."""
    made = parse(GEMM, {"m": 13, "n": 70, "k": 29}, dtype=dtype)
    random = np.random.default_rng(0)
    inputs = {n: random.integers(-9, 10, made.type[n].shape).astype(numpy_type(dtype)) for n in "AB"}
    a, b = (inputs[n].astype(np.float32) for n in "AB")
    np.testing.assert_array_equal(
        outputs_of(unscheduled(made), BUILDERS[name], inputs)["C"], (a @ b).astype(numpy_type(dtype))
    )


TOUGH = np.array(
    [0, -0.0, 1, np.inf, -np.inf, np.nan, 65504, 65519.996, 65520, 65536, -7e4, 1e38, 3.4e38, 6e-5, 6e-8,
     2.9e-8, 3e-8, 1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-11 + 2**-20, 1 + 2**-8, 1 + 3 * 2**-8,
     1 + 2**-8 + 2**-20, 0.1, -0.3],
    np.float32,
)  # fmt: skip
"""Ties, overflow, numbers below the smallest normal one of float16, and what is no number."""


def special(dtype: str) -> Array:
    """Numbers that are hard to round, and some thousands of random bits."""
    bits = np.random.default_rng(1).integers(0, 1 << 32, 4000, np.uint32)
    quiet = np.array([0x7F800001, 0xFFBFFFFF, 0x7FFFFFFF], np.uint32).view(np.float32)
    found = np.concatenate([TOUGH, quiet, bits.view(np.float32)])
    # AVX512_BF16 takes what is below the smallest normal number for 0.
    return found[~(np.abs(found) < 2.0**-126) | (found == 0)] if dtype == "bfloat16" else found


SHAPES = ("C[i,j] = A[i,j]", "C[j,i] = A[i,j]", "C[i] = A[2*i]", "C[i,j] = A[i]")


@pytest.mark.parametrize(("text", "dtype"), list(product(SHAPES[:2], NARROW)))
@pytest.mark.parametrize("name", BUILDERS)
def test_numbers_are_rounded_as_numpy_does(name: str, text: str, dtype: str) -> None:
    values = special(dtype)
    rows = values.size // 37
    values = values[: rows * 37].reshape(rows, 37)
    made = parse(text, {"i": rows, "j": 37}, dtype=f"C={dtype}")
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(numpy_type(dtype))
    got = outputs_of(unscheduled(made), BUILDERS[name], {"A": values})["C"]
    expected = expected.T if "j,i" in text else expected
    np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


@pytest.mark.parametrize(("text", "dtype"), list(product(SHAPES, NARROW)))
@pytest.mark.parametrize("name", BUILDERS)
def test_all_numbers_are_widened_as_numpy_does(name: str, text: str, dtype: str) -> None:
    made = parse(text, {"i": 1771, "j": 37} if "j" in text else {"i": 1771}, dtype=f"A={dtype}")
    shape = made.type["A"].shape
    bits = np.resize(np.arange(1 << 16, dtype=np.uint16), shape)
    a = bits.view(numpy_type(dtype))
    got = outputs_of(unscheduled(made), BUILDERS[name], {"A": a})["C"]
    wide = a.astype(np.float32)
    expected = {"C[j,i] = A[i,j]": wide.T, "C[i] = A[2*i]": wide[::2]}.get(text, wide)
    np.testing.assert_array_equal(
        got, np.broadcast_to(expected[:, None], got.shape) if "A[i]" in text else expected
    )


@pytest.mark.parametrize("text", SHAPES)
@pytest.mark.parametrize("name", BUILDERS)
def test_all_numbers_of_qint8_are_widened_as_numpy_does(name: str, text: str) -> None:
    made = parse(text, {"i": 131, "j": 37} if "j" in text else {"i": 131}, dtype="A=qint8")
    a = np.resize(np.arange(256, dtype=np.uint8), made.type["A"].shape).view(np.int8)
    got = outputs_of(unscheduled(made), BUILDERS[name], {"A": a})["C"]
    wide = a.astype(np.float32)
    expected = {"C[j,i] = A[i,j]": wide.T, "C[i] = A[2*i]": wide[::2]}.get(text, wide)
    np.testing.assert_array_equal(
        got, np.broadcast_to(expected[:, None], got.shape) if "A[i]" in text else expected
    )


@settings(max_examples=examples(80))
@given(programs(points=1200, dtypes=NARROW), st.data())
def test_any_schedule_of_any_program_is_right(made: Program, data: st.DataObject) -> None:
    schedule = data.draw(schedules(made.with_constants(made.inputs)))
    name = data.draw(st.sampled_from(list(BUILDERS)))
    found = wrong(schedule, BUILDERS[name])
    assert found is None, f"{found}\n{made.text}\n{schedule.text}\n{name}"


@settings(max_examples=examples(30))
@given(
    programs(points=200, dtypes=NARROW, functions=("abs", "relu", "max", "sub"), reductions=("add", "max"))
)
def test_numpy_and_the_interpreter_agree_with_the_reference(made: Program) -> None:
    inputs = make_inputs(made)
    outputs = {name: aligned(made.type[name]) for name in made.outputs}
    numpy_callable(made, {**inputs, **outputs})()
    assert check(made, outputs, reference(made, inputs)) is None
    assert wrong_in_tree(lower(unscheduled(made)), made) is None


@settings(max_examples=examples(40))
@given(
    programs(
        points=400, dtypes=["qint8"], functions=("abs", "relu", "max", "sub"), reductions=("add", "max")
    ),
    st.data(),
)
def test_any_schedule_of_any_program_of_qint8_is_right(made: Program, data: st.DataObject) -> None:
    schedule = data.draw(schedules(made.with_constants(made.inputs)))
    name = data.draw(st.sampled_from(list(BUILDERS)))
    assert wrong(schedule, BUILDERS[name]) is None
    assert wrong_in_tree(lower(unscheduled(made)), made) is None


# Verification


def test_padding_of_qint8_is_one_of_its_numbers() -> None:
    with pytest.raises(ProgramError, match="is not a value of int8"):
        parse("C[m] = pad(A[m-1], 0.5)", {"m": 4}, dtype="A=qint8")


@pytest.mark.parametrize("dtype", NARROW)
def test_an_element_that_was_cut_off_instead_of_rounded_fails(dtype: str) -> None:
    made = parse(GEMM, {"m": 8, "n": 8, "k": 64}, dtype=dtype)
    inputs = make_inputs(made)
    answer = reference(made, inputs)
    right = answer["C"].astype(np.float32).astype(numpy_type(dtype))
    assert check(made, {"C": right}, answer) is None
    toward_zero = right.view(np.uint16) - (np.abs(right.astype(np.float64)) > np.abs(answer["C"]))
    message = check(made, {"C": toward_zero.astype(np.uint16).view(numpy_type(dtype))}, answer)
    assert message is not None
    assert message.startswith("C[")


TILED = (Split("m", 6), Split("n", 16), Reorder(("m:6", "n:16", "k", "m", "n")))


@pytest.mark.parametrize(("backend", "dtype"), list(product(BACKENDS, (*NARROW, "int8", "qint8"))))
def test_default_schedules_and_copies_are_right(backend: str, dtype: str) -> None:
    """Copies of integers are as small as the tensor; the steps are those of a tile, operands packed."""
    made = parse(GEMM, {"m": 30, "n": 50, "k": 70}, dtype=dtype)
    start = TemplateSpace(made, Target("", frozenset({backend}), 1, {"backend": backend})).start()
    packs = [(Pack("A", "root"), Pack("B", "m")), (*TILED, Pack("A", "m:6"), Pack("B", "root"))]
    for candidate in (start, *map(Candidate, packs)):
        tree = tree_of(made, candidate)
        assert verify_again(Kernel(made, tree, compile_with(backend, tree))) is None
        copies = {b.dtype for b in tree.buffers if b.kind == "temporary"}
        assert copies <= {"int8" if dtype == "int8" else "float32"}


@pytest.mark.parametrize(("backend", "dtype"), list(product(BACKENDS, (*NARROW, "qint8"))))
def test_copies_made_ahead_are_narrow_where_they_are_read_a_few_times(backend: str, dtype: str) -> None:
    steps = Split("n", 16), Pack("B", "root", ahead=True)
    for rows, kind in ((3, dtype), (70, "float32")):
        made = parse(GEMM, {"m": rows, "n": 50, "k": 70}, dtype=f"B={dtype}").with_constants(["B"])
        tree = tree_of(made, Candidate(steps))
        assert {b.dtype for b in tree.buffers if b.kind == "ahead"} == {kind}
        assert verify_again(Kernel(made, tree, compile_with(backend, tree))) is None


@pytest.mark.parametrize("candidate", [Candidate(), Candidate((Library("numpy"),))])
@pytest.mark.parametrize("dtype", [*NARROW, "int8", "qint8"])
def test_a_function_takes_and_returns_such_arrays(dtype: str, candidate: Candidate) -> None:
    made = parse(GEMM, SIZES, dtype=dtype)
    call = function_of(made, candidate, Target("", frozenset({BACKENDS[0]}), 1, {"backend": BACKENDS[0]}))
    inputs = make_inputs(made)
    result = call(inputs["A"], inputs["B"])
    assert result.dtype == {"int8": "int32", "qint8": "float32"}.get(dtype, numpy_type(dtype))
    assert check(made, {"C": result}, reference(made, inputs)) is None
    with pytest.raises(PlanishError, match=f"A is float32.*this was made for {numpy_type(dtype)}"):
        call(inputs["A"].astype(np.float32), inputs["B"])
