"""Candidates as a table of their steps, and the importance of its columns."""

from dataclasses import dataclass
from typing import Any

import pytest

from planish.core import Candidate, PlanishError, Step, rng
from planish.levels.graph.passes import ApplyPass, Disable, Offline
from planish.levels.graph.passes import Set as SetOption
from planish.levels.llvm.passes.pipeline import Pass
from planish.levels.loops.steps import Pack, Reorder, Split, Unroll
from planish.plot.steps import LIBRARIES, Column, columns_of, importances_of
from planish.testing.synthetic import Lattice, Set


def _table(*candidates: tuple[Step, ...]) -> dict[str, tuple[Any, ...]]:
    return {column.name: column.values for column in columns_of([Candidate(each) for each in candidates])}


def test_numbers_are_values_and_the_first_option_names_a_column() -> None:
    table = _table((Set(0, 3), Set(1, 2)), (Set(0, 1),), ())
    assert table == {"number of steps": (2, 1, 0), "Set 0": (3, 1, 0), "Set 1": (2, 0, 0)}


def test_steps_of_loops_are_columns_by_their_axes() -> None:
    table = _table(
        (Split("m", 64), Split("m", 4), Unroll("k"), Pack("B", "root")),
        (Split("m", 8), Pack("B", "n:32"), Reorder(("m", "n"))),
    )
    assert table == {
        "number of steps": (4, 3),
        "Split m": (64, 8),
        "Split m (2)": (4, 0),
        "Unroll k": (1, 0),
        "Pack B": ("default", "n:32"),
        "Reorder": ("", "m n"),
    }


def test_passes_are_counted() -> None:
    table = _table((Pass("sroa"), Pass("gvn"), Pass("sroa")), (Pass("gvn"),))
    assert table == {"number of steps": (3, 1), "Pass sroa": (2, 0)}


def test_options_without_numbers_are_texts() -> None:
    table = _table((SetOption("arena", "off"), ApplyPass("fuse")), (Offline(), Disable("fuse")), ())
    assert table["Set arena"] == ("off", "", "")
    assert table["ApplyPass fuse"] == (1, 0, 0)
    assert table["Offline"] == (0, 1, 0)
    assert table["Disable fuse"] == (0, 1, 0)


@dataclass(frozen=True)
class Edit(Step):
    at: int


def test_rare_steps_are_counted_together() -> None:
    table = _table(*[(Edit(number),) for number in range(90)], *[(Edit(7), Edit(200))] * 10)
    assert set(table) == {"number of steps", "Edit 7", "Edit 200", "other Edit"}
    assert sum(table["other Edit"]) == 89


def test_texts_are_ordered_for_a_model() -> None:
    assert Column("a", ("x", "", "y", "x")).codes == [1, 0, 2, 1]
    assert Column("a", (4.0, 0.0)).codes == [4, 0]


LATTICE = Lattice((6, 4, 4))
CANDIDATES = [each for each in LATTICE.candidates() if each.steps]


def _costs(knob: int) -> tuple[float, ...]:
    """Return costs that one knob alone decides."""
    return tuple(float(LATTICE.position(each)[knob]) for each in CANDIDATES)


COLUMNS = tuple(columns_of(CANDIDATES))


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("knob", [0, 1, 2])
def test_what_decides_the_cost_is_most_important(library: str, knob: int) -> None:
    pytest.importorskip(library)
    found = importances_of(COLUMNS, _costs(knob), libraries=(library,))
    (name, most), (_, second), *_ = found.rows
    assert name == f"Set {knob}"
    assert most > 0.5
    assert abs(second) < most / 5
    assert found.accuracy > 0.9
    assert found == importances_of(COLUMNS, _costs(knob), libraries=(library,)), "the same seed"


def test_what_steps_do_not_decide_cannot_be_predicted() -> None:
    noise = tuple(map(float, rng(5).random(len(CANDIDATES))))
    assert importances_of(COLUMNS, noise).accuracy < 0.1


def test_the_library_may_be_missing() -> None:
    with pytest.raises(PlanishError, match="neither is installed"):
        importances_of(COLUMNS, _costs(0), libraries=("no_such_library",))
