"""Several tables of what lists cost, as one."""

from dataclasses import replace

import numpy as np
import pytest

from planish.core import PlanishError
from planish.learn.cost_table import FAILED, Columns, CostRow, CostTable, empty_table
from planish.learn.joined_costs import join_tables

FEATURES = np.zeros((2, 1), np.int64)
WIDE = Columns("22.1.8", "x86_64", ("text_bytes", "instructions"), (("a",), ("b",), ("c",)), ("x",))
NARROW = replace(WIDE, objectives=("instructions",), lists=(("c",), ("d",), ("b",)))


def tables() -> list[CostTable]:
    wide = CostRow("1" * 32, "one", "train", [90, 9], [80, 8], [[1, 2], None, [5, 6]], FEATURES)
    narrow = CostRow("2" * 32, "two", "test", [7], [6], [[3], [4], [5]], FEATURES)
    return [empty_table(WIDE).with_rows([wide]), empty_table(NARROW).with_rows([narrow])]


def test_functions_of_all_have_the_costs_of_the_lists_that_all_have() -> None:
    joined = join_tables(tables(), "instructions")
    assert joined.columns == replace(WIDE, objectives=("instructions",), lists=(("b",), ("c",)))
    assert joined.identities.tolist() == ["1" * 32, "2" * 32]
    assert joined.costs[..., 0].tolist() == [[FAILED, 6], [5, 3]]
    assert (joined.baseline.tolist(), joined.unoptimised.tolist()) == ([[8], [6]], [[9], [7]])
    assert joined.lexemes.shape == (2, 2)
    assert joined.split("test").packages.tolist() == ["two"]
    assert joined.features.shape == (2, 2, 1)


def test_features_are_left_out_where_not_all_have_the_same() -> None:
    wide, narrow = tables()
    bare = replace(narrow, columns=replace(NARROW, features=()), features=narrow.features[..., :0])
    joined = join_tables([wide, bare], "instructions")
    assert (joined.columns.features, joined.features.shape) == ((), (2, 2, 0))
    assert joined.costs.tolist() == join_tables([wide, narrow], "instructions").costs.tolist()


def test_what_does_not_fit_together_is_told() -> None:
    wide, narrow = tables()
    with pytest.raises(PlanishError, match="the labels lack text_bytes"):
        join_tables([wide, narrow], "text_bytes")
    older = replace(narrow, columns=replace(NARROW, llvm="3.8.0"))
    with pytest.raises(PlanishError, match="of two kinds, which differ in llvm"):
        join_tables([wide, older], "instructions")
    others = replace(narrow, columns=replace(NARROW, lists=(("d",), ("e",), ("f",))))
    with pytest.raises(PlanishError, match="no list in common"):
        join_tables([wide, others], "instructions")
