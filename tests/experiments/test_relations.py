"""AutoTVM's relation features."""

import numpy as np

from autotvm.relations import RELATIONS, relations
from levels.loops.test_schedule_features import TILED, described
from planish.levels.loops.features import LOOPS, OF_LOOP, SCHEMA
from planish.levels.loops.steps import Reorder, Split


def test_relations_are_maxima_over_the_loops_below_a_threshold() -> None:
    """Of each column by hand, as the paper's equation says; a loop's two features are not torn apart."""
    rows = described(TILED, (), (Split("k", 7),))
    named = [dict(zip(SCHEMA.names, row.tolist(), strict=True)) for row in rows]
    found = relations(rows)
    assert found.shape == (len(rows), RELATIONS.width)
    for column, name in enumerate(RELATIONS.names):
        greatest, _, condition = name.partition(" where ")
        below, _, power = condition.partition(" < 2^")
        assert {greatest, below} <= set(OF_LOOP)
        for row, features in zip(found, named, strict=True):
            loops = [i for i in range(LOOPS) if features[f"{below}, loop {i}"] < float(power)]
            wanted = max((features[f"{greatest}, loop {i}"] for i in loops), default=0)
            assert row[column] == np.float32(max(0, wanted)), name


def test_relations_do_not_depend_on_where_a_loop_stands() -> None:
    """A loop of one iteration, put anywhere, adds no relation of trips: only the order of rows differs."""
    nest = described((Split("m", 4), Reorder(("m:4", "n", "k", "m"))))
    deeper = described((Split("m", 4), Split("m", 8), Reorder(("m:8", "m:4", "n", "k", "m"))))
    trips = [place for place, name in enumerate(RELATIONS.names) if name.startswith("trips where inside")]
    few = [place for place in trips if RELATIONS.names[place].endswith("2^8")]
    assert relations(nest)[0, few] == relations(deeper)[0, few]
