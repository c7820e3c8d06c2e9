"""What a loop does not move is computed outside it; the interpreter and the reference are the judges."""

from __future__ import annotations

import pytest

from levels.loops.running import wrong_in_tree
from planish.core import Candidate
from planish.levels.loops.ir.tree import Call, Loop, LoopTree, Node, Value
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.space.cursor import resolve
from planish.levels.loops.steps import LoopStep, Parallel, Reorder, Split

NORM = """M[r] += X[r,c]
D[r,c] = X[r,c] - M[r] / 10
V[r] += D[r,c] * D[r,c]
Y[r,c] = D[r,c] / sqrt(V[r] / 10 + 1)"""


def tree_of(program: Program, *steps: LoopStep) -> LoopTree:
    tree = lower(resolve(program, Candidate(steps)))
    assert wrong_in_tree(tree, program) is None
    return tree


def depths(tree: LoopTree, function: str) -> set[tuple[str, ...]]:
    """List the axes of the loops around each call of a function."""

    def calls(value: Value) -> bool:
        return isinstance(value, Call) and (value.function == function or any(map(calls, value.args)))

    def walk(nodes: tuple[Node, ...], path: tuple[str, ...]) -> set[tuple[str, ...]]:
        found: set[tuple[str, ...]] = set()
        for node in nodes:
            if isinstance(node, Loop):
                found |= walk(node.body, (*path, node.axis))
            elif calls(node.value):
                found.add(path)
        return found

    return walk(tree.body, ())


SIZES = {"r": 6, "c": 10}


@pytest.mark.parametrize(
    ("text", "sizes", "steps", "function", "axes"),
    [
        (NORM, SIZES, (), "sqrt", ("r",)),
        (
            NORM,
            {"r": 7, "c": 10},
            (Split("r", 3), Split("c", 4), Reorder(("r:3", "c:4", "r", "c"))),
            "sqrt",
            ("r", "r"),
        ),
        (NORM, SIZES, (Parallel("r"),), "sqrt", ("r",)),
        ("Y[r,c] = 1 / X[r,c]", SIZES, (), "div", ("r", "c")),
        ("Y[r,c] = X[r,c] * sqrt(V[r])", {"r": 6, "c": 3}, (), "sqrt", ("r", "c")),
        (
            "P[r,c] = X[r,c] + 1; Y[r,c,d] = Z[d] / P[r,c]",
            {"r": 4, "c": 5, "d": 8},
            (Reorder(("d", "r", "c")),),
            "div",
            ("d", "r", "c"),
        ),
    ],
    ids=[
        "once for a row",
        "rows of a tile",
        "in a parallel loop",
        "moved by every loop",
        "used a few times",
        "written in the loop",
    ],
)
def test_loops_around_an_expression(
    text: str, sizes: dict[str, int], steps: tuple[LoopStep, ...], function: str, axes: tuple[str, ...]
) -> None:
    assert depths(tree_of(parse(text, sizes), *steps), function) == {axes}


@pytest.mark.parametrize("order", [("r", "c"), ("c", "r")])
def test_a_row_of_scales_is_computed_before_all_rows(order: tuple[str, str]) -> None:
    program = parse("Y[r,c] = X[r,c] * exp(S[c]) + X[r,c] * exp(S[c])", {"r": 6, "c": 10})
    tree = tree_of(program, Reorder(order))
    assert depths(tree, "exp") == {("c",)}
    kept = [b for b in tree.buffers if b.kind == "temporary"]
    assert len(kept) == 1
    assert kept[0].size == (10 if order == ("r", "c") else 1)
