"""Ways in which one thing of a loop tree can be wrong: a number, a stride, a tensor, a store left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isinf

from planish.levels.loops.ir.tree import Buffer, Call, Leaf, Loop, LoopTree, Node, Ref, Value, leaves
from planish.levels.loops.lang.program import Const

Changed = Iterator[tuple[str, LoopTree]]
"""The kind of each mutation, and the tree that has it."""

_OTHERS = {
    "add": ("sub", "max"),
    "sub": ("add",),
    "mul": ("add",),
    "div": ("mul",),
    "max": ("min", "add"),
    "min": ("max",),
    "<": ("<=",),
    "<=": ("<",),
    "==": ("!=",),
    "!=": ("==",),
}
_REDUCTIONS = {"add": ("max", "mul"), "mul": ("add",), "max": ("min", "add"), "min": ("max",)}
_STARTS = (0.0, 1.0, -1.0, 0.25, 1e30, -1e30)
"""What a reduction or a padding begins with by mistake."""


def tree_mutations(tree: LoopTree) -> Changed:
    """List the trees that differ from this one by a mistake, with the kind of it; some are as good."""
    reduced = {leaf.target.buffer for leaf in leaves((*tree.ahead, *tree.body)) if leaf.reduce}
    mutator = _Mutator(tree.buffers, frozenset(reduced))
    # Copies of padded inputs are no longer those that all schedules share.
    for kind, body in mutator.of_nodes(tree.body):
        yield kind, replace(tree, body=body, views=0)
    for kind, ahead in mutator.of_nodes(tree.ahead):
        yield kind, replace(tree, ahead=ahead)


class _Mutator:
    def __init__(self, buffers: Sequence[Buffer], reduced: frozenset[str]) -> None:
        self._buffers = {b.name: b for b in buffers}
        self._reduced = reduced

    def of_nodes(self, nodes: tuple[Node, ...]) -> Iterator[tuple[str, tuple[Node, ...]]]:
        """List what neighbouring nodes may be by mistake."""
        for i, node in enumerate(nodes):
            before, after = nodes[:i], nodes[i + 1 :]
            if len(nodes) > 1:
                yield self._lost(node), (*before, *after)
            yield "done twice", (*before, node, node, *after)
            if after:
                yield "order", (*before, after[0], node, *after[1:])
            for kind, changed in self._of_node(node):
                yield kind, (*before, changed, *after)

    def _lost(self, node: Node) -> str:
        starts = all(leaf.reduce is None and isinstance(leaf.value, Const) for leaf in leaves((node,)))
        return "no start" if starts else "no store"

    def _of_node(self, node: Node) -> Iterator[tuple[str, Node]]:
        if isinstance(node, Leaf):
            yield from self._of_leaf(node)
            return
        for kind, body in self.of_nodes(node.body):
            yield kind, Loop(node.axis, node.step, body, node.kind)

    def _of_leaf(self, leaf: Leaf) -> Iterator[tuple[str, Leaf]]:
        for other in _REDUCTIONS.get(leaf.reduce or "", ()):
            yield "reduction", replace(leaf, reduce=other)
        if leaf.reduce:
            yield "reduction", replace(leaf, reduce=None)
        for kind, target in _moved(leaf.target):
            yield f"target's {kind}", replace(leaf, target=target)
        if isinstance(leaf.value, Const) and leaf.reduce is None:
            kind = "start" if leaf.target.buffer in self._reduced else "padding"
            for number in {*_STARTS} - {leaf.value.value}:
                yield kind, replace(leaf, value=Const(number))
            return
        for kind, value in self._of_value(leaf.value):
            yield kind, replace(leaf, value=value)

    def _of_value(self, value: Value) -> Iterator[tuple[str, Value]]:
        match value:
            case Const(number):
                yield "number", Const(0.0 if isinf(number) else number * 1.5 if number else 0.5)
                yield "number", Const(-number if number else 1.0)
            case Ref():
                yield from _moved(value)
                yield from (("tensor", replace(value, buffer=other)) for other in self._alike(value.buffer))
            case Call():
                yield from self._of_call(value)

    def _alike(self, name: str) -> Iterator[str]:
        """List the buffers that are read in its place by mistake, which are no smaller."""
        own = self._buffers[name]
        for b in self._buffers.values():
            if b.name != name and b.dtype == own.dtype and b.size >= own.size:
                yield b.name

    def _of_call(self, call: Call) -> Iterator[tuple[str, Value]]:
        for other in _OTHERS.get(call.function, ()):
            yield "function", replace(call, function=other)
        if len(call.args) == 1:
            yield "function", call.args[0]
        if len(call.args) == 2:
            yield "operands", replace(call, args=call.args[::-1])
        if len(call.args) == 4 and call.function != "gather":
            yield "operands", replace(call, args=(*call.args[:2], *call.args[:1:-1]))
        for i, arg in enumerate(call.args):
            for kind, changed in self._of_value(arg):
                yield kind, replace(call, args=(*call.args[:i], changed, *call.args[i + 1 :]))


def _moved(ref: Ref) -> Iterator[tuple[str, Ref]]:
    """List the wrong places that a reference may have."""
    for offset in (-1, 1):
        yield "offset", replace(ref, offset=ref.offset + offset)
    for i, (loop, stride) in enumerate(ref.strides):
        others = ref.strides[:i], ref.strides[i + 1 :]
        yield "stride", replace(ref, strides=(*others[0], *others[1]))
        for wrong in (stride - 1, stride + 1):
            if wrong:
                yield "stride", replace(ref, strides=(*others[0], (loop, wrong), *others[1]))
