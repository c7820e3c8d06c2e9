"""Sums of more terms than float32 has integers are verified to the last term, in whatever order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from amounts import examples
from planish.core import Candidate, ProgramError
from planish.levels.loops.backends import kernel_of, this_machine, tree_of
from planish.levels.loops.evaluator import Verifier, final_verifier, search_verifier
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.reference.cases import choose_cases
from planish.levels.loops.reference.views import Array
from planish.levels.loops.space.template import TemplateSpace

ROWS, COLUMNS = 4099, 4157
Order = Callable[[Array], np.float32]


class Summed:
    """Sums of X[a] * Y[b] in float32.

    Args:
        verifier: whose arrays are summed.
        order: sums a row after the other.
        change: what is done wrong to the rows' and the columns' numbers.
    """

    def __init__(
        self, verifier: Verifier, order: Order, change: Callable[[Array, Array], Sequence[np.float32]]
    ) -> None:
        self._verifier, self._order, self._change = verifier, order, change

    def prepare(self) -> None:
        pass

    def poison(self, byte: int = 0xFF) -> None:
        pass

    def repeat(self, times: int) -> None:
        assert times == 1
        x, y = self._verifier.inputs["X"], self._verifier.inputs["Y"]
        total = self._order(np.multiply.outer(x, y).reshape(-1))
        for term in self._change(x, y):
            total = np.float32(total + term)
        self._verifier.outputs["O"][...] = total


def in_a_row(terms: Array) -> np.float32:
    return np.cumsum(terms, dtype=np.float32)[-1]


def from_behind(terms: Array) -> np.float32:
    return in_a_row(terms[::-1])


def by_lanes(terms: Array) -> np.float32:
    lanes = terms[: len(terms) // 16 * 16].reshape(-1, 16)
    found = np.add.reduce(lanes, axis=0, dtype=np.float32)
    return np.float32(found.sum(dtype=np.float32) + terms[len(lanes) * 16 :].sum(dtype=np.float32))


def by_columns(terms: Array) -> np.float32:
    return in_a_row(np.ascontiguousarray(terms.reshape(ROWS, COLUMNS).T).reshape(-1))


def none(x: Array, y: Array) -> Sequence[np.float32]:
    del x, y
    return []


ORDERS: dict[str, Order] = {
    "in a row": in_a_row,
    "from behind": from_behind,
    "in pairs": lambda terms: terms.sum(dtype=np.float32),
    "by lanes": by_lanes,
    "by columns": by_columns,
}
WRONG: dict[str, Callable[[Array, Array], Sequence[np.float32]]] = {
    "the first is missing": lambda x, y: [-x[0] * y[0]],
    "the last is missing": lambda x, y: [-x[-1] * y[-1]],
    "one is missing": lambda x, y: [-x[1234] * y[4000]],
    "one is there twice": lambda x, y: [x[77] * y[3]],
    "one is another": lambda x, y: [x[5] * y[6], -x[5] * y[7], x[5] * y[6], -x[5] * y[8]],
}


@pytest.fixture(scope="module")
def long() -> Program:
    program = parse("O[] += X[a] * Y[b]", {"a": ROWS, "b": COLUMNS})
    assert ROWS * COLUMNS > 1 << 24
    return program


@pytest.fixture(scope="module")
def verifier(long: Program) -> Verifier:
    return search_verifier(long)


@pytest.mark.parametrize("order", ORDERS)
def test_a_long_sum_is_right_in_any_order(verifier: Verifier, order: str) -> None:
    assert verifier.wrong(Summed(verifier, ORDERS[order], none)) is None


@pytest.mark.parametrize("what", WRONG)
def test_one_term_of_many_counts(verifier: Verifier, what: str) -> None:
    assert verifier.wrong(Summed(verifier, by_lanes, WRONG[what])) is not None


def test_kernels_of_long_sums_pass(long: Program) -> None:
    target = this_machine(1)
    space = TemplateSpace(long, target)
    generator = np.random.default_rng(0)
    verifier = final_verifier(long)
    for candidate in (Candidate(), *(space.sample(generator) for _ in range(3))):
        bound = kernel_of(long, candidate, target, tree_of(long, candidate)).bind(
            verifier.inputs, verifier.outputs
        )
        assert verifier.wrong(bound) is None


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("O[] += X[a] * Y[b]", {"a": ROWS, "b": COLUMNS}), ("O[c] += X[a,c]", {"a": 3 << 20, "c": 2})],
)
def test_all_sets_of_inputs_leave_no_tolerance(text: str, sizes: dict[str, int]) -> None:
    program = parse(text, sizes)
    for seed in range(4):
        for case in choose_cases(program, seed):
            assert case.testable == 1
            assert not case.outputs.expected["O"].tolerance.any()


@pytest.mark.slow
def test_a_sum_that_grows_too_long_is_refused_with_its_reason() -> None:
    program = parse("O[] += abs(X[a] * Y[b])", {"a": 8192, "b": 8192})
    # A wrong kernel would pass within what rounding may do.
    with pytest.raises(ProgramError, match="67,108,864 terms") as error:
        search_verifier(program)
    assert "float64" in (error.value.hint or "")


@pytest.mark.slow
def test_what_looks_mixed_and_is_not_is_found_out() -> None:
    program = parse("O[] += X[a] * Y[b] * X[a] * Y[b]", {"a": 8192, "b": 8192})
    with pytest.raises(ProgramError, match="do not cancel"):
        search_verifier(program)


THIRDS = 1 << 20


@pytest.fixture(scope="module")
def thirds() -> Program:
    return parse("O[] += X[a] * 0.3", {"a": THIRDS})


@pytest.mark.parametrize("order", [in_a_row, from_behind, by_lanes])
def test_terms_that_are_rounded_may_be_summed_in_any_order(thirds: Program, order: Order) -> None:
    for seed in range(examples(3)):
        for case in choose_cases(thirds, seed, least=2):
            expected = case.outputs.expected["O"]
            total = order(case.inputs["X"] * np.float32(0.3))
            assert expected.low <= total <= expected.high


def test_a_few_missing_terms_show_though_terms_are_rounded(thirds: Program) -> None:
    case = min(choose_cases(thirds, 0), key=lambda case: float(case.outputs.expected["O"].tolerance))
    expected, terms = case.outputs.expected["O"], case.inputs["X"] * np.float32(0.3)
    assert expected.tolerance < 16 * np.abs(terms).max()
    missing = [abs(part.sum()) for part in terms.reshape(-1, THIRDS // 64)]
    assert np.median(missing) > 4 * expected.tolerance
