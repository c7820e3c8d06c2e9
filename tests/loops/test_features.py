"""Features of candidates: counts are those of an execution, and the width is the same for all."""

import hashlib
from math import log2

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from fuzz.candidates import cases
from fuzz.case import prepared
from loops.counted import Execution
from loops.random_trees import random_trees
from loops.test_emulate import points
from loops.trees import matmul
from planish.core import Cache, Candidate, Machine
from planish.loops.build import schedule_of, tree_of
from planish.loops.features.executions import Executions
from planish.loops.features.fixed_width import LOOPS, SCHEMA, features_of
from planish.loops.features.footprint import footprint, union
from planish.loops.features.loop_rows import NAMES, TreeRows
from planish.loops.features.touching import WORK, Visits
from planish.loops.ir.annotated import AnnotatedTree, Vectors
from planish.loops.ir.tree import Loop, LoopTree
from planish.loops.lang.parse import parse
from planish.loops.lang.program import Program
from planish.loops.lower import physical, virtual
from planish.loops.steps import Pack, Reorder, Split

WIDE = Vectors(16, 32, True)
MACHINE = Machine(64, 32, (Cache(1, 1 << 15, 64), Cache(2, 1 << 20, 64)))


def check_counts(tree: LoopTree, *, exact: bool = False) -> None:
    """Compare with what is counted when a tree is executed."""
    counted = Execution(tree).counts
    for visit in Visits(tree).visits:
        counts = counted[id(visit.loop)]
        assert (visit.entries, visit.passes) == (counts.entries, counts.passes)
        assert visit.leaves == counts.leaves
        assert dict(zip(WORK, visit.work, strict=True)) == {kind: counts.work[kind] for kind in WORK}
        assert {name: touch.accesses for name, touch in visit.touches.items()} == counts.accesses
        for name, elements in counts.first.items():
            touched = visit.touched(name)
            assert len(elements) <= touched
            assert not exact or len(elements) == touched, (name, visit.loop.id)


@given(random_trees())
def test_counts_are_those_of_an_execution(tree: LoopTree) -> None:
    check_counts(tree)


def test_counts_are_those_of_an_execution_of_any_candidate() -> None:
    """Random programs and candidates: tails, windows, padding, packing, staging, fused axes, look-ups."""
    for number in range(40):
        for case in list(cases(29, number))[:8]:
            program, _, _ = prepared(case.program, special=False, seed=case.seed)
            if points(program) <= 1500:
                check_counts(tree_of(program, case.candidate))


@pytest.mark.parametrize(
    "order", [("m_3", "n_4", "k", "m", "n"), ("k_5", "m", "n_8", "n", "k"), ("n_4", "n_3", "m", "k", "n")]
)
def test_of_a_product_the_elements_that_are_touched_are_exact(order: tuple[str, ...]) -> None:
    check_counts(matmul(7, 10, 11, order), exact=True)


def test_where_references_overlap_their_elements_are_counted_once() -> None:
    row = footprint(0, [(1, 8)])
    assert union([row, row]) == 8
    assert union([row, footprint(1, [(1, 8)])]) == 9
    assert footprint(5, [(1, 3), (1, 6)]).elements == 8  # a window of 3, moved 6 times
    assert footprint(0, [(10, 4), (1, 3)]).elements == 12
    assert footprint(0, [(2, 5), (4, 5)]).elements == 13
    assert union([footprint(0, [(2, 5)]), footprint(1, [(2, 5)])]) == 10


def test_tails_and_windows_are_counted_exactly() -> None:
    """A window of d = y + r is as long as what remains of y, and shorter in the tail of y."""
    tree = LoopTree((), (), (), (("y", 10), ("r", 3)), (("d", (("y", 1), ("r", 1))),))
    outside = Executions.of(tree).inside(Loop("y", 4, ()))
    assert outside.count == 3
    assert outside.inside(Loop("d", 1, ())).count == 6 + 6 + 4


def context(annotated: AnnotatedTree) -> list[dict[str, float]]:
    return [dict(zip(NAMES, row, strict=True)) for row in TreeRows(annotated, MACHINE).rows()]


def blocked(order: tuple[str, ...] = ("m_4", "n_32", "k", "m", "n")) -> LoopTree:
    return matmul(8, 640, 300, order)


@pytest.mark.parametrize("annotate", ["numbered", "named"])
def test_rows_tell_what_was_decided(annotate: str) -> None:
    tree = blocked()
    numbered = annotate == "numbered"
    rows = context(physical.annotate(tree, WIDE) if numbered else virtual.annotate(tree, WIDE, "float32"))
    rows_of = [row for row in rows if row["sums"] > 0]
    outer, _, k, m, n = rows_of
    assert (outer["counted"], k["counted"], m["unrolled"], n["unrolled"]) == (1, 1, 1, 1)
    assert [row["lanes"] for row in rows_of] == [1, 1, 1, 1, 16]
    assert [row["reduces"] for row in rows_of] == [0, 0, 1, 0, 0]
    assert k["extent"] == pytest.approx(log2(301))
    assert k["leaves"] == pytest.approx(log2(1 + 300 * 4 * 32))
    # C is buffer 0, A 1 and B 2; registers hold C while k runs.
    assert (outer["level 0"], k["level 0"]) == (1, 0)
    assert k["stride 2"] == pytest.approx(log2(1 + 640))
    assert k["reuse 2"] == pytest.approx(log2(1 + 4))
    assert k["bytes 2"] == pytest.approx(log2(1 + 4 * 300 * 32))
    assert (k["level 2"], outer["level 2"]) == (2, 2)


def test_a_loop_that_only_begins_sums_in_registers_is_not_executed() -> None:
    rows = context(physical.annotate(blocked(), WIDE))
    assert [row["counted"] + row["unrolled"] for row in rows] == [1, 1, 0, 0, 1, 1, 1]


PRODUCT = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 70, "n": 90, "k": 65})


def described(*candidates: Candidate, of: Program = PRODUCT) -> NDArray[np.float32]:
    return features_of([schedule_of(of, candidate) for candidate in candidates], WIDE, MACHINE)


def test_a_candidate_has_as_many_features_as_any_other() -> None:
    splits = [Split("k", 32), Split("m", 24), Split("m", 6), Split("n", 48), Split("n", 16)]
    deep = Candidate((*splits, Split("k", 8), Split("k", 4), Split("n", 8), Split("m", 2)))
    found = described(Candidate(), Candidate(tuple(splits)), deep)
    assert found.shape == (3, SCHEMA.width)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert list(found[:, SCHEMA.names.index("path")]) == [3, 8, 12]
    assert SCHEMA.width == len(set(SCHEMA.names))


def test_more_loops_than_there_is_room_for_are_left_out() -> None:
    program = parse("B[m] = A[m]", {"m": 1 << 15})
    splits = [Split("m", 1 << i) for i in range(LOOPS + 1, 0, -1)]
    found = described(Candidate(tuple(splits)), of=program)
    assert found[0, SCHEMA.names.index("path")] == LOOPS + 2


def test_what_a_step_decides_is_seen() -> None:
    """Each of these changes some feature: packing, the order, splitting."""
    plain = Candidate((Split("m", 7),))
    others = [Pack("B", "root"), Reorder(("k", "m:7", "n", "m")), Split("n", 16)]
    found = described(plain, *(plain.then(step) for step in others))
    assert len({row.tobytes() for row in found}) == len(found)


def test_a_program_of_one_element_has_features() -> None:
    found = described(Candidate(), of=parse("B[] = A[] * A[]", {}))
    assert found[0, SCHEMA.names.index("path")] == 0


def test_the_table_of_names_has_a_version() -> None:
    """Who changes what a column means, or their order, raises the version and this digest."""
    digest = hashlib.sha256("\n".join(SCHEMA.names).encode()).hexdigest()[:12]
    assert (SCHEMA.name, SCHEMA.version, SCHEMA.width, digest) == ("loops/path", 1, 793, "3fce30e7ae0a")
