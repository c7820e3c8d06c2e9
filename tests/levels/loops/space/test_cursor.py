"""The step space of LoopTune, without and with decisions of the back end: what its actions do."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from planish.core import Candidate, PlanishError, ScheduleError, Space, Step
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.cursor import (
    STEPS,
    AnnotationSpace,
    CursorSpace,
    CursorStep,
    Down,
    PackHere,
    SplitBy,
    SwapDown,
    SwapUp,
    UnrollHere,
    Up,
    VectorizeHere,
    resolve,
)
from planish.testing.spaces import SpaceConformance


def matmul(extent: int = 64) -> Program:
    return parse("C[m,n] += A[m,k] * B[k,n]", {"m": extent, "n": extent, "k": extent})


class TestCursorSpace(SpaceConformance):
    def space(self) -> Space:
        return CursorSpace(matmul())

    def known_steps(self) -> Mapping[str, type[Step]]:
        return STEPS

    def replay(self, space: Space, candidate: Candidate) -> None:
        del space
        resolve(matmul(), candidate)


class TestAnnotationSpace(TestCursorSpace):
    def space(self) -> Space:
        return AnnotationSpace(matmul())


@pytest.mark.parametrize(
    ("actions", "state"),
    [
        ((), "C: m, n, k @ m"),
        ((Down(),), "C: m, n, k @ n"),
        ((Down(), Up()), "C: m, n, k @ m"),
        ((Down(), SwapUp()), "C: n, m, k @ n"),
        ((Down(), SwapDown()), "C: m, k, n @ n"),
        ((SplitBy(16),), "C: m:16, m, n, k @ m:16"),
        ((SplitBy(4), SplitBy(8)), "C: m:32, m:4, m, n, k @ m:32"),
        ((SplitBy(16), Down(), SplitBy(4)), "C: m:16, m:4, m, n, k @ m:4"),
        ((Down(), VectorizeHere()), "C: m, k, n @ k"),
        ((Down(), UnrollHere()), "C: m, n unroll, k @ n"),
        ((SplitBy(16), PackHere(1)), "C: m:16, m, n, k\npack B at m:16 in C @ m:16"),
    ],
)
def test_actions_move_the_cursor_and_change_the_loop_under_it(
    actions: tuple[CursorStep, ...], state: str
) -> None:
    annotates = isinstance(actions[-1] if actions else None, VectorizeHere | UnrollHere | PackHere)
    space = AnnotationSpace(matmul()) if annotates else CursorSpace(matmul())
    assert space.state_key(Candidate(actions)) == state


def test_the_matmul_of_a_register_tile_is_reached_from_the_start() -> None:
    """The main idea of figure 3.8: tiles of m and n with k inside of them."""
    down = (Down(),)
    actions = (SplitBy(8), *down * 2, SplitBy(16), SwapUp(), *down * 3, SwapUp(), SwapUp())
    assert resolve(matmul(), Candidate(actions)).text == "C: m:8, n:16, k, m, n"


def test_only_legal_actions_are_listed() -> None:
    space = CursorSpace(matmul(8), loops_max=4)
    assert space.steps(Candidate()) == [Down(), SwapDown(), SplitBy(4)]
    split = Candidate((SplitBy(4),))
    assert space.steps(split) == [Down()], "the two loops of m keep their order, and four loops are all"


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ((Up(),), "cursor is on the outermost loop"),
        ((SplitBy(4), SwapDown()), "axis 'm' keep their order"),
        ((Down(), Down(), VectorizeHere()), "is the innermost"),
        ((UnrollHere(), UnrollHere()), "unrolled already"),
        ((PackHere(1), PackHere(1)), "packed already"),
        ((PackHere(2),), "reads 2 tensors"),
    ],
)
def test_an_illegal_action_says_why(actions: tuple[CursorStep, ...], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        resolve(matmul(), Candidate(actions))


def test_a_program_of_more_loops_than_are_observed_is_refused() -> None:
    axes = "abcdefghijk"
    program = parse(f"y[] += A[{','.join(axes)}]", dict.fromkeys(axes, 2))
    with pytest.raises(PlanishError, match="has 11 loops, and the space of a cursor has 10 at most"):
        CursorSpace(program).start()
    assert CursorSpace(parse(f"y[] += A[{','.join(axes)}]", {**dict.fromkeys(axes, 2), "a": 1})).start()


def test_a_program_without_loops_has_no_actions() -> None:
    program = parse("y[] = a[]", {})
    assert CursorSpace(program).steps(Candidate()) == []
    assert CursorSpace(program).state_key(Candidate()) == "y:  @ "


def test_an_annotation_is_seen_in_the_row_of_its_loop() -> None:
    space = AnnotationSpace(matmul())
    made = Candidate((SplitBy(16), PackHere(1), Down(), UnrollHere()))
    seen = space.observe(made)
    assert seen.shape == (10, len(space.observed.names))
    assert seen[:3, -3:].tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0]]
    plain = CursorSpace(matmul()).observe(Candidate((SplitBy(16), Down())))
    assert np.array_equal(seen[:, :-3], plain)


def test_the_cursor_s_own_candidates_mean_the_same_here() -> None:
    plain, annotating = CursorSpace(matmul()), AnnotationSpace(matmul())
    made = Candidate((SplitBy(16), Down()))
    assert plain.state_key(made) == annotating.state_key(made)
    assert set(plain.steps(made)) < set(annotating.steps(made))
