"""Targets that are subscripted by more than axes: on every back end, against NumPy and loops of Python."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from golden_text import Golden
from levels.loops import brute
from levels.loops.running import Array, check_others, everywhere, run, samples
from planish.core.errors import ScheduleError
from planish.levels.loops.backends import available_backends
from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.ir.tree import pseudocode
from planish.levels.loops.lang.notation import Tensor, axes, program
from planish.levels.loops.lang.parse import parse, parse_canonical
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.steps import Pack, Parallel, Reorder, Split, Vectorize


def transposed(x: Array, w: Array) -> Array:
    """A transposed convolution of stride 2, as a sum of shifted copies."""
    out = np.zeros((w.shape[0], 2 * x.shape[1] + w.shape[2] - 2), x.dtype)
    for r in range(w.shape[2]):
        out[:, r : r + 2 * x.shape[1] - 1 : 2] += w[:, :, r] @ x
    return out


def gaps(x: Array, start: float) -> Array:
    out = np.full((x.shape[0], 3 * x.shape[1] - 2), start, x.dtype)
    out[:, ::3] = x
    return out


def interleaved(x: Array) -> Array:
    return x.T.reshape(-1)


def pixels(x: Array) -> Array:
    c, r, s, rows, columns = x.shape
    return x.transpose(0, 3, 1, 4, 2).reshape(c, rows * r, columns * s)


PROGRAMS: list[tuple[str, dict[str, tuple[int, ...]], Callable[..., Array]]] = [
    ("O[i+j] += A[i] * B[j]", {"A": (37,), "B": (5,)}, np.convolve),
    ("O[i+j] += A[i] * B[j]", {"A": (1,), "B": (1,)}, np.convolve),
    ("O[k, 2*t+r] += X[c,t] * W[k,c,r]", {"X": (4, 21), "W": (6, 4, 3)}, transposed),
    ("O[k, 2*t+r] += X[c,t] * W[k,c,r]", {"X": (4, 21), "W": (6, 4, 2)}, transposed),
    ("O[k, 2*t+r] += X[c,t] * W[k,c,r]", {"X": (4, 21), "W": (6, 4, 1)}, transposed),
    ("O[n, 3*i] = X[n,i]", {"X": (3, 19)}, partial(gaps, start=0)),
    ("O[n, 3*i] += X[n,i]", {"X": (3, 19)}, partial(gaps, start=0)),
    ("O[n, 3*i] *= X[n,i]", {"X": (3, 19)}, partial(gaps, start=1)),
    ("O[n, 3*i] max= X[n,i]", {"X": (3, 19)}, partial(gaps, start=-np.inf)),
    ("O[n, 3*i] min= X[n,i]", {"X": (3, 19)}, partial(gaps, start=np.inf)),
    ("O[2*i + r] = X[r,i]", {"X": (2, 19)}, interleaved),
    ("O[c, 3*y + r, 2*x + s] = X[c,r,s,y,x]", {"X": (2, 3, 2, 5, 9)}, pixels),
    ("P[i+j] += A[i] * B[j]; O[p] = P[p+2]", {"A": (37,), "B": (5,), "O": (37,)}, np.convolve),
]


@everywhere
@pytest.mark.parametrize(("text", "shapes", "expected"), PROGRAMS)
def test_against_numpy(
    backend: str, text: str, shapes: dict[str, tuple[int, ...]], expected: Callable[..., Array]
) -> None:
    made = parse(text, {}, shapes)
    assert parse_canonical(made.text) == made
    inputs = make_inputs(made)
    wanted = expected(*inputs.values())
    wanted = wanted[2 : 2 + shapes["O"][0]] if "O" in shapes else wanted
    check_others(made, inputs, wanted)
    for schedule in (unscheduled(made), *samples(made, backend, 4)):
        np.testing.assert_array_equal(run(schedule, inputs, backend), wanted)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64"])
@pytest.mark.parametrize("reduce", ["+=", "max=", "min=", "*="])
def test_types(dtype: str, reduce: str) -> None:
    """Narrow elements are rounded last, from a tensor of the same shape; integers start whole."""
    made = parse(f"O[k, 2*t+r] {reduce} X[t] - W[k,r]", {"t": 5, "r": 3, "k": 2}, {"O": (2, 13)}, dtype)
    assert parse_canonical(made.text) == made
    inputs = make_inputs(made)
    arithmetic = {"int8": np.int32, "float16": np.float32, "float64": np.float64}[dtype]
    if dtype == "int8":
        least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
        edge = {"+=": 0, "*=": 1, "max=": least, "min=": most}[reduce]
        found = reference(made, inputs)["O"]
        assert (found[:, 11:] == edge).all()
    else:
        found, wanted = reference(made, inputs)["O"], brute.run(made, inputs, arithmetic)["O"]
        np.testing.assert_allclose(found, wanted, 1e-3)
    for backend in available_backends():
        assert reference(made, inputs).expected["O"].accepts(run(made, inputs, backend)).all()


def test_sizes_follow_from_the_target() -> None:
    made = parse("O[2*t+i] += X[t] * W[i]", {"i": 3}, {"O": (12,)})
    assert made.size["t"] == 5
    assert made.type["X"].shape == (5,)
    assert parse("O[2*t+i] += X[t] * W[i]", {"i": 3, "t": 5}).type["O"].shape == (11,)


def test_a_fold_in_a_value_is_no_reduction_into_the_target() -> None:
    made = parse("O[2*i] = max(X[i,k])", {"i": 3, "k": 2})
    assert made.text.startswith("O_1[i] max= X[i, k]; O[2*i] = O_1[i] |")
    inputs = {"X": np.arange(-6, 0, dtype=np.float32).reshape(3, 2)}
    assert reference(made, inputs)["O"].tolist() == [-5, 0, -3, 0, -1]


def test_in_python() -> None:
    t, i = axes("t i")
    X, W, O = Tensor("X"), Tensor("W"), Tensor("O")  # noqa: E741
    O[2 * t + i] += X[t] * W[i]
    sizes = {"t": 5, "i": 3}
    assert program(O, sizes=sizes) == parse("O[2*t+i] += X[t] * W[i]", sizes)


def test_where_elements_meet_nothing_is_parallel() -> None:
    made = parse("O[k, 2*t+r] += X[t] * W[k,r]", {"t": 5, "r": 3, "k": 4})
    schedule = unscheduled(made)
    Parallel("k").apply(schedule)
    turned = Reorder(("t", "k", "r")).apply(schedule)
    with pytest.raises(ScheduleError, match=r"its iterations meet in elements of O\[k, r \+ 2\*t\]"):
        Parallel("t").apply(turned)
    with pytest.raises(ScheduleError, match=r"it is written as O\[k, r \+ 2\*t\]"):
        Pack("O", "k").apply(schedule)
    # Of two r each element is reached once.
    once = parse("O[k, 2*t+r] += X[t] * W[k,r]", {"t": 5, "r": 2, "k": 4})
    Parallel("t").apply(Reorder(("t", "k", "r")).apply(unscheduled(once)))


def test_the_target_is_filled_where_its_own_loops_begin(golden: Golden) -> None:
    made = parse("O[k, 2*t+r] += X[c,t] * W[k,c,r]; Z[k,o] = relu(O[k,o])", {"t": 5, "r": 3, "k": 8, "c": 2})
    schedule = Vectorize("t", "O").apply(Split("k", 4, "O").apply(unscheduled(made)))
    golden.check("loops/tree-of-a-spread-target.txt", pseudocode(lower(schedule)))


def test_the_default_schedule_sums_the_channels_in_registers() -> None:
    """Windows are walked around that sum: neighbors in them write the same elements."""
    made = parse("O[k, 2*t+r] += X[c,t] * W[c,k,r]", {}, {"X": (64, 500), "W": (64, 64, 4)})
    orders = [[axis for axis, _ in schedule.loops[0]] for schedule in samples(made, "avx2", 8)]
    for order in orders:
        assert "r" not in order[order.index("c") :] or order[-1] == "r"
    order = orders[0]
    assert order.index("r") < order.index("c") < len(order) - 1
