"""What an agent sees of a schedule: the thesis' twenty integers for each loop, and the graph's edges."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Cache, Candidate, Machine, Target, rng
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.space.cursor import CursorSpace, Down, SplitBy, Up


def row(
    cursor: int, size: int, tail: int, computes: int, edges: tuple[int, int, int], **strides: int
) -> list[int]:
    """Write a row; edges to C, A and B, and strides by their bins: b4=2 is two of more than 8, up to 16."""
    bins = [strides.get(f"b{number}", 0) for number in range(16)]
    context = [4, 1, *[0] * 7]  # float32, on a processor of which nothing is known
    return [cursor, size, tail, computes, *bins, *edges, 0, *context]


def test_a_matmul_is_seen_as_in_the_thesis() -> None:
    """C is 30 by 20, A 30 by 12 and B 12 by 20, so m moves C by 20 elements and A by 12."""
    space = CursorSpace(parse("C[m,n] += A[m,k] * B[k,n]", {"m": 30, "n": 20, "k": 12}))
    seen = space.observe(Candidate((Down(),))).tolist()
    assert seen[0] == row(0, 30, 0, 1, (20, 12, 0), b4=1, b5=1)
    assert seen[1] == row(1, 20, 0, 1, (1, 0, 1), b0=2)
    assert seen[2] == row(0, 12, 0, 1, (0, 1, 20), b0=1, b5=1)
    assert not any(map(any, seen[3:])), "what is no loop is nothing"


def test_a_split_leaves_a_tail_and_moves_by_whole_tiles() -> None:
    """30 rows are 7 tiles of 4 and 2 rows more; a tile moves C by 80 elements and A by 48."""
    space = CursorSpace(parse("C[m,n] += A[m,k] * B[k,n]", {"m": 30, "n": 20, "k": 12}))
    seen = space.observe(Candidate((SplitBy(4), Down()))).tolist()
    assert seen[0] == row(0, 7, 2, 1, (80, 48, 0), b6=1, b7=1)
    assert seen[1] == row(1, 4, 0, 1, (20, 12, 0), b4=1, b5=1)


def test_edges_tell_what_the_histogram_does_not() -> None:
    """Of a square product m moves as k of the one with A transposed; but the one moves C."""
    plain = CursorSpace(parse("C[m,n] += A[m,k] * B[k,n]", {"m": 16, "n": 16, "k": 16})).observe(Candidate())
    turned = CursorSpace(parse("C[m,n] += A[k,m] * B[k,n]", {"m": 16, "n": 16, "k": 16})).observe(Candidate())
    assert plain[0, 4:20].tolist() == turned[2, 4:20].tolist()
    assert plain[0, 20:24].tolist() == [16, 16, 0, 0]
    assert turned[2, 20:24].tolist() == [0, 16, 16, 0]


def test_element_type_and_processor_are_seen_in_each_row() -> None:
    caches = Cache(1, 32 << 10), Cache(2, 1 << 20)
    target = Target("", cores=2, machine=Machine(32, 16, caches))
    product = "C[m,n] += A[m,k] * B[k,n]"
    space = CursorSpace(parse(product, {"m": 30, "n": 20, "k": 12}, dtype="float64"), target=target)
    seen = space.observe(Candidate((SplitBy(4),)))
    assert seen[:4, 24:].tolist() == [[8, 1, 2, 32, 16, 32, 1024, 0, 0]] * 4
    assert not seen[4:].any()
    integers = CursorSpace(parse(product, {"m": 30, "n": 20, "k": 12}, dtype="int32"), target=target)
    assert integers.observe(Candidate())[0, 24:26].tolist() == [4, 0]


def test_other_nests_follow_and_do_not_compute() -> None:
    space = CursorSpace(parse("T[m,n] += A[m,k] * B[k,n]; C[m,n] = relu(T[m,n])", {"m": 8, "n": 8, "k": 8}))
    seen = space.observe(Candidate())
    assert seen[:, 3].tolist()[:5] == [1, 1, 1, 0, 0]
    assert seen[:, 1].tolist()[:5] == [8, 8, 8, 8, 8]


@given(st.integers(0, 1000))
def test_equal_states_look_alike(seed: int) -> None:
    """Whatever way leads there; each shows one cursor, and every iteration of every axis."""
    space = CursorSpace(parse("C[m,n] += A[m,k] * B[k,n]", {"m": 30, "n": 20, "k": 12}))
    candidate = space.sample(rng(seed))
    seen = space.observe(candidate)
    assert seen.shape == (10, space.observed.width)
    assert seen[:, 0].sum() == 1
    by_step = {step: space.observe(space.extend(candidate, step)) for step in space.steps(candidate)}
    if Up() in by_step:
        back = space.extend(space.extend(candidate, Up()), Down())
        assert np.array_equal(space.observe(back), seen)
        assert not np.array_equal(by_step[Up()], seen)
