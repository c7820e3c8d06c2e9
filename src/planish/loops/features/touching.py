"""What a loop tree's body does, loop by loop: how often, how much of what, and to which elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from planish.loops.features.executions import Executions
from planish.loops.features.footprint import Footprint, footprint, union
from planish.loops.ir.extent import Remaining, remaining, within
from planish.loops.ir.tree import Call, Leaf, Loop, LoopTree, Node, Ref, Value
from planish.loops.lang.program import COMPARISONS, GATHER, Const

WORK = ("sums", "products", "quotients", "choices", "special", "looked_up", "moved")
"""Kinds of work: added or subtracted; multiplied; divided, or square roots; extremes and comparisons; exp and
the like; gathered; and elements that are copied or set, with no arithmetic at all."""

_KIND = {
    **dict.fromkeys(("add", "sub", "neg"), 0),
    "mul": 1,
    **dict.fromkeys(("div", "sqrt"), 2),
    **dict.fromkeys(("max", "min", "abs", "relu", *COMPARISONS), 3),
    **dict.fromkeys(("exp", "log", "tanh", "sigmoid", "erf"), 4),
    GATHER: 5,
}
_MOVED = 6


@dataclass(slots=True)
class Touch:
    """What a loop does to a buffer.

    Args:
        accesses: reads and writes, of all executions of the loop together.
        stride: the farthest that one iteration of the loop moves a reference, in elements.
        written: whether it is written.
        parts: what its references touch in one execution, the first.
    """

    accesses: int = 0
    stride: int = 0
    written: bool = False
    parts: list[Footprint] = field(default_factory=list[Footprint])


@dataclass(slots=True)
class Visit:
    """A loop, and what is inside.

    Args:
        loop: of the tree.
        above: number of the visit of the loop around it; -1 for none.
        depth: how many loops are around it.
        here: elements of its axis in the first execution.
        entries: how often it is executed.
        passes: its iterations, in all executions together.
        leaves: how often leaves inside it are executed, in all.
        work: likewise, by kind.
        touches: by buffer, in the order in which they are met.
        reduces: whether nothing inside is written along the loop.
    """

    loop: Loop
    above: int
    depth: int
    here: int
    entries: int
    passes: int
    leaves: int = 0
    work: list[int] = field(default_factory=lambda: [0] * len(WORK))
    touches: dict[str, Touch] = field(default_factory=dict[str, Touch])
    reduces: bool = True

    def touched(self, buffer: str) -> int:
        """Count the elements of a buffer that its first execution touches."""
        return union(self.touches[buffer].parts)


class Visits:
    """All loops of a tree's body.

    Args:
        tree: the whole tree.

    Attributes:
        visits: of the loops, each before those inside it.
        heaviest: number of the visit of the loop around the leaf that is executed most; -1 for none.
    """

    def __init__(self, tree: LoopTree) -> None:
        self.visits: list[Visit] = []
        self.heaviest = -1
        self._most = 0
        self._tree = tree
        root = Executions.of(tree)
        for node in tree.body:
            self._node(node, root, {}, -1)

    def around(self, number: int) -> list[int]:
        """List a visit and those of the loops around it, the innermost first."""
        found: list[int] = []
        while number >= 0:
            found.append(number)
            number = self.visits[number].above
        return found

    def _node(self, node: Node, executions: Executions, inside: Remaining, above: int) -> None:
        if isinstance(node, Leaf):
            self._leaf(node, executions.count, above)
            return
        here = remaining(self._tree, inside, node.axis)
        inner = executions.inside(node)
        depth = self.visits[above].depth + 1 if above >= 0 else 0
        number = len(self.visits)
        self.visits.append(Visit(node, above, depth, here, executions.count, inner.count))
        rest = within(inside, node.axis, min(node.step, here))
        for child in node.body:
            self._node(child, inner, rest, number)

    def _leaf(self, leaf: Leaf, count: int, above: int) -> None:
        path = [self.visits[number] for number in self.around(above)]
        work = _work(leaf)
        if count > self._most:
            self._most, self.heaviest = count, above
        for visit in path:
            visit.leaves += count
            visit.reduces = visit.reduces and visit.loop.id not in leaf.target.stride
            for kind, amount in work:
                visit.work[kind] += amount * count
        # What is reduced into is read, too.
        self._touch(leaf.target, count * (2 if leaf.reduce else 1), path, (), written=True)
        self._value(leaf.value, count, path)

    def _value(self, value: Value, count: int, path: Sequence[Visit]) -> None:
        match value:
            case Ref():
                self._touch(value, count, path, ())
            case Call("gather", (Ref() as base, index, Const(stride), Const(extent))):
                self._touch(base, count, path, ((int(stride), int(extent)),))
                self._value(index, count, path)
            case Call(args=args):
                for arg in args:
                    self._value(arg, count, path)
            case Const():
                pass

    def _touch(
        self,
        ref: Ref,
        accesses: int,
        path: Sequence[Visit],
        anywhere: tuple[tuple[int, int], ...],
        *,
        written: bool = False,
    ) -> None:
        """Note a reference in all loops around it, the innermost first; `anywhere` is what no loop tells."""
        moves: dict[str, list[tuple[int, int, int]]] = {}
        part = footprint(ref.offset, anywhere)
        for visit in path:
            touch = visit.touches.get(ref.buffer)
            if touch is None:
                touch = visit.touches[ref.buffer] = Touch()
            stride = ref.stride.get(visit.loop.id, 0)
            if stride:
                _, step = visit.loop.id
                moves.setdefault(visit.loop.axis, []).append((stride, step, visit.here))
                part = footprint(ref.offset, [*anywhere, *_merged(moves)])
            touch.accesses += accesses
            touch.stride = max(touch.stride, abs(stride))
            touch.written = touch.written or written
            touch.parts.append(part)


def _merged(moves: dict[str, list[tuple[int, int, int]]]) -> list[tuple[int, int]]:
    """Give (stride, steps) for each loop; loops of an axis that walk it evenly are one, tails and all.

    Args:
        moves: axis to (stride, step, elements of the axis) of its loops, the innermost first.
    """
    found: list[tuple[int, int]] = []
    for loops in moves.values():
        stride, step, _ = loops[0]
        if False not in [other * step == stride * s for other, s, _ in loops[1:]]:
            found.append((stride, -(-loops[-1][2] // step)))
        else:
            found += [(stride, -(-here // step)) for stride, step, here in loops]
    return found


def _work(leaf: Leaf) -> list[tuple[int, int]]:
    """List (kind, how much) of a leaf's work."""
    found = [0] * len(WORK)
    if leaf.reduce:
        found[_KIND[leaf.reduce]] += 1
    _add_work(leaf.value, found)
    if not any(found):
        found[_MOVED] = 1
    return [(kind, amount) for kind, amount in enumerate(found) if amount]


def _add_work(value: Value, found: list[int]) -> None:
    if isinstance(value, Call):
        found[_KIND[value.function]] += 1
        for arg in value.args:
            _add_work(arg, found)
