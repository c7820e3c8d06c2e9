"""Random trees, right or strange: what is written in one iteration may be read in any later one."""

from dataclasses import dataclass

from hypothesis import strategies as st

from levels.loops.trees import buffers
from planish.levels.loops.ir.tree import Call, Leaf, Loop, LoopId, LoopTree, Node, Ref, Value
from planish.levels.loops.lang.program import Const

SIZE = {"P": 40, "Q": 40, "X": 90}


@dataclass(frozen=True)
class _Nest:
    """Loops around a leaf, and how far each may move a reference, for its iterations stay in a buffer."""

    loops: tuple[LoopId, ...]
    trips: tuple[int, ...]


@st.composite
def random_trees(draw: st.DrawFn) -> LoopTree:
    """Draw a tree that fills two buffers, then changes them in random nests of up to three loops.

    Loads and stores have random strides and offsets, so iterations depend on one another at random. Values
    stay small integers: only sums, differences and extremes of two values, and clamps.
    """
    sizes = {axis: draw(st.integers(1, 21)) for axis in "ab"} | {"f": 40}
    body: list[Node] = [_fill("P", 0), _fill("Q", 50)]
    body += [draw(_nest(sizes)) for _ in range(draw(st.integers(1, 3)))]
    kinds = buffers(X=("input", 90), P=("output", 40), Q=("output", 40))
    return LoopTree(tuple(body), (), kinds, tuple(sorted(sizes.items())))


def _fill(buffer: str, start: int) -> Node:
    moves = ((("f", 1), 1),)
    return Loop("f", 1, (Leaf(Ref(buffer, 0, moves), None, Ref("X", start, moves)),))


@st.composite
def _nest(draw: st.DrawFn, sizes: dict[str, int]) -> Node:
    loops: list[LoopId] = [("a", 1), ("b", 1)][: draw(st.integers(1, 2))]
    step = draw(st.sampled_from([0, 2, 3, 8]))
    if step:
        loops.insert(0, ("a", step))
    loops = [*loops[:-1], loops[-1]] if draw(st.booleans()) else _swapped(loops)
    body: tuple[Node, ...] = tuple(draw(_leaf(loops, sizes)) for _ in range(draw(st.integers(1, 3))))
    for position, (axis, stride) in reversed(list(enumerate(loops))):
        kind = draw(st.sampled_from(["serial", "serial", "unroll"]))
        node = Loop(axis, stride, body, kind)  # pyright: ignore[reportArgumentType]
        extra = draw(st.integers(0, 3)) == 0 and position > 0
        outside = loops[:position]
        body = (node, draw(_leaf(outside, sizes))) if extra and _whole(outside) else (node,)
    return body[0]


def _whole(loops: list[LoopId]) -> bool:
    """Return whether every axis ends at step 1."""
    return {axis for axis, _ in loops} == {axis for axis, step in loops if step == 1}


def _swapped(loops: list[LoopId]) -> list[LoopId]:
    """Put the loop over b first, if there is one."""
    return sorted(loops, key=lambda x: (x[0] != "b", -x[1]))


@st.composite
def _leaf(draw: st.DrawFn, loops: list[LoopId], sizes: dict[str, int]) -> Leaf:
    target = draw(_ref(draw(st.sampled_from("PQ")), loops, sizes))
    value: Value = draw(_ref(draw(st.sampled_from("PQX")), loops, sizes))
    if draw(st.booleans()):
        other = draw(_ref(draw(st.sampled_from("PQX")), loops, sizes))
        value = Call(draw(st.sampled_from(["add", "sub", "max", "min"])), (value, other))
    reduce = draw(st.sampled_from([None, "add", "max", "min"]))
    value = Call("max", (Const(-50.0), Call("min", (Const(50.0), value))))
    return Leaf(target, reduce, value)


@st.composite
def _ref(draw: st.DrawFn, buffer: str, loops: list[LoopId], sizes: dict[str, int]) -> Ref:
    """Draw strides and an offset that stay inside the buffer."""
    room = SIZE[buffer] - 1
    moves: dict[str, int] = {}
    for axis in dict.fromkeys(axis for axis, _ in loops):
        stride = draw(st.sampled_from([0, 1, 1, 2, 3]))
        if stride * (sizes[axis] - 1) <= room:
            moves[axis] = stride
            room -= stride * (sizes[axis] - 1)
    strides = tuple((x, moves[x[0]] * x[1]) for x in loops if moves.get(x[0]))
    return Ref(buffer, draw(st.integers(0, room)), strides)
