"""Features that are read from schedules alone: what they count, and that they tell candidates apart."""

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.core import Cache, Candidate, Machine, Step, Target
from planish.levels.loops.features import SCHEMA
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.steps import Pack, Parallel, Reorder, Split, Unroll

MACHINE = Machine(64, 32, (Cache(1, 1 << 15, 64), Cache(2, 1 << 20, 64)))
PRODUCT = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 64, "n": 96, "k": 50}).with_constants(["B"])
TILED = (Split("n", 32), Split("m", 4), Reorder(("m:4", "n:32", "k", "m", "n")))


def described(*candidates: Sequence[Step], of: Program = PRODUCT) -> NDArray[np.float32]:
    space = TemplateSpace(of, Target("", machine=MACHINE))
    return space.features([Candidate(tuple(steps)) for steps in candidates])


def count(row: NDArray[np.float32], name: str) -> float:
    """Undo the logarithm of a count."""
    return 2 ** float(row[SCHEMA.names.index(name)]) - 1


def test_loops_are_described_from_the_innermost_one_outward() -> None:
    row = described(TILED)[0]
    trips = [count(row, f"trips, loop {i}") for i in range(6)]
    assert trips == pytest.approx([32, 4, 50, 3, 16, 1], rel=1e-5)
    entries = [count(row, f"entries, loop {i}") for i in range(3)]
    assert entries == pytest.approx([16 * 3 * 50 * 4, 16 * 3 * 50, 16 * 3], rel=1e-5)
    # What is loaded in vectors is B: 50 x 32 of it in the loop k.
    assert count(row, "touched of the loaded, loop 2") == pytest.approx(50 * 32, rel=1e-5)
    assert count(row, "touched of the other, loop 2") == pytest.approx(50 * 4, rel=1e-5)
    assert count(row, "stride of the loaded, loop 2") == pytest.approx(96, rel=1e-5)


def test_the_register_tile_is_seen() -> None:
    row = described(TILED)[0]
    named = dict(zip(SCHEMA.names, row.tolist(), strict=True))
    assert count(row, "results in registers") == pytest.approx(4 * 32, rel=1e-5)
    assert count(row, "registers of results") == pytest.approx(4 * 2, rel=1e-5)
    assert named["loads"] == pytest.approx((2 + 4) / 8)
    assert named["idle lanes"] == 0


def test_what_a_step_decides_is_seen() -> None:
    """Each of these changes some feature: packing, packing ahead, threads, unrolling, the order."""
    others = (Pack("B", "root"), Pack("B", "root", ahead=True), Parallel("m:4"), Unroll("m"))
    order = (*TILED[:2], Reorder(("n:32", "m:4", "k", "m", "n")))
    found = described(TILED, order, *[(*TILED, step) for step in others])
    assert len({row.tobytes() for row in found}) == len(found)


def test_schedules_of_other_spaces_have_features_too() -> None:
    """More loops than there is room for, none at all, and steps that the template never takes."""
    many = [Split("m", 1 << i) for i in range(14, 0, -1)]
    rows = [
        described(many, of=parse("B[m] = A[m]", {"m": 1 << 15})),
        described((), of=parse("B[] = A[] * A[]", {})),
        described((Split("k", 7),)),
    ]
    assert np.isfinite(np.concatenate(rows)).all()


def test_the_table_of_names_has_a_version() -> None:
    """Who changes what a column means, or their order, raises the version and this digest."""
    digest = hashlib.sha256("\n".join(SCHEMA.names).encode()).hexdigest()[:12]
    assert (SCHEMA.name, SCHEMA.version, SCHEMA.width, digest) == ("loops/schedule", 1, 274, "edf8d85e5dab")
