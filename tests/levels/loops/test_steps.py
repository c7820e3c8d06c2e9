"""What each step does to a schedule, and what it refuses."""

from __future__ import annotations

import json

import pytest

from planish.core import Candidate, ScheduleError, candidate_from_json
from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.cursor import STEPS, resolve
from planish.levels.loops.steps import (
    Fuse,
    LoopStep,
    Merge,
    Pack,
    Parallel,
    Reorder,
    Split,
    Stage,
    Swap,
    Unroll,
    Vectorize,
    fusable,
)


def matmul() -> Program:
    return parse("C[m,n] += A[m,k] * B[k,n]", {"m": 64, "n": 96, "k": 50})


def layer() -> Program:
    text = "T[m,n] += A[m,k] * B[k,n]; D[m,n] = relu(T[m,n] + b[n])"
    return parse(text, {"m": 64, "n": 96, "k": 50}).with_constants(["A", "B"])


def scheduled(program: Program, *steps: LoopStep) -> str:
    return resolve(program, Candidate(steps)).text


@pytest.mark.parametrize(
    ("steps", "loops"),
    [
        ((), "m, n, k"),
        ((Split("m", 32),), "m:32, m, n, k"),
        ((Split("k", 7),), "m, n, k:7, k"),
        ((Split("m", 8), Split("m", 32)), "m:32, m:8, m, n, k"),
        ((Split("m", 32), Split("m", 8)), "m:32, m:8, m, n, k"),
        ((Split("m", 32), Merge("m", 32)), "m, n, k"),
        ((Swap("n", "k"),), "m, k, n"),
        ((Reorder(("k", "m")),), "k, n, m"),
        ((Split("m", 32), Reorder(("m:32", "k", "n", "m"))), "m:32, k, n, m"),
        ((Vectorize("m"),), "n, k, m"),
        ((Unroll("k"),), "m, n, k unroll"),
        ((Unroll("k"), Swap("n", "k")), "m, k unroll, n"),
        ((Split("k", 5), Unroll("k:5"), Merge("k", 5)), "m, n, k"),
        ((Parallel("m"),), "m parallel, n, k"),
    ],
)
def test_steps_change_the_loops(steps: tuple[LoopStep, ...], loops: str) -> None:
    assert scheduled(matmul(), *steps) == f"C: {loops}"


def pointwise(y: int = 28, x: int = 28) -> Program:
    """A convolution of 1 by 1, whose kernel's axes have one element."""
    text = "O[k,y,x] += I[c,y + r,x + s] * W[k,c,r,s]; P[k,y,x] = relu(O[k,y,x] + b[k])"
    return parse(text, {"k": 8, "c": 4, "y": y, "x": x, "r": 1, "s": 1})


def test_two_axes_of_images_become_one() -> None:
    text = scheduled(pointwise(), Fuse("y", "x"), Split("y.x", 16))
    assert text == "O: k, y.x:16, y.x, c\nP: k, y.x:16, y.x"
    assert list(fusable(pointwise())) == [("y", "x")]


def test_axes_are_fused_one_after_the_other() -> None:
    program = parse("O[a,b,c] = I[a,b,c] + v[]", {"a": 2, "b": 3, "c": 5})
    assert scheduled(program, Fuse("b", "c"), Fuse("a", "b.c")) == "O: a.b.c"


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("O[y,x] = I[x,y]", (5, 4)),
        ("O[y,x] = I[y,x] + I[0,x]", (4, 5)),
        ("O[y,x] = I[y,2*x]", (4, 10)),
        ("O[y,x] = I[y,x+1]", (4, 6)),
        ("O[y,x] = pad(I[y,x-1], 0)", (4, 5)),
        ("O[y,x] = I[y,0,x]", (4, 2, 5)),
    ],
)
def test_axes_with_other_elements_between_are_not_fused(text: str, shape: tuple[int, ...]) -> None:
    program = parse(text, {"y": 4, "x": 5}, {"I": shape})
    with pytest.raises(ScheduleError, match="cannot fuse 'y' and 'x': a tensor has other elements between"):
        scheduled(program, Fuse("y", "x"))


def test_axes_are_fused_before_all_else() -> None:
    with pytest.raises(ScheduleError, match="cannot fuse 'y' and 'x' now"):
        scheduled(pointwise(), Split("k", 2), Fuse("y", "x"))
    with pytest.raises(ScheduleError, match="the program has no axis 'z'"):
        scheduled(pointwise(), Fuse("y", "z"))


def test_packs_and_stages_are_in_the_text() -> None:
    steps = (Split("n", 32), Pack("B", "n:32"), Pack("A", "root", ahead=True), Stage("T", "m"))
    assert scheduled(layer(), *steps).splitlines() == [
        "T: m, n:32, n, k",
        "D: m, n:32, n",
        "pack A at root in T ahead",
        "pack B at n:32 in T",
        "stage T m",
    ]


def test_other_nests_follow_the_main_one_until_a_step_changes_them() -> None:
    assert scheduled(layer(), Split("m", 8)) == "T: m:8, m, n, k\nD: m:8, m, n"
    assert scheduled(layer(), Swap("m", "n", nest="D"), Split("m", 8)) == "T: m:8, m, n, k\nD: n, m"


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((Split("z", 4),), "nest 'C' has no loop over axis 'z'. Its axes: m, n, k."),
        ((Split("m", 1),), "cannot split axis 'm' by 1: it has 64 elements"),
        ((Split("m", 64),), "cannot split axis 'm' by 64: it has 64 elements"),
        ((Split("m", 12), Split("m", 32)), "cannot split axis 'm' by 32: it has a loop of step 12"),
        ((Split("m", 8), Split("m", 8)), "cannot split axis 'm' by 8: it has a loop of step 8"),
        ((Split("m", 4, nest="Q"),), "there is no nest 'Q'"),
        ((Merge("m", 8),), "nest 'C' has no loop 'm:8'"),
        ((Merge("m", 1),), "cannot merge loop 'm' of step 1"),
        ((Split("m", 8), Swap("m:8", "m")), "loop 'm:8' cannot be inside 'm'"),
        ((Reorder(("m", "m")),), "cannot reorder m, m: a loop is named twice"),
        ((Split("m", 8), Vectorize("m:8")), "cannot vectorize loop 'm:8': its step is not 1. Vectorize 'm'"),
        ((Unroll("mm"),), "nest 'C' has no loop 'mm'. Did you mean 'm'?"),
        ((Parallel("n"),), "parallel loop 'n' must be outermost in nest 'C'"),
        ((Parallel("m"), Swap("m", "n")), "parallel loop 'm' must be outermost in nest 'C'"),
        ((Parallel("m"), Split("m", 8)), "parallel loop 'm' must be outermost in nest 'C'"),
        ((Swap("m", "k"), Parallel("k")), "loop 'k' cannot be parallel: nest 'C' reduces axis 'k'"),
        ((Pack("Q"),), "nest 'C' neither reads nor writes tensor 'Q'"),
        ((Pack("A", "k"),), "cannot pack 'A' at 'k': no loop inside moves it"),
        ((Pack("A", "n", ahead=True),), "cannot pack 'A' ahead inside a loop"),
        ((Pack("A", "root", ahead=True),), "cannot pack 'A' ahead: it is not constant"),
        ((Pack("A"), Pack("A", "m")), "tensor 'A' is packed already"),
        ((Pack("C", "root", ahead=True),), "cannot pack 'C' ahead: its nest writes it"),
        (
            (Swap("m", "k"), Pack("C", "k")),
            "cannot pack output 'C' at 'k': a loop around it reduces axis 'k'",
        ),
        (
            (Pack("C", "m"), Swap("m", "k")),
            "cannot pack output 'C' at 'm': a loop around it reduces axis 'k'",
        ),
        (
            (Split("m", 8), Pack("A", "m:8"), Merge("m", 8)),
            "loop 'm:8' cannot go: tensor 'A' is packed there",
        ),
        ((Stage("A", "m"),), "cannot stage 'A': the program does not both write and read it"),
    ],
)
def test_what_is_illegal_is_refused_with_its_rule(steps: tuple[LoopStep, ...], message: str) -> None:
    with pytest.raises(ScheduleError) as error:
        scheduled(matmul(), *steps)
    assert message in str(error.value)


def test_a_tensor_that_is_read_in_two_ways_is_not_packed() -> None:
    program = parse("y[i,j] = A[i] * A[j]", {"i": 4, "j": 5})
    with pytest.raises(ScheduleError, match="reads it in 2 ways"):
        Pack("A").apply(unscheduled(program))


def test_a_tensor_between_nests_is_not_packed_by_its_writer() -> None:
    with pytest.raises(ScheduleError, match="its nest writes it"):
        Pack("T").apply(unscheduled(layer()))


def test_a_staged_loop_is_kept() -> None:
    steps = (Split("m", 8), Stage("T", "m:8"), Merge("m", 8))
    with pytest.raises(ScheduleError, match="tensor 'T' is staged there"):
        resolve(layer(), Candidate(steps))


def test_every_step_is_read_back_from_json() -> None:
    steps = (
        Split("m", 8),
        Split("m", 32),
        Merge("m", 32),
        Swap("n", "k"),
        Reorder(("k", "n")),
        Vectorize("n"),
        Unroll("k"),
        Parallel("m:8"),
        Pack("B", "root", ahead=True),
        Stage("T", "m:8"),
    )
    candidate = Candidate(steps)
    assert candidate_from_json(json.loads(candidate.text), STEPS) == candidate
    resolve(layer(), candidate)
    fused = Candidate((Fuse("y", "x"),))
    assert candidate_from_json(json.loads(fused.text), STEPS) == fused


def test_a_candidate_of_another_kind_is_refused() -> None:
    from planish.core import Step

    with pytest.raises(ScheduleError, match="expected a step of a schedule"):
        resolve(matmul(), Candidate((Step(),)))
