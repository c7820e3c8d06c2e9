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


def memory_space_of(tree: LoopTree, functions: Iterable[Function]) -> Mapping[str, str]:
    """Return the memory space of each buffer.

    Args:
        functions: how all of it is executed.
    """
    functions = tuple(functions)
    addressed = {name for function in functions for name in _addressed(function.item, frozenset())}
    parallel_nodes = [function.nodes for function in functions if function.kind == "parallel"]
    inside = {ref.buffer for nodes in parallel_nodes for leaf in leaves(nodes) for ref in leaf.refs}
    found: dict[str, str] = {}
    for buffer in tree.buffers:
        found[buffer.name] = MEMORY
        if buffer.kind == "temporary":
            # Threads that share a loop must not share a buffer whose lifetime is one of its iterations.
            thread_private = buffer.scope > 0 and buffer.name in inside
            in_memory = STACK if thread_private else MEMORY
            found[buffer.name] = in_memory if buffer.name in addressed else REGISTERS
    return found


def _addressed(item: Item, in_registers: AbstractSet[str]) -> Iterator[str]:
    """List the buffers that an item reads or writes in memory, with repetitions."""
    match item:
        case Unrolled(node=node):
            yield from _touched(leaves((node,)), in_registers)
        case Lanes():
            # What was summed lane by lane is added to what is in memory.
            yield from _touched(leaves(item.loop.body), (in_registers | item.private) - item.summed)
        case _:
            local = item.local if isinstance(item, Region | CellRegion) else frozenset[str]()
            for inner in _items(item):
                yield from _addressed(inner, in_registers | local)


def _items(item: AnnotatedLoop | Block | Region | CellRegion) -> Sequence[Item]:
    match item:
        case AnnotatedLoop(parts=parts):
            return [body for part in parts for body in (part.body, *part.others)]
        case CellRegion():
            return (item.item,)
        case _:
            return item.items


def _touched(found: Iterable[Leaf], in_registers: AbstractSet[str]) -> Iterator[str]:
    for leaf in found:
        for ref in leaf.refs:
            if ref.buffer not in in_registers:
                yield ref.buffer


def entry_groups(nodes: tuple[Node, ...]) -> list[tuple[Node, ...]]:
    """Group root nodes by function: one for all of them, unless some are parallel."""
    # Threads synchronize at the end of a function: the nodes around a parallel loop need separate functions.
    if any(isinstance(n, Loop) and n.concurrent for n in nodes):
        return [(node,) for node in nodes]
    return [nodes] if nodes else []
