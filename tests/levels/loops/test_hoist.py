"""What a loop does not move is computed outside it; the interpreter and the reference are the judges."""

from __future__ import annotations

import pytest

from planish.core import Candidate
from planish.levels.loops.ir.tree import Call, Loop, LoopTree, Node, Value
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.space import resolve
from planish.levels.loops.steps import LoopStep, Parallel, Reorder, Split
from planish.testing.interpreter import interpret

NORM = """M[r] += X[r,c]
D[r,c] = X[r,c] - M[r] / 10
V[r] += D[r,c] * D[r,c]
Y[r,c] = D[r,c] / sqrt(V[r] / 10 + 1)"""


def tree_of(program: Program, *steps: LoopStep) -> LoopTree:
    tree = lower(resolve(program, Candidate(steps)))
    inputs = make_inputs(program)
    found = interpret(tree, inputs)
    shaped = {name: array.reshape(program.type[name].shape) for name, array in found.items()}
    assert check(program, shaped, reference(program, inputs)) is None
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


def test_a_square_root_of_a_row_is_taken_once_for_the_row() -> None:
    tree = tree_of(parse(NORM, {"r": 6, "c": 10}))
    assert depths(tree, "sqrt") == {("r",)}


def test_rows_of_a_tile_have_a_loop_of_their_own() -> None:
    program = parse(NORM, {"r": 7, "c": 10})
    tree = tree_of(program, Split("r", 3), Split("c", 4), Reorder(("r:3", "c:4", "r", "c")))
    assert depths(tree, "sqrt") == {("r", "r")}


def test_a_parallel_loop_keeps_what_its_iterations_compute() -> None:
    tree = tree_of(parse(NORM, {"r": 6, "c": 10}), Parallel("r"))
    assert depths(tree, "sqrt") == {("r",)}


def test_what_every_loop_moves_stays() -> None:
    tree = tree_of(parse("Y[r,c] = 1 / X[r,c]", {"r": 6, "c": 10}))
    assert depths(tree, "div") == {("r", "c")}


def test_what_is_used_a_few_times_stays() -> None:
    tree = tree_of(parse("Y[r,c] = X[r,c] * sqrt(V[r])", {"r": 6, "c": 3}))
    assert depths(tree, "sqrt") == {("r", "c")}


@pytest.mark.parametrize("order", [("r", "c"), ("c", "r")])
def test_a_row_of_scales_is_computed_before_all_rows(order: tuple[str, str]) -> None:
    program = parse("Y[r,c] = X[r,c] * exp(S[c]) + X[r,c] * exp(S[c])", {"r": 6, "c": 10})
    tree = tree_of(program, Reorder(order))
    assert depths(tree, "exp") == {("c",)}
    kept = [b for b in tree.buffers if b.kind == "temporary"]
    assert len(kept) == 1
    assert kept[0].size == (10 if order == ("r", "c") else 1)


def test_what_a_loop_writes_itself_stays_inside_it() -> None:
    program = parse("P[r,c] = X[r,c] + 1; Y[r,c,d] = Z[d] / P[r,c]", {"r": 4, "c": 5, "d": 8})
    tree = tree_of(program, Reorder(("d", "r", "c")))
    assert depths(tree, "div") == {("d", "r", "c")}
