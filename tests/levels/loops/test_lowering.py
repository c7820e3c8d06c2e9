"""Lowered schedules compute what the program says, in buffers that are no larger than they must be."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from levels.loops.random_programs import programs
from levels.loops.random_schedules import schedules
from levels.loops.running import wrong_in_tree
from planish.core import Candidate
from planish.levels.loops.ir.schedule import Schedule, unscheduled
from planish.levels.loops.ir.tree import Loop, LoopTree, loops
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.space.cursor import resolve
from planish.levels.loops.steps import LoopStep, Pack, Parallel, Reorder, Split, Stage, Swap, Unroll

CHAINS = {
    "softmax": (
        "M[i] max= X[i,j]; E[i,j] = exp(X[i,j] - M[i]); S[i] += E[i,j]; Y[i,j] = E[i,j] / S[i]",
        "i=5,j=7",
    ),
    "prologue": ("T[m,k] = relu(A[m,k]); C[m,n] += T[m,k] * B[k,n]; D[m,n] = C[m,n] + b[n]", "m=6,n=7,k=5"),
    "two products": ("T[m,k] += A[m,l] * B[l,k]; C[m,n] += T[m,k] * D[k,n]", "m=5,n=6,k=7,l=4"),
    "two windows": (
        "T[y] += pad(I[y + r - 1], 0) * V[r]; O[z] += pad(T[2*z + s - 1], 1) * W[s]",
        "y=9,r=3,z=5,s=3",
    ),
    "reduced twice": ("T[k] = relu(A[k]); C[m] += T[k] * B[m,k]; D[n] += T[k] * E[k,n]", "k=8,m=5,n=3"),
    "concatenated": ("T[i, a + b] = A[i,a] | B[i,b]; O[i,t] = T[i,t] + v[t]", "i=4,a=3,b=5"),
    "diagonal": ("T[i,j] = A[i,j] * 2; O[i] = T[i,i]", "i=5,j=5"),
    "two outputs": ("S[i] += A[i,j]; P[j] += A[i,j]", "i=6,j=5"),
}


def chain(name: str) -> Program:
    text, sizes = CHAINS[name]
    return parse(text, {axis: int(n) for axis, n in (pair.split("=") for pair in sizes.split(","))})


def run(schedule: Schedule) -> str | None:
    """Execute a schedule; return what is wrong with its results."""
    return wrong_in_tree(lower(schedule), schedule.program)


def sizes(tree: LoopTree) -> dict[str, int]:
    """Temporary and ahead buffers' sizes."""
    return {b.name: b.size for b in tree.buffers if b.kind in ("temporary", "ahead")}


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_any_schedule_of_any_program_computes_the_same(data: st.DataObject) -> None:
    program = data.draw(programs(points=250))
    assert run(data.draw(schedules(program.with_constants(program.inputs)))) is None


@pytest.mark.parametrize("name", CHAINS)
@settings(max_examples=examples(15), deadline=None)
@given(data=st.data())
def test_any_schedule_of_chained_statements_computes_the_same(name: str, data: st.DataObject) -> None:
    assert run(data.draw(schedules(chain(name)))) is None


@pytest.mark.parametrize("name", CHAINS)
def test_unscheduled_chains_compute_what_they_say(name: str) -> None:
    assert run(unscheduled(chain(name))) is None


@pytest.mark.parametrize(
    ("name", "steps", "expected"),
    [
        ("softmax", (), {"M": 1, "E": 7, "S": 1}),
        ("prologue", (), {"T": 5, "C": 1}),
        ("prologue", (Split("m", 2), Reorder(("m:2", "n", "k", "m"))), {"T": 10, "C": 2}),
        ("prologue", (Split("n", 4), Reorder(("n:4", "m", "k", "n"))), {"T": 30, "C": 4}),
        ("two products", (), {"T": 7}),
        ("two products", (Stage("T", "m"),), {"T": 35}),
        ("two windows", (), {"I.padded": 11, "T": 9, "T.padded": 11}),
        ("concatenated", (), {"T": 8}),
        ("diagonal", (), {"T": 5}),
    ],
)
def test_intermediate_buffers_hold_no_more_than_the_loops_that_are_not_shared(
    name: str, steps: tuple[LoopStep, ...], expected: dict[str, int]
) -> None:
    schedule = resolve(chain(name), Candidate(steps))
    assert sizes(lower(schedule)) == expected
    assert run(schedule) is None


def test_buffers_come_in_the_order_of_the_calling_convention() -> None:
    text = "T[k,y] += pad(I[c,y + r - 1], 0) * W[k,c,r]; O[k,y] = relu(T[k,y])"
    program = parse(text, {"k": 4, "c": 3, "y": 5, "r": 3}).with_constants(["W"])
    schedule = resolve(program, Candidate((Pack("W", "root", ahead=True), Pack("I", "k"))))
    kinds = [(b.name, b.kind) for b in lower(schedule).buffers]
    assert kinds == [
        ("I", "input"),
        ("W", "input"),
        ("O", "output"),
        ("W.packed", "ahead"),
        ("I.packed", "temporary"),
        ("T", "temporary"),
    ]


def test_the_whole_program_is_ahead_only_where_asked() -> None:
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 4, "n": 6, "k": 5}).with_constants(["B"])
    assert lower(resolve(program, Candidate((Pack("B", "root"),)))).ahead == ()
    tree = lower(resolve(program, Candidate((Pack("B", "root", ahead=True),))))
    assert sizes(tree) == {"B.packed": 30}
    assert len(tree.ahead) == 1


def test_kinds_are_carried_to_the_loops_of_every_nest_that_follows() -> None:
    steps = (Split("m", 2), Parallel("m:2"), Unroll("n"))
    tree = lower(resolve(chain("prologue"), Candidate(steps)))
    kinds = {loop.id: loop.kind for loop in loops(tree.body)}
    assert kinds[("m", 2)] == "parallel"
    assert kinds[("n", 1)] == "unroll"
    assert kinds[("k", 1)] == "serial"


def test_a_reduction_does_not_join_a_loop_that_is_parallel_for_others() -> None:
    """Both nests have a loop over i first; in the second it is reduced, so its iterations cannot share P."""
    schedule = resolve(chain("two outputs"), Candidate((Parallel("i", nest="S"),)))
    kinds = [node.kind for node in lower(schedule).body if isinstance(node, Loop)]
    assert kinds == ["parallel", "serial", "serial"]
    assert run(schedule) is None


def test_axes_of_one_element_have_no_loops() -> None:
    program = parse("O[n,k,y] += I[n,c,y + r] * W[k,c,r]", {"n": 1, "k": 3, "c": 2, "y": 4, "r": 1})
    assert unscheduled(program).text == "O: k, y, c"


def test_a_reduction_over_one_element_is_an_assignment() -> None:
    program = parse("y[i] += a[i,k]", {"i": 4, "k": 1})
    tree = lower(unscheduled(program))
    assert len(tree.body) == 1
    assert run(unscheduled(program)) is None


def test_a_strided_dimension_is_packed_without_its_gaps() -> None:
    program = parse("O[k,x] += I[c,2*x] * W[k,c]", {"k": 3, "x": 8, "c": 4})
    assert sizes(lower(resolve(program, Candidate((Pack("I", "root"),))))) == {"I.packed": prod((4, 8))}


def test_copies_for_a_nest_share_no_loop_that_it_cannot_share_through_another_copy() -> None:
    text = "U[b] += X[b,i]; V[b] += X[b,i] - U[b]; Y[b,i] = X[b,i] - V[b]"
    program = parse(text, {"b": 5, "i": 7})
    steps = (Swap("b", "i", "V"), Pack("X", "i", False, "V"), Pack("U", "i", False, "V"))
    assert run(resolve(program, Candidate(steps))) is None
