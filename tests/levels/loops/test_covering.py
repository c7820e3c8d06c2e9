"""The random sets of inputs: what is selected, and on what every output reacts."""

from __future__ import annotations

import numpy as np
import pytest

from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.reference.covering import SELECTED, extreme_inputs, varied_cases


def extremes(program: Program, count: int) -> list[tuple[int, int]]:
    """List where the greatest and the least element of B are in each set."""
    sets = [extreme_inputs(program, 0, n, count)["B"] for n in range(count)]
    return [(int(np.argmax(each)), int(np.argmin(each))) for each in sets]


def test_extremes_are_at_every_index_of_a_small_input() -> None:
    found = extremes(parse("C[] min= B[u,l]", {"u": 5, "l": 2}, dtype="float16"), 10)
    for which in zip(*found, strict=True):
        assert set(which) == set(range(10))


def test_extremes_are_in_the_first_and_last_row_and_spread_over_all() -> None:
    found = extremes(parse("C[] min= B[v,k]", {"v": 65, "k": 32}), SELECTED)
    for which in zip(*found, strict=True):
        rows, columns = np.unravel_index(which, (65, 32))
        assert {0, 64} <= set(rows.tolist())
        assert np.diff(np.unique(rows)).max() <= 6
        assert len(set(columns.tolist())) >= 28


@pytest.mark.parametrize("reduce", ["min", "max"])
@pytest.mark.parametrize("row", [0, 4, 64])
def test_a_reduction_to_one_element_that_leaves_out_a_row_shows(reduce: str, row: int) -> None:
    program = parse(f"C[] {reduce}= B[v,k]", {"v": 65 if row > 4 else 5, "k": 3})
    of = {"min": np.min, "max": np.max}[reduce]
    arrays = [case.inputs["B"] for case in varied_cases(program, 0, 16)]
    assert any(of(array) != of(np.delete(array, row, 0)) for array in arrays)


def test_some_sums_lie_on_either_side_of_a_number_far_out() -> None:
    program = parse("C[n,q] += A[l,q,n]; Z[n,q] = where(C[n,q] < -90, E[n], -1)", {"l": 17, "n": 8, "q": 11})
    below = [np.mean(case.inputs["A"].sum(0, dtype=float) < -90) for case in varied_cases(program, 0, 16)]
    assert sum(0.1 < share < 0.9 for share in below) >= 3


def test_exponentials_underflow_where_their_zeros_are_compared() -> None:
    program = parse("Z[i] = where(exp(min(A[i], 2)) != 0, E[i], -1)", {"i": 3}, dtype="float64")
    for sets in (16, 96):
        assert any((case.inputs["A"] < -750).any() for case in varied_cases(program, 0, sets))


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("seed", range(3))
def test_sets_go_a_rare_way_through_an_expression(seed: int) -> None:
    """The greatest that exp can be here is below E only where E is large, and A is above 2."""
    text = "O[] max= X[k]; Z[] = where(exp(min(O[] * D[], 2)) <= E[], exp(min(O[] * D[], 2)), 0.5)"
    program = parse(text, {"k": 5}, dtype="float64")
    arrays = [case.inputs for case in varied_cases(program, seed, 96)]
    both = [each for each in arrays if each["X"].max() * each["D"] > 2 and each["E"] >= np.exp(2)]
    assert both


def test_a_program_without_inputs_has_sets() -> None:
    assert varied_cases(parse("P[i] = 2; O[i] = log(P[i])", {"i": 3}), 0, 16)


def test_some_sets_look_the_greatest_element_up_once() -> None:
    program = parse("O[] max= min(abs(L[I[t]]), B[])", {"t": 100}, shapes={"L": (11,)})
    once = 0
    for case in varied_cases(program, 0, 96):
        index = np.clip(case.inputs["I"], 0, 10).astype(int)
        looked_up = np.minimum(abs(case.inputs["L"][index]), case.inputs["B"])
        once += int(np.count_nonzero(looked_up == looked_up.max()) == 1)
    assert once >= 3
