"""The step space of LoopTune: what its actions do, and that it is a space."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from planish.core import Candidate, PlanishError, ScheduleError, Space, Step
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.cursor import (
    STEPS,
    CursorSpace,
    CursorStep,
    Down,
    SplitBy,
    SwapDown,
    SwapUp,
    Up,
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
    ],
)
def test_actions_move_the_cursor_and_change_the_loop_under_it(
    actions: tuple[CursorStep, ...], state: str
) -> None:
    assert CursorSpace(matmul()).state_key(Candidate(actions)) == state


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


def test_an_illegal_action_says_why() -> None:
    with pytest.raises(ScheduleError, match="cursor is on the outermost loop"):
        resolve(matmul(), Candidate((Up(),)))
    with pytest.raises(ScheduleError, match="axis 'm' keep their order"):
        resolve(matmul(), Candidate((SplitBy(4), SwapDown())))


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
