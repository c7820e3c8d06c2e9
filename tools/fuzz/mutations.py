"""Mutations: trees, plain and annotated, with one mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isinf

from planish.levels.loops.ir.annotated import (
    AnnotatedLoop,
    AnnotatedTree,
    Block,
    Function,
    Item,
    Part,
    Region,
    Slot,
    Unrolled,
)
from planish.levels.loops.ir.tree import Buffer, Call, Leaf, Loop, LoopTree, Node, Ref, Value, leaves
from planish.levels.loops.lang.program import Const

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


def tree_mutations(tree: LoopTree) -> Iterator[tuple[str, LoopTree]]:
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
        """List what neighboring nodes may be by mistake."""
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
        """List the buffers that are read instead by mistake, which are no smaller."""
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
    """List the wrong references that one may be."""
    for offset in (-1, 1):
        yield "offset", replace(ref, offset=ref.offset + offset)
    for i, (loop, stride) in enumerate(ref.strides):
        others = ref.strides[:i], ref.strides[i + 1 :]
        yield "stride", replace(ref, strides=(*others[0], *others[1]))
        for wrong in (stride - 1, stride + 1):
            if wrong:
                yield "stride", replace(ref, strides=(*others[0], (loop, wrong), *others[1]))


_Registers = Mapping[str, Mapping[Slot, list[int]]]


def annotated_mutations(annotated: AnnotatedTree) -> Iterator[tuple[str, AnnotatedTree]]:
    """List the trees that differ from this one by a mistake, with the kind of it; some are as good."""
    for kind, body in _of_functions(annotated.body):
        yield kind, replace(annotated, body=body)
    for kind, ahead in _of_functions(annotated.ahead):
        yield kind, replace(annotated, ahead=ahead)


def _of_functions(functions: tuple[Function, ...]) -> Iterator[tuple[str, tuple[Function, ...]]]:
    for i, function in enumerate(functions):
        for kind, item in _of_item(function.item):
            changed = function._replace(item=item)
            yield kind, (*functions[:i], changed, *functions[i + 1 :])


def _of_items(items: tuple[Item, ...]) -> Iterator[tuple[str, tuple[Item, ...]]]:
    for i, item in enumerate(items):
        for kind, changed in _of_item(item):
            yield kind, (*items[:i], changed, *items[i + 1 :])


def _of_item(item: Item) -> Iterator[tuple[str, Item]]:
    match item:
        case Unrolled():
            yield from _of_unrolled(item)
        case AnnotatedLoop():
            yield from _of_loop(item)
        case Block():
            for kind, items in _of_items(item.items):
                yield kind, item._replace(items=items)
        case Region():
            yield from _of_region(item)


def _of_unrolled(item: Unrolled) -> Iterator[tuple[str, Item]]:
    for axis, count in item.inside.items():
        yield "guard", item._replace(inside={**item.inside, axis: count + 1})
        if count > 1:
            yield "bound", item._replace(inside={**item.inside, axis: count - 1})


def _of_loop(loop: AnnotatedLoop) -> Iterator[tuple[str, Item]]:
    for i, part in enumerate(loop.parts):
        before, after = loop.parts[:i], loop.parts[i + 1 :]
        # Threads share the first part of a parallel loop: it stays.
        if len(loop.parts) > 1 and part.kind != "parallel":
            yield "tail left out", loop._replace(parts=(*before, *after))
        for kind, changed in _of_part(part):
            yield kind, loop._replace(parts=(*before, changed, *after))


def _of_part(part: Part) -> Iterator[tuple[str, Part]]:
    if part.passes > 1:
        yield "bound", part._replace(passes=part.passes - 1)
    yield "bound", part._replace(passes=part.passes + 1)
    yield "bound", part._replace(first=part.first + 1)
    if part.first:
        yield "bound", part._replace(first=part.first - 1)
    if part.width < part.lanes:
        yield "guard", part._replace(width=part.lanes)
    if part.width > 1:
        yield "bound", part._replace(width=part.width - 1)
    for kind, body in _of_item(part.body):
        yield kind, part._replace(body=body)


def _of_region(region: Region) -> Iterator[tuple[str, Item]]:
    for name in sorted(region.fresh):
        yield "no start", region._replace(fresh=region.fresh - {name})
    for name in sorted(region.registers.keys() & region.reduce.keys() - region.fresh):
        yield "start", region._replace(fresh=region.fresh | {name})
    for name in sorted(region.registers.keys() - region.local):
        yield "no store", region._replace(local=region.local | {name})
    for i, names in enumerate(region.made):
        if names:
            made = (*region.made[:i], frozenset[str](), *region.made[i + 1 :])
            yield "parts not summed", region._replace(made=made)
    for registers in _other_registers(region):
        yield "register", region._replace(registers=registers)
    for kind, items in _of_items(region.items):
        yield kind, region._replace(items=items)


def _other_registers(region: Region) -> Iterator[_Registers]:
    """Let a vector be in another's register, or one that is free for operands."""
    table = {b: {p: [*numbers] for p, numbers in t.items()} for b, t in region.registers.items()}
    used = [(b, p, i) for b, t in table.items() for p, ns in t.items() for i in range(len(ns))]
    numbers = [table[b][p][i] for b, p, i in used]
    for k, (buffer, slot, i) in enumerate(used):
        for number in {numbers[k - 1], region.free - 1} - {numbers[k]}:
            if number >= 0:
                row = [*table[buffer][slot]]
                row[i] = number
                yield {**table, buffer: {**table[buffer], slot: row}}
