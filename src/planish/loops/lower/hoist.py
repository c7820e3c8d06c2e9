"""Costly expressions out of the loops that do not move them.

::

    for r:                                  for r:
      for c:                                  T[0] = sqrt(V[r])
        Y[r, c] = X[r, c] / sqrt(V[r])        for c:
                                                Y[r, c] = X[r, c] / T[0]

Where a loop inside does move the expression, it is computed by a loop of its own, into as many elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from planish.loops.ir.tree import Buffer, Call, Leaf, Loop, LoopId, LoopTree, Node, Ref, Value, leaves, refs
from planish.loops.lang.program import ARITHMETIC
from planish.loops.lower.layout import row_major
from planish.loops.lower.mathlib import EXPANDED

COSTLY = frozenset({"div", "sqrt", *EXPANDED})
ELEMENTS_MAX = 1024
"""An expression is not kept in more elements than this."""
TIMES_MIN = 4
"""Nor is one that is used fewer times."""


def hoisted(tree: LoopTree) -> LoopTree:
    """Compute each costly expression as far outside as it stays the same."""
    if not any(_is_costly(leaf.value) for leaf in leaves(tree.body)):
        return tree
    hoister = _Hoister(tree)
    body = hoister.nodes(tree.body)
    return replace(tree, body=body, buffers=(*tree.buffers, *hoister.buffers)) if hoister.buffers else tree


def _is_costly(value: Value) -> bool:
    return isinstance(value, Call) and (value.function in COSTLY or any(map(_is_costly, value.args)))


@dataclass
class _Around:
    """A loop around the leaf that is looked at.

    Args:
        loop: the loop.
        count: its iterations, tails included; 0 where that is not fixed.
        written: the buffers that something inside it writes.
        before: what is put before it.
        kept: an expression that is computed there, and where its value is.
    """

    loop: Loop
    count: int
    written: frozenset[str]
    before: list[Node] = field(default_factory=list[Node])
    kept: dict[Value, Ref] = field(default_factory=dict[Value, Ref])


class _Hoister:
    def __init__(self, tree: LoopTree) -> None:
        self.tree = tree
        self.buffers: list[Buffer] = []
        self.path: list[_Around] = []

    def nodes(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """Rebuild nodes inside the path."""
        found: list[Node] = []
        for node in nodes:
            if isinstance(node, Leaf):
                value = self._value(node.value, node.target)
                found.append(node if value is node.value else Leaf(node.target, node.reduce, value))
                continue
            around = _Around(
                node, self._count(node), frozenset(leaf.target.buffer for leaf in leaves((node,)))
            )
            self.path.append(around)
            body = self.nodes(node.body)
            self.path.pop()
            found += [*around.before, replace(node, body=body) if body != node.body else node]
        return tuple(found)

    def _count(self, loop: Loop) -> int:
        # The extent of a window depends on loops around it, so it has no fixed count.
        if loop.axis in self.tree.window:
            return 0
        outer = [around.loop.step for around in self.path if around.loop.axis == loop.axis]
        return -(-min(outer, default=self.tree.size[loop.axis]) // loop.step)

    def _value(self, value: Value, target: Ref) -> Value:
        if not isinstance(value, Call) or not _is_costly(value):
            return value
        depth = self._depth(value)
        if depth is not None:
            return self._keep(value, depth, target)
        args = tuple(self._value(arg, target) for arg in value.args)
        # The whole has to stay, but a part of it may leave.
        return value if args == value.args else Call(value.function, args)

    def _depth(self, value: Call) -> int | None:
        """Find how many loops stay around an expression; None where it has to stay where it is."""
        read = list(refs(value))
        moved = {loop for ref in read for loop, _ in ref.strides}
        # The loops that its operands' buffers live in.
        scope = max((self.tree.buffer[ref.buffer].scope for ref in read), default=0)
        for depth in range(scope, len(self.path)):
            inner = self.path[depth:]
            first = inner[0]
            # Nothing inside may write what is read, or the value that is kept would be an old one.
            if first.loop.id not in moved and first.written.isdisjoint(ref.buffer for ref in read):
                return depth if self._pays(inner, moved) else None
        return None

    def _pays(self, inner: Sequence[_Around], moved: set[LoopId]) -> bool:
        axes = {around.loop.axis for around in inner if around.loop.id in moved}
        still = [around.count for around in inner if around.loop.id not in moved]
        whole = all(around.loop.id in moved for around in inner if around.loop.axis in axes)
        size = prod(around.count for around in inner if around.loop.id in moved)
        # 0 elements stand for a count that is not fixed.
        return whole and prod(still) >= TIMES_MIN and 0 < size <= ELEMENTS_MAX

    def _keep(self, value: Call, depth: int, target: Ref) -> Ref:
        """Compute an expression before the loop at a depth; gives where its value is."""
        around = self.path[depth]
        # By value: several leaves below one loop often divide by the same root.
        if value in around.kept:
            return around.kept[value]
        moved = {loop for ref in refs(value) for loop, _ in ref.strides}
        inner = [a for a in self.path[depth:] if a.loop.id in moved]
        counts = [a.count for a in inner]
        name = f"{target.buffer}.kept{len(self.buffers) or ''}"
        dtype = ARITHMETIC[self.tree.buffer[target.buffer].dtype]  # not rounded to a narrow target's type
        self.buffers.append(Buffer(name, dtype, prod(counts), "temporary", depth))
        strides = zip([a.loop.id for a in inner], row_major(counts), strict=True)
        place = around.kept[value] = Ref(name, 0, tuple(strides))
        node: Node = Leaf(place, None, value)
        for a in reversed(inner):
            node = Loop(a.loop.axis, a.loop.step, (node,))
        around.before.append(node)
        return place
