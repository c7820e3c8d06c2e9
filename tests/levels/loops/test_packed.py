"""Products of elements of several numbers: dot products, of integers in int32, of bfloat16 in float32."""

import platform
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from amounts import examples
from levels.loops.random_schedules import schedules
from levels.loops.running import GENERATORS, outputs_of, wrong
from planish.core import ProgramError, TargetError
from planish.levels.loops.backends import available_backends, compile_with, multiplied_types
from planish.levels.loops.codegen.x86.compile import compile_tree as compile_x86
from planish.levels.loops.ir.schedule import Schedule, unscheduled
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.parse import parse, parse_canonical
from planish.levels.loops.lang.program import BFLOAT16X2, UINT8X4
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.cases import choose_cases
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.reference.numpy_baseline import numpy_callable
from planish.levels.loops.reference.reference import reference

Array = NDArray[Any]
GEMM = "C[m,n] += A[m,k] * B[k,n]"
TYPES = "A=uint8x4,B=int8x4"
PAIR_TYPES = "A=bfloat16x2,B=bfloat16x2"
PAIR_BACKENDS = [name for name in available_backends() if BFLOAT16X2 in multiplied_types(name)]
BACKENDS = [name for name in available_backends() if UINT8X4 in multiplied_types(name)]
needs_vnni = pytest.mark.skipif(not BACKENDS, reason="the processor has neither AVX512_VNNI nor AVX-VNNI")
PROGRAMS = (
    GEMM,
    "C[m,n] += B[k,n] * A[m,k]",
    "T[m,n] += A[m,k] * B[n,k]; C[m,n] = relu(T[m,n] * s[n] + b[n])",
    "T[m,n] += pad(A[m+k-1], 0) * B[k,n]; C[m,n] = T[m,n] / s[n]",
    "T[m,n] += pad(A[2*m+k-1,j], 0) * B[k,j,n]; C[m,n] = max(T[m,n], 0); D[n] max= C[m,n]",
)


def random_bytes(shape: tuple[int, ...], seed: int) -> Array:
    """Return integers from the whole range, many of them at its ends, as elements of four."""
    draw = np.random.default_rng(seed)
    values = draw.integers(0, 256, (*shape, 4))
    ends = draw.choice([0, 127, 128, 255], values.shape)
    return np.where(draw.random(values.shape) < 0.3, ends, values).astype(np.uint8)


@needs_vnni
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sizes", [(1, 1, 2), (7, 67, 129), (12, 64, 4000)])
def test_sums_are_those_of_numpy_in_int64(backend: str, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    made = parse(GEMM, {"m": m, "n": n, "k": k}, dtype=TYPES)
    a, b = random_bytes((m, k), 1), random_bytes((k, n), 2)
    inputs = {"A": aligned(made.type["A"]), "B": aligned(made.type["B"])}
    inputs["A"][...], inputs["B"][...] = a.view(np.uint32)[..., 0], b.view(np.int32)[..., 0]
    found = outputs_of(unscheduled(made), lambda tree: compile_with(backend, tree), inputs)
    wanted = np.einsum("mkq,knq->mn", a.astype(np.int64), b.view(np.int8).astype(np.int64))
    np.testing.assert_array_equal(found["C"], wanted.astype(np.float32))


@needs_vnni
@settings(max_examples=examples(60))
@given(st.data())
def test_any_schedule_is_right(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(PROGRAMS))
    axes = ("m", "n", "k", *(("j",) if "j" in text else ()))
    made = parse(text, {axis: data.draw(st.integers(1 + (axis in "mk"), 40)) for axis in axes}, dtype=TYPES)
    assert parse_canonical(made.text) == made
    schedule: Schedule = data.draw(schedules(made.with_constants(["B"])))
    name = data.draw(st.sampled_from(BACKENDS))
    assert wrong(schedule, GENERATORS[name]) is None, f"{made.text}\n{schedule.text}\n{name}"


def random_pairs(shape: tuple[int, ...], seed: int) -> Array:
    """Return numbers of bfloat16 of many magnitudes, as elements of two."""
    draw = np.random.default_rng(seed)
    values = draw.standard_normal((*shape, 2)) * 2.0 ** draw.integers(-8, 9, (*shape, 2))
    return values.astype(numpy_type("bfloat16"))


@pytest.mark.parametrize("backend", PAIR_BACKENDS)
@pytest.mark.parametrize("sizes", [(1, 1, 2), (7, 67, 129), (12, 64, 400)])
def test_sums_of_pairs_are_those_of_numpy_in_float64(backend: str, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    made = parse(GEMM, {"m": m, "n": n, "k": k}, dtype=PAIR_TYPES)
    a, b = random_pairs((m, k), 1), random_pairs((k, n), 2)
    inputs = {"A": aligned(made.type["A"]), "B": aligned(made.type["B"])}
    inputs["A"][...], inputs["B"][...] = a.view(np.uint32)[..., 0], b.view(np.uint32)[..., 0]
    found = outputs_of(unscheduled(made), lambda tree: compile_with(backend, tree), inputs)
    wanted = np.einsum("mkq,knq->mn", a.astype(np.float64), b.astype(np.float64))
    scale = np.einsum("mkq,knq->mn", np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64)))
    assert np.all(np.abs(found["C"] - wanted) <= 2 * k * 2.0**-24 * scale)


@settings(max_examples=examples(60))
@given(st.data())
def test_any_schedule_of_pairs_is_right(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(PROGRAMS))
    axes = ("m", "n", "k", *(("j",) if "j" in text else ()))
    sizes = {axis: data.draw(st.integers(1 + (axis in "mk"), 40)) for axis in axes}
    made = parse(text, sizes, dtype=PAIR_TYPES)
    assert parse_canonical(made.text) == made
    schedule: Schedule = data.draw(schedules(made.with_constants(["B"])))
    widths = [name for name in GENERATORS if name.startswith("portable")]
    name = data.draw(st.sampled_from([*widths, *(name for name in PAIR_BACKENDS if name in GENERATORS)]))
    assert wrong(schedule, GENERATORS[name]) is None, f"{made.text}\n{schedule.text}\n{name}"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="code for x86-64")
@settings(max_examples=examples(20))
@given(st.data())
def test_pairs_are_multiplied_by_one_instruction_with_avx512_bf16(data: st.DataObject) -> None:
    sizes = {axis: data.draw(st.integers(2, 40)) for axis in "mnk"}
    schedule: Schedule = data.draw(schedules(parse(GEMM, sizes, dtype=PAIR_TYPES).with_constants(["B"])))
    tree = lower(schedule)
    code = compile_x86(tree, "avx512", extras=frozenset({"avx512_bf16"})).assembly("f")
    assert "vdpbf16ps" in code
    assert "vfmadd" not in code
    with pytest.raises(TargetError, match="need AVX512_BF16"):
        compile_x86(tree, "avx512", extras=frozenset({"avx512_vnni"}))


@pytest.mark.parametrize("types", [TYPES, PAIR_TYPES])
@pytest.mark.parametrize("text", PROGRAMS)
def test_numpy_agrees_with_the_reference(text: str, types: str) -> None:
    made = parse(text, {"m": 5, "n": 3, "k": 6} | ({"j": 2} if "j" in text else {}), dtype=types)
    inputs = make_inputs(made, 3)
    outputs = {name: aligned(made.type[name]) for name in made.outputs}
    numpy_callable(made, {**inputs, **outputs})()
    assert check(made, outputs, reference(made, inputs)) is None
    changed = {**inputs, "A": inputs["A"] ^ np.uint32(1 << 24)}
    numpy_callable(made, {**changed, **outputs})()
    assert check(made, outputs, reference(made, inputs)) is not None


@pytest.mark.parametrize(
    ("text", "dtype", "message"),
    [
        ("C[m] += A[m,k]", "A=uint8x4", "is no sum of products of uint8x4 and int8x4"),
        (GEMM, "A=uint8x4,B=uint8x4", "is no sum of products"),
        (GEMM, "A=uint8x4", "is no sum of products"),
        (GEMM, "A=bfloat16x2,B=int8x4", "is no sum of products"),
        (GEMM, "A=bfloat16x2,B=bfloat16", "is no sum of products"),
        ("C[m,n] += A[m,k] * B[k,n] * 2", PAIR_TYPES, "is no sum of products"),
        ("C[m,k] = A[m] * B[k]", TYPES, "is no sum of products"),
        ("C[m] += pad(A[m+k-1], 1) * B[k]", TYPES, "padding of A is not 0"),
        ("T[m] += A[m+k] * B[k]; C[m] = pad(T[m-1], 0)", TYPES, "can neither be padded nor looked up in"),
        (GEMM, f"{TYPES},C=int8x4", "C is written, so it cannot be int8x4"),
        (GEMM, "A=quint8", "element type 'quint8' is not supported"),
    ],
)
def test_other_uses_are_refused(text: str, dtype: str, message: str) -> None:
    sizes = {"m": 5, "k": 6} | ({"n": 3} if "n]" in text else {})
    with pytest.raises(ProgramError, match=message):
        parse(text, sizes, dtype=dtype)


def test_sums_that_int32_may_not_hold_are_refused() -> None:
    with pytest.raises(ProgramError, match="sums 16,449 products of four, more than 16,448"):
        parse(GEMM, {"m": 1, "n": 1, "k": 16_449}, dtype=TYPES)


def test_back_ends_without_the_instruction_say_so() -> None:
    made = parse(GEMM, {"m": 2, "n": 3, "k": 4}, dtype=TYPES)
    with pytest.raises(TargetError, match="need AVX512_VNNI or AVX-VNNI"):
        compile_with("portable", lower(unscheduled(made)))
    options = {"size": "m=2,n=3,k=4", "dtype": TYPES, "backend": "portable"}
    with pytest.raises(TargetError, match="need AVX512_VNNI or AVX-VNNI"):
        LoopsLevel().target(LoopsLevel().load(GEMM, options), 1)
    pairs = LoopsLevel().load(GEMM, {**options, "dtype": PAIR_TYPES})
    assert LoopsLevel().target(pairs, 1).toolchain["backend"] == "portable"
    if "x86-avx2" in available_backends():
        made = parse(GEMM, {"m": 2, "n": 3, "k": 4}, dtype=PAIR_TYPES)
        with pytest.raises(TargetError, match="need AVX512_BF16, or the portable back end"):
            compile_with("x86-avx2", lower(unscheduled(made)))


def test_kernels_that_mistake_a_sign_or_lose_a_summand_are_refused() -> None:
    made = parse("T[n] += A[k] * B[k,n]; C[n] = T[n] * s[n] + b[n]", {"k": 784, "n": 8}, dtype=TYPES)
    cases = choose_cases(made, 1)

    def wrong_by(dtype: str, *, adds: bool) -> list[bool]:
        found = list[bool]()
        for case in cases:
            a, b, s, bias = (case.inputs[name] for name in ("A", "B", "s", "b"))
            a, b = a.view(dtype).reshape(-1, 4), b.view("int8").reshape(784, 8, 4)
            total = np.einsum("kq,knq->n", a.astype(np.int64), b.astype(np.int64)).astype(np.float32)
            found.append(check(made, {"C": total * s + bias * adds}, case.outputs) is not None)
        return found

    assert not any(wrong_by("uint8", adds=True))
    assert any(wrong_by("int8", adds=True))
    assert any(wrong_by("uint8", adds=False))
