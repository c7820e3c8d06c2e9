"""The step space with the back end's decisions among its actions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from planish.core import Candidate, ScheduleError, Space, Step
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
    UnrollHere,
    VectorizeHere,
    resolve,
)
from planish.testing.spaces import SpaceConformance


def matmul() -> Program:
    return parse("C[m,n] += A[m,k] * B[k,n]", {"m": 64, "n": 64, "k": 64})


class TestAnnotationSpace(SpaceConformance):
    def space(self) -> Space:
        return AnnotationSpace(matmul())

    def known_steps(self) -> Mapping[str, type[Step]]:
        return STEPS

    def replay(self, space: Space, candidate: Candidate) -> None:
        del space
        resolve(matmul(), candidate)


@pytest.mark.parametrize(
    ("actions", "state"),
    [
        ((Down(), VectorizeHere()), "C: m, k, n @ k"),
        ((Down(), UnrollHere()), "C: m, n unroll, k @ n"),
        ((SplitBy(16), PackHere(1)), "C: m:16, m, n, k\npack B at m:16 in C @ m:16"),
    ],
)
def test_annotations_are_of_the_loop_under_the_cursor(actions: tuple[CursorStep, ...], state: str) -> None:
    assert AnnotationSpace(matmul()).state_key(Candidate(actions)) == state


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ((Down(), Down(), VectorizeHere()), "is the innermost"),
        ((UnrollHere(), UnrollHere()), "unrolled already"),
        ((PackHere(1), PackHere(1)), "packed already"),
        ((PackHere(2),), "reads 2 tensors"),
    ],
)
def test_what_is_illegal_is_reported(actions: tuple[CursorStep, ...], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        resolve(matmul(), Candidate(actions))


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
