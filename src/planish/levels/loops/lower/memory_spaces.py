"""Memory spaces of buffers, and the division of a tree into machine functions.

A buffer is in memory that all threads see, on the stack of each thread, or in registers for all its life.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from planish.levels.loops.ir.annotated import (
    MEMORY,
    REGISTERS,
    STACK,
    AnnotatedLoop,
    Block,
    CellRegion,
    Function,
    Item,
    Lanes,
    Region,
    Unrolled,
)
from planish.levels.loops.ir.tree import Leaf, Loop, LoopTree, Node, leaves


def spaces_of(tree: LoopTree, functions: Iterable[Function]) -> Mapping[str, str]:
    """Return the memory space of each buffer.

    Args:
        functions: how all of it is executed.
    """
    functions = tuple(functions)
    addressed = {name for function in functions for name in _addressed(function.item, frozenset())}
    shared_out = [function.nodes for function in functions if function.kind == "parallel"]
    inside = {ref.buffer for nodes in shared_out for leaf in leaves(nodes) for ref in leaf.refs}
    found: dict[str, str] = {}
    for buffer in tree.buffers:
        found[buffer.name] = MEMORY
        if buffer.kind == "temporary":
            # Threads that share a loop must not share what lives inside one of its iterations.
            mine = buffer.scope > 0 and buffer.name in inside
            found[buffer.name] = REGISTERS if buffer.name not in addressed else STACK if mine else MEMORY
    return found


def _addressed(item: Item, held: AbstractSet[str]) -> Iterator[str]:
    """List the buffers that an item reads or writes in memory, some several times."""
    match item:
        case Unrolled(node=node):
            yield from _touched(leaves((node,)), held)
        case Lanes():
            # What was summed lane by lane is added to what is in memory.
            yield from _touched(leaves(item.loop.body), (held | item.private) - item.summed)
        case _:
            local = item.local if isinstance(item, Region | CellRegion) else frozenset[str]()
            for inner in _items(item):
                yield from _addressed(inner, held | local)


def _items(item: AnnotatedLoop | Block | Region | CellRegion) -> Sequence[Item]:
    match item:
        case AnnotatedLoop(parts=parts):
            return [body for part in parts for body in (part.body, *part.others)]
        case CellRegion():
            return (item.item,)
        case _:
            return item.items


def _touched(found: Iterable[Leaf], held: AbstractSet[str]) -> Iterator[str]:
    for leaf in found:
        for ref in leaf.refs:
            if ref.buffer not in held:
                yield ref.buffer


def entry_groups(nodes: tuple[Node, ...]) -> list[tuple[Node, ...]]:
    """Group root nodes by function: one for all of them, unless some are parallel."""
    # Threads meet at the end of a function: what comes before and after a parallel loop is none of its own.
    if any(isinstance(n, Loop) and n.concurrent for n in nodes):
        return [(node,) for node in nodes]
    return [nodes] if nodes else []
