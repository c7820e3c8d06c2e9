"""Gains of kinds of edits on other modules."""

import json
import math
from importlib.resources import files

import pytest

from levels.hlo.modules import EXAMPLES
from planish.core import Candidate, SearchContext
from planish.levels.hlo import read_program
from planish.levels.hlo.edit_gains import (
    GainRow,
    by_expected_gain,
    gains_of_runs,
    kinds_of,
    known_gain,
    module_profile,
    shipped_gains,
)
from planish.levels.hlo.edits import EDITS, DeleteOp, Fold, ScaleConstant, TileBatch
from planish.levels.hlo.space import PatchSpace

PRODUCT, SUM = "stablehlo.dot_general stablehlo.add", "stablehlo.reduce stablehlo.subtract"
SCALED, LESS = Candidate((ScaleConstant("1", 2.0),)), Candidate((DeleteOp("3", ()),))
LOOP, TILED = Candidate((TileBatch(4, loop=True),)), Candidate((TileBatch(4, loop=False),))


def row(module: str, patch: Candidate, gain: float) -> GainRow:
    return GainRow(module_profile(module), kinds_of(patch), gain)


def test_kinds_are_each_named_once_and_tiles_in_a_loop_are_others() -> None:
    assert kinds_of(Candidate((Fold(("1",)), DeleteOp("3", ()), Fold(("2",))))) == ("DeleteOp", "Fold")
    assert kinds_of(LOOP) != kinds_of(TILED)


def test_a_module_is_described_by_its_operations() -> None:
    profile = module_profile(PRODUCT)
    assert profile == {"add": 0.7071, "dot_general": 0.7071}
    assert module_profile(PRODUCT + " stablehlo.add") != profile


def test_gains_count_by_how_similar_modules_and_kinds_are() -> None:
    rows = [row(PRODUCT, LESS, 1.0), row(SUM, LESS, 0.0), row(PRODUCT, SCALED, 0.5)]
    assert known_gain(PRODUCT, kinds_of(LESS), rows) == (1.0, pytest.approx(1.0, rel=1e-2))
    assert known_gain(SUM, kinds_of(LESS), rows)[0] == 0
    assert known_gain(PRODUCT, kinds_of(LOOP), rows) == (0.0, 0.0)
    gain, weight = known_gain(PRODUCT, kinds_of(Candidate((*LESS.steps, *LOOP.steps))), rows)
    assert gain == 1.0
    assert 0 < weight < 0.1


def test_runs_of_the_user_are_rows() -> None:
    better = Candidate((DeleteOp("4", ()),))
    winners = {PRODUCT: [(LESS, 0.5), (better, 0.25), (SCALED, 1.0), (LOOP, None)]}
    (found,) = gains_of_runs(winners)
    assert (found.kinds, found.gain) == (kinds_of(LESS), pytest.approx(math.log(4)))


def test_what_paid_for_the_user_comes_first_and_kinds_alternate() -> None:
    space = PatchSpace(read_program(EXAMPLES / "transformer.mlir"))
    suggested, unknown = space.suggested, space.seeds()
    assert sorted(each.hash for each in unknown) == sorted(each.hash for each in suggested)
    last = kinds_of(unknown[-1])
    of_kind = [each for each in suggested if kinds_of(each) == last]
    winners = {space.program.text: [(of_kind[0], 1e-3)] * 3}
    known = space.seeds(SearchContext(winners=lambda: winners))
    assert known[0] == of_kind[0]
    assert [each for each in known if kinds_of(each) == last] == of_kind


def test_the_order_of_the_structure_stands_where_nothing_is_known() -> None:
    patches = [SCALED, LESS]
    assert by_expected_gain(PRODUCT, patches, []) == patches
    assert by_expected_gain(PRODUCT, patches, [row(SUM, LESS, 1.0)]) == patches
    useless = [row(SUM, LOOP, 0.0)] * 8
    assert by_expected_gain(PRODUCT, patches, [row(PRODUCT, LESS, 1.0), *useless]) == [LESS, SCALED]


def test_the_shipped_table_is_of_thirty_modules_and_of_edits_that_there_are() -> None:
    rows = shipped_gains()
    text = files("planish.levels.hlo").joinpath("edit_gains.json").read_text()
    assert len({module["hash"] for module in json.loads(text)["modules"]}) >= 30
    assert {kind.partition(" ")[0] for each in rows for kind in each.kinds} <= set(EDITS)
    assert all(0 <= each.gain < 5 for each in rows)
