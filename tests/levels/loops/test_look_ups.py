"""Tensors subscripted by the elements of others: on every back end, against NumPy, with any index."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levels.loops.running import Array, baseline, both, check_others, everywhere, run, samples
from planish.core.errors import ProgramError, ScheduleError
from planish.levels.loops.backends import available_backends
from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.lang.notation import Tensor, axes, pad, program
from planish.levels.loops.lang.parse import parse, parse_canonical
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.cases import choose_cases
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.steps import Pack, Reorder, Split, Vectorize, fusable
from planish.levels.loops.testing.interpreter import interpret


@everywhere
@both
@pytest.mark.parametrize(("t", "d"), [(1, 1), (1, 7), (9, 1), (9, 16), (13, 37), (40, 100)])
def test_embedding(backend: str, dtype: str, t: int, d: int) -> None:
    made = parse("O[t,d] = E[I[t],d] + P[t,d]", {"t": t, "d": d}, {"E": (50, d)}, dtype=dtype)
    random = np.random.default_rng(0)
    table, added = random.standard_normal((50, d)).astype(dtype), random.standard_normal((t, d)).astype(dtype)
    index = random.integers(0, 50, t)
    inputs = {"E": table, "I": index.astype(dtype), "P": added}
    schedules = [unscheduled(made)]
    if t > 1 and d > 1:
        schedules.append(Vectorize("t").apply(schedules[0]))
    if d > 8 and t > 1:
        schedules.append(Reorder(("d:8", "t", "d")).apply(Split("d", 8).apply(schedules[0])))
    for schedule in schedules:
        np.testing.assert_array_equal(run(schedule, inputs, backend), table[index] + added)
    np.testing.assert_array_equal(reference(made, inputs)["O"].astype(dtype), table[index] + added)
    np.testing.assert_array_equal(baseline(made, inputs), table[index] + added)


@everywhere
@both
def test_any_index_is_safe(backend: str, dtype: str) -> None:
    """Indices outside are brought to the nearest end, fractions are cut, NaN is 0."""
    index = np.array([0, 4, -1, 5, 1e30, -1e30, np.inf, -np.inf, np.nan, 2.9, -0.5, 3], dtype)
    expected = np.array([0, 4, 0, 4, 4, 0, 4, 0, 0, 2, 0, 3])
    table = np.arange(5 * 19).reshape(5, 19).astype(dtype)
    made = parse("O[t,d] = E[I[t],d]", {"t": 12}, {"E": (5, 19)}, dtype=dtype)
    inputs = {"E": table, "I": index}
    np.testing.assert_array_equal(run(made, inputs, backend), table[expected])
    check_others(made, inputs, table[expected])


@everywhere
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_indices_of_whole_numbers(backend: str, dtype: str, index: str) -> None:
    """They are brought to the nearest end too, however far outside they are, and take any schedule."""
    made = parse("O[t,d] = E[I[t],d] * 2 + P[t,d]", {"t": 12}, {"E": (5, 19)}, {"": dtype, "I": index})
    assert parse_canonical(made.text) == made
    assert (made.arithmetic, made.type["I"].dtype) == ("float32" if dtype == "bfloat16" else dtype, index)
    ends = np.iinfo(index)
    inputs = make_inputs(made)
    inputs["I"][:] = [0, 4, -1, 5, ends.min, ends.max, 2, 3, 1, 0, 4, 2]
    rows = [0, 4, 0, 4, 0, 4, 2, 3, 1, 0, 4, 2]
    wanted = inputs["E"].astype("f8")[rows] * 2 + inputs["P"]
    answer = reference(made, inputs).expected["O"]
    np.testing.assert_array_equal(answer.value, wanted)
    output = baseline(made, inputs)
    assert answer.accepts(output.astype(answer.low.dtype)).all()
    np.testing.assert_array_equal(interpret(lower(unscheduled(made)), inputs)["O"], output.reshape(-1))
    split = Reorder(("d:8", "t", "d")).apply(Split("d", 8).apply(unscheduled(made)))
    for schedule in (unscheduled(made), split, Vectorize("t").apply(unscheduled(made))):
        assert answer.accepts(run(schedule, inputs, backend).astype(answer.low.dtype)).all()
    with pytest.raises(ScheduleError, match=f"cannot pack 'I': it has indices of {index}"):
        Pack("I", "root").apply(unscheduled(made))


def test_a_table_longer_than_float32_counts() -> None:
    rows = (1 << 24) + 3
    made = parse("O[t] = E[I[t]]", {"t": 2}, {"E": (rows,)}, {"I": "int64"})
    inputs = {"E": np.arange(rows, dtype=np.float32), "I": np.array([rows - 2, rows])}
    inputs["E"][-3:] = 1, 2, 3
    for backend in available_backends():
        assert run(made, inputs, backend).tolist() == [2, 3]


SUBSCRIPTS: list[tuple[str, tuple[int, ...], Callable[[Array, Array], Array]]] = [
    ("O[t] = E[I[t]]", (9,), lambda e, i: e[i]),
    ("O[] += E[I[t]]", (9,), lambda e, i: e[i].sum()),
    ("O[d] += E[I[t],d]", (9, 21), lambda e, i: e[i].sum(0)),
    ("O[d] max= E[d,I[t]]", (21, 9), lambda e, i: e[:, i].max(1)),
    ("O[t,d,b] = E[d,I[t],b]", (4, 9, 5), lambda e, i: e[:, i].transpose(1, 0, 2)),
    ("O[t] = E[t,I[t]]", (14, 9), lambda e, i: e[np.arange(14), i]),
    ("O[t,d] = E[I[t],d] * E[0,d]", (9, 21), lambda e, i: e[i] * e[0]),
]


@everywhere
@pytest.mark.parametrize(("text", "shape", "expected"), SUBSCRIPTS)
def test_the_index_may_be_any_subscript(
    backend: str, text: str, shape: tuple[int, ...], expected: Callable[[Array, Array], Array]
) -> None:
    made = parse(text, {"t": 14}, {"E": shape})
    index = np.random.default_rng(1).integers(0, 9, 14)
    inputs = {"E": np.random.default_rng(2).integers(-8, 8, shape).astype("f4"), "I": index.astype("f4")}
    np.testing.assert_array_equal(run(made, inputs, backend), expected(inputs["E"], index))
    check_others(made, inputs, expected(inputs["E"], index))


@everywhere
def test_what_argmax_gives_is_an_index(backend: str) -> None:
    text = "A[t] = argmax(X[t,k]); O[t,d] = E[A[t],d]"
    made = parse(text, {"t": 7, "k": 11}, {"E": (11, 5)})
    inputs = make_inputs(made)
    expected = inputs["E"][inputs["X"].argmax(1)]
    np.testing.assert_array_equal(run(made, inputs, backend), expected)


@everywhere
def test_samples_of_the_space_are_right(backend: str) -> None:
    made = parse("O[t,d] = E[I[t],d] * W[t]; Q[d] += O[t,d]", {"t": 9}, {"E": (11, 40)})
    inputs = make_inputs(made)
    answer = reference(made, inputs).expected["Q"]
    for schedule in samples(made, backend, 8):
        assert answer.accepts(run(schedule, inputs, backend)).all()


def test_in_python() -> None:
    t, d = axes("t d")
    E, I, O = Tensor("E", shape=(50, 8)), Tensor("I", shape=(3,)), Tensor("O")  # noqa: E741
    O[t, d] = E[I[t], d]
    made = program(O)
    assert made == parse("O[t,d] = E[I[t],d]", {"t": 3}, {"E": (50, 8)})
    assert parse_canonical(made.text) == made
    with pytest.raises(ProgramError, match="cannot be padded"):
        pad(E[I[t], d], 0)
    with pytest.raises(ProgramError, match="subscripts a tensor"):
        _ = E[E[I[t], d], d]


def test_indices_stay_wide_where_all_else_is_narrow() -> None:
    """bfloat16 has no 257."""
    made = parse("O[t,d] = E[I[t],d]", {"t": 4, "d": 8}, {"E": (1000, 8)}, dtype="bfloat16")
    assert {name: made.type[name].dtype for name in "EIO"} == {
        "E": "bfloat16",
        "I": "float32",
        "O": "bfloat16",
    }


def test_tables_are_neither_packed_nor_fused() -> None:
    made = parse("O[t,a,b] = E[a,b,I[t]]", {"t": 3}, {"E": (4, 5, 9)})
    with pytest.raises(ScheduleError, match="reads it by the elements of another tensor"):
        Pack("E", "root").apply(unscheduled(made))
    assert ("a", "b") not in set(fusable(made))


def test_kernels_are_verified_with_indices_outside() -> None:
    made = parse("O[t,d] = E[I[t],d]", {"t": 200}, {"E": (5, 3)})
    indices = np.concatenate([case.inputs["I"] for case in choose_cases(made, 0)])
    assert indices.min() < 0
    assert indices.max() >= 5
    assert set(range(5)) <= set(indices.tolist())


def test_what_is_no_number_looks_up_the_first_in_the_baseline_too() -> None:
    made = parse("J[t] = log(X[t]); O[t,d] = E[J[t],d]", {"t": 2, "d": 2}, {"E": (3, 2)})
    inputs = {"X": np.array([-1, np.e**2], np.float32), "E": np.arange(6, dtype=np.float32).reshape(3, 2)}
    assert baseline(made, inputs)[0].tolist() == [0, 1]


@given(t=st.integers(16, 60), rows=st.integers(1, 200), seed=st.integers(0, 1000))
def test_few_indices_too_lie_outside_in_every_way(t: int, rows: int, seed: int) -> None:
    made = parse("O[t] = E[I[t]]", {"t": t}, {"E": (rows,)})
    indices = make_inputs(made, seed)["I"]
    assert {-1, -1000, rows, rows + 1000} <= set(indices.tolist())
    assert any(0 <= i < rows for i in indices)
