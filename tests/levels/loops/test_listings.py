"""Listings 1 to 5 of the thesis (3.5.3): which nodes share which loops, and what their buffers hold.

The nodes `%a`, `%b` and `%R` are statements here, over x, y, z of 4, 5, 6 elements.
"""

from __future__ import annotations

import pytest

from golden_text import Golden
from planish.core import Candidate
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lower.lowering import loop_tree_text, lower
from planish.levels.loops.lower.placement import NodeLoops, Placement, Scope, Start, place
from planish.levels.loops.space.cursor import resolve
from planish.levels.loops.steps import LoopStep, Reorder, Stage, Swap

POINTWISE = "a[x,y,z] = A[x,y,z]; b[x,y,z] = relu(a[x,y,z])"
REDUCED = "R[x,y] += A[x,y,z]; a[x,y,z] = R[x,y] + A[x,y,z]"
SIZES = {"x": 4, "y": 5, "z": 6}

LISTINGS: list[tuple[str, str, tuple[LoopStep, ...], dict[str, int]]] = [
    ("1", "a[x,y,z] = A[x,y,z]", (), {}),
    ("2", POINTWISE, (), {}),
    ("3", POINTWISE, (Reorder(("x", "y", "z"), nest="a"), Swap("y", "z", nest="b")), {"a": 5 * 6}),
    ("4", REDUCED, (), {"R": 1}),
    ("5", POINTWISE, (Stage("a", "z"),), {"a": 6}),
]


@pytest.mark.parametrize(("number", "text", "steps", "buffers"), LISTINGS, ids=[item[0] for item in LISTINGS])
def test_listing(
    number: str, text: str, steps: tuple[LoopStep, ...], buffers: dict[str, int], golden: Golden
) -> None:
    schedule = resolve(parse(text, SIZES), Candidate(steps))
    golden.check(f"loops/listing-{number}.txt", loop_tree_text(schedule))
    assert {b.name: b.size for b in lower(schedule).buffers if b.kind == "temporary"} == buffers


def shape(placement: Placement) -> str:
    """Write a placement as nested lists of nodes: `x(y(a) b)`."""

    def text(item: Scope | Start | str) -> str:
        if isinstance(item, Scope):
            return f"{item.loop[0]}({' '.join(map(text, item.items))})"
        return f"start {item.node}" if isinstance(item, Start) else item

    return " ".join(map(text, placement.root.items))


def order(axes: str) -> tuple[tuple[str, int], ...]:
    return tuple((axis, 1) for axis in axes)


def needs(node: str, axes: str) -> dict[str, frozenset[str]]:
    return {node: frozenset(axes)}


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (NodeLoops(order("xyz")), NodeLoops(order("xyz"), needs("a", "xyz")), "x(y(z(a b)))"),
        (NodeLoops(order("xyz")), NodeLoops(order("xzy"), needs("a", "xyz")), "x(y(z(a)) z(y(b)))"),
        (NodeLoops(order("xyz")), NodeLoops(order("xyz"), needs("a", "xz")), "x(y(z(a)) y(z(b)))"),
        (
            NodeLoops(order("xyz"), reduced=frozenset("z")),
            NodeLoops(order("xyz"), needs("a", "xy")),
            "x(y(start a z(a) z(b)))",
        ),
        (
            NodeLoops(order("xyz"), staged=frozenset(order("z"))),
            NodeLoops(order("xyz"), needs("a", "xyz")),
            "x(y(z(a) z(b)))",
        ),
        (NodeLoops(order("xyz")), NodeLoops(order("yz")), "x(y(z(a))) y(z(b))"),
        (
            NodeLoops(order("z")),
            NodeLoops(order("zx"), needs("a", "z"), reduced=frozenset("z")),
            "start b z(a x(b))",
        ),
    ],
)
def test_nodes_share_the_loops_that_they_may(a: NodeLoops, b: NodeLoops, expected: str) -> None:
    assert shape(place({"a": a, "b": b})) == expected


def test_a_node_joins_no_loop_that_one_before_it_has_closed() -> None:
    nodes = {"a": NodeLoops(order("xy")), "b": NodeLoops(order("z")), "c": NodeLoops(order("xy"))}
    assert shape(place(nodes)) == "x(y(a)) z(b) x(y(c))"
