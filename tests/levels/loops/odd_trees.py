"""Trees that ask for care: dependent iterations, windows, tiles in tiles, what lives in one iteration."""

from levels.loops.trees import Kind, buffers, ref
from planish.levels.loops.ir.tree import Call, Leaf, Loop, LoopId, LoopTree, Node, Value
from planish.levels.loops.lang.program import Const

N = 37
SIZES = (("i", N), ("j", 5), ("s", N - 3))


def call(function: str, *args: Value) -> Call:
    return Call(function, args)


def along(axis: str, *body: Node, step: int = 1) -> Loop:
    return Loop(axis, step, body)


def nested(loops: tuple[LoopId, ...], node: Node) -> Node:
    for axis, step in reversed(loops):
        node = Loop(axis, step, (node,))
    return node


def tree(*body: Node, **kinds: Kind) -> LoopTree:
    return LoopTree(body, (), buffers("float64", **kinds), SIZES)


A, Z = ref("A", i=1), ref("Z", i=1)
COPY = along("i", Leaf(Z, None, A))
ZERO = Leaf(ref("S"), None, Const(0.0))

TREES: dict[str, LoopTree] = {
    "running sum": tree(
        ZERO,
        along("i", Leaf(ref("S", 1, i=1), None, call("add", ref("S", i=1), A))),
        A=("input", N), S=("output", N + 1),
    ),
    "the last one wins": tree(
        along("i", Leaf(ref("L"), None, A)), A=("input", N), L=("output", 1)
    ),
    "writes that overlap": tree(
        along("i", Leaf(Z, None, A), Leaf(ref("Z", 5, i=1), None, ref("B", i=1))),
        A=("input", N), B=("input", N), Z=("output", N + 5),
    ),
    "parts of one buffer": tree(
        along("i", Leaf(Z, None, A), Leaf(ref("Z", N, i=1), None, ref("B", i=1))),
        A=("input", N), B=("input", N), Z=("output", 2 * N),
    ),
    "old values are read first": tree(
        COPY,
        along("s", Leaf(ref("Z", s=1), None, call("add", ref("Z", 3, s=1), Const(1.0)))),
        A=("input", N), Z=("output", N),
    ),
    "a sum, then one more term": tree(
        COPY,
        along("i", along("j", Leaf(Z, "add", ref("B", j=1))), Leaf(Z, "add", A)),
        A=("input", N), B=("input", 5), Z=("output", N),
    ),
    "every second and the others": tree(
        along("i", Leaf(ref("Z", i=2), None, A), Leaf(ref("Z", 1, i=2), None, call("neg", A))),
        A=("input", N), Z=("output", 2 * N),
    ),
    "one element in each iteration": tree(
        ZERO,
        along(
            "i",
            Leaf(ref("T"), None, call("mul", A, A)),
            Leaf(ref("T"), "add", Const(1.0)),
            Leaf(Z, None, call("sub", ref("T"), A)),
            Leaf(ref("S"), "add", ref("T")),
        ),
        A=("input", N), Z=("output", N), S=("output", 1), T=("temporary", 1, 1),
    ),
    "two reductions and a map": tree(
        ZERO, Leaf(ref("M"), None, Const(-9.0)),
        along("i", Leaf(ref("S"), "add", A), Leaf(Z, None, A), Leaf(ref("M"), "max", A)),
        A=("input", N), Z=("output", N), S=("output", 1), M=("output", 1),
    ),
    "a reduction that is used while it grows": tree(
        ZERO, along("i", Leaf(ref("S"), "add", A), Leaf(Z, None, ref("S"))),
        A=("input", N), Z=("output", N), S=("output", 1),
    ),
    "rows of a tile that are reduced, then scaled": tree(
        along(
            "j",
            along("i", Leaf(ref("T", i=1), None, ref("B", i=5, j=1))),
            ZERO,
            along("i", Leaf(ref("S"), "add", ref("T", i=1))),
            along("i", Leaf(ref("Z", i=1, j=N), None, call("mul", ref("T", i=1), ref("S")))),
        ),
        B=("input", 5 * N), Z=("output", 5 * N), T=("temporary", N, 1), S=("temporary", 1, 1),
    ),
    "one buffer as rows and as columns": tree(
        along("j", along("i", Leaf(ref("T", i=5, j=1), None, ref("B", i=1, j=N)))),
        along("i", along("j", Leaf(ref("T", i=5, j=1), "add", Const(2.0)))),
        along("j", along("i", Leaf(ref("Z", i=1, j=N), None, ref("T", i=5, j=1)))),
        B=("input", 5 * N), Z=("output", 5 * N), T=("temporary", 5 * N),
    ),
    "sums that are used later": tree(
        along(
            "i",
            Leaf(ref("T", i=1), None, Const(0.0)),
            along("j", Leaf(ref("T", i=1), "add", ref("B", i=5, j=1))),
        ),
        along("i", Leaf(Z, None, ref("T", i=1))),
        B=("input", 5 * N), Z=("output", N), T=("temporary", N),
    ),
    "a window in tiles": LoopTree(
        (
            along(
                "y",
                along("h", Leaf(ref("T", h=1), None, ref("A", y_4=8, h=1))),
                along("y", Leaf(ref("Z", y_4=4, y=1), None, Const(0.0))),
                along("r", along("y", Leaf(ref("Z", y_4=4, y=1), "add", ref("T", y=2, r=1)))),
                step=4,
            ),
        ),
        (),
        buffers(A=("input", 29), Z=("output", 14), T=("temporary", 9, 1)),
        (("h", 29), ("r", 3), ("y", 14)),
        (("h", (("r", 1), ("y", 2))),),
    ),
    "tails inside tails": tree(
        nested(
            (("i", 16), ("i", 8), ("j", 2), ("i", 1), ("j", 1)),
            Leaf(
                ref("Z", i_16=16 * 5, i_8=8 * 5, i=5, j_2=2, j=1),
                None,
                ref("B", i_16=16, i_8=8, i=1, j_2=2 * N, j=N),
            ),
        ),
        B=("input", 5 * N), Z=("output", 5 * N),
    ),
}  # fmt: skip
"""What is odd to the tree; all sums are exact in float64."""
