"""Packed tiles and padded tensors: their layout, their copies, and what stays where."""

from __future__ import annotations

import pytest

from golden_text import Golden
from levels.loops.running import wrong_in_tree
from planish.core import Candidate
from planish.levels.loops.ir.schedule import Schedule
from planish.levels.loops.ir.tree import Leaf, leaves, pseudocode, refs
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.lowering import loop_tree_text, lower
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.space.cursor import resolve
from planish.levels.loops.steps import LoopStep, Pack, Parallel, Reorder, Split, Stage, Unroll
from planish.levels.loops.testing.interpreter import interpret

MATMUL = ("C[m,n] += A[m,k] * B[k,n]", {"m": 20, "n": 24, "k": 10})
CONVOLUTION = (
    "O[k,y,x] += pad(I[c,y + r - 1,x + s - 1], 0) * W[k,c,r,s]",
    {"k": 8, "y": 5, "x": 7, "c": 3, "r": 3, "s": 3},
)
BLIS = (
    Split("m", 6),
    Split("n", 8),
    Split("k", 5),
    Reorder(("k:5", "n:8", "m:6", "k", "m", "n")),
    Pack("B", "k:5"),
    Pack("A", "m:6"),
)
CHANNELS_LAST = (
    Split("k", 4),
    Split("x", 7 - 1),
    Reorder(("k:4", "y", "x:6", "c", "r", "s", "x", "k")),
    Pack("W", "root", ahead=True),
    Pack("O", "y"),
)
TILE_OF_THE_IMAGE = (Split("y", 2), Reorder(("y:2", "k", "c", "r", "s", "y", "x")), Pack("I", "y:2"))

CASES: dict[str, tuple[tuple[str, dict[str, int]], tuple[LoopStep, ...]]] = {
    "blis": (MATMUL, BLIS),
    "channels-last": (CONVOLUTION, CHANNELS_LAST),
    "tile-of-a-padded-image": (CONVOLUTION, TILE_OF_THE_IMAGE),
    "padded-tile-without-a-view": (CONVOLUTION, (Reorder(("c", "k")), Pack("I", "c"))),
    "fused": (
        ("T[m,n] += A[m,k] * B[k,n]; D[m,n] = relu(T[m,n] + b[n])", MATMUL[1]),
        (Split("m", 5), Parallel("m:5"), Unroll("k"), Stage("T", "n")),
    ),
}


def scheduled(case: str) -> Schedule:
    (text, sizes), steps = CASES[case]
    program = parse(text, sizes)
    return resolve(program.with_constants(program.inputs), Candidate(steps))


@pytest.mark.parametrize("case", CASES)
def test_schedules_read_as_loop_tree_and_pseudo_code(case: str, golden: Golden) -> None:
    schedule = scheduled(case)
    text = f"{schedule.program.statements[0]}\n\n{loop_tree_text(schedule)}\n{pseudocode(lower(schedule))}"
    golden.check(f"loops/schedule-{case}.txt", text)


@pytest.mark.parametrize("case", CASES)
def test_they_compute_what_they_say(case: str) -> None:
    schedule = scheduled(case)
    assert wrong_in_tree(lower(schedule), schedule.program) is None


@pytest.mark.parametrize("case", ["blis", "channels-last"])
def test_the_innermost_loop_reads_packed_tiles_in_sequence(case: str) -> None:
    schedule = scheduled(case)
    innermost = schedule.loops[0][-1]
    packed = "B.packed" if case == "blis" else "W.packed"
    main = next(leaf for leaf in leaves(lower(schedule).body) if leaf.reduce)
    found = [ref for ref in refs(main.value) if ref.buffer == packed]
    assert [ref.stride[innermost] for ref in found] == [1]


def test_equal_windows_of_one_tensor_share_one_padded_copy() -> None:
    text = "O[y] += pad(I[y + r - 1], 0) * V[r]; P[y] max= pad(I[y + r - 1], 0)"
    assert padded(parse(text, {"y": 6, "r": 3})) == ["I.padded"]
    text = "O[y] += pad(I[y + r - 1], 0) * V[r]; P[y] max= pad(I[y + r - 1], -1)"
    assert padded(parse(text, {"y": 6, "r": 3})) == ["I.padded", "I.padded#2"]


def padded(program: Program) -> list[str]:
    tree = lower(resolve(program, Candidate()))
    return [b.name for b in tree.buffers if b.kind == "temporary"]


def test_a_window_wholly_outside_its_tensor_is_all_padding() -> None:
    program = parse("O[y] = pad(I[y - 9], 2)", {"y": 4}, {"I": (3,)})
    tree = lower(resolve(program, Candidate()))
    copies = [leaf for leaf in leaves(tree.body) if leaf.target.buffer == "I.padded"]
    assert [isinstance(leaf, Leaf) and str(leaf.value) for leaf in copies] == ["2"]
    assert interpret(tree, make_inputs(program, 0))["O"].tolist() == [2.0] * 4
