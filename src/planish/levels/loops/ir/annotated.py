"""The annotated loop tree: how a loop tree is executed, step by step, on a machine with vectors.

`planish.levels.loops.lower` decides; code generators carry out what stands here. It says which loops are
vectors, unrolled, counted or parallel, in parts where full and partial passes differ, and which elements are
in registers meanwhile, which have numbers. A buffer is in memory that all threads see, on the stack of each
thread, or in registers for all its life.

A loop of the tree appears once for each way in which it is executed: the inside of a tail is decided anew,
for less remains there and more may fit the registers.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, NamedTuple

from planish.levels.loops.ir.schedule import loop_text
from planish.levels.loops.ir.tree import Leaf, Loop, LoopTree, Node, Ref, leaves, loops
from planish.levels.loops.lang.program import Const

# Annotated trees

Inside = Mapping[str, int]
"""Rests of the axes that have an enclosing loop."""


class Vectors(NamedTuple):
    """Vector registers that a back end states, on which decisions depend.

    Args:
        lanes: elements of a vector register.
        registers: how many there are.
        masks: whether parts of a vector are handled as cheaply as whole ones.
        compiled: whether a compiler allocates the registers, for instructions that it keeps in order. Then
            loops in a region may read again whatever they have written; else what the same iteration wrote.
    """

    lanes: int
    registers: int
    masks: bool
    compiled: bool = False


class Unrolled(NamedTuple):
    """A node that becomes straight-line code: all loops below are unrolled.

    An innermost loop whose iterations stand side by side is executed in vectors, the last with a mask.

    Args:
        node: a loop, or a leaf.
        inside: what remains around it.
        vector: for a leaf, the loop in whose vectors it is; `inside` says how many lanes count.
    """

    node: Node
    inside: Inside
    vector: Loop | None = None


class Part(NamedTuple):
    """Consecutive iterations of a loop that are executed alike.

    Args:
        kind: "counted" where a loop remains at run time, "unrolled" where none does, "parallel" where several
            threads share the passes.
        first: iterations of the loop before them.
        passes: how many.
        width: iterations of the loop in one pass, which its body walks: a strip's, or a vector's.
        body: a pass.
        lanes: of the vector that a pass is; 1 where it executes its iterations in turn. With fewer iterations
            than lanes, the others are off.
        copies: passes in one iteration of a counted loop; passes that are left over follow it, unrolled.
        fetched: references whose lines a counted loop asks for ahead of time.
    """

    kind: str
    first: int
    passes: int
    width: int
    body: Item
    lanes: int = 1
    copies: int = 1
    fetched: tuple[Ref, ...] = ()


class AnnotatedLoop(NamedTuple):
    """A loop and how each of its parts is executed.

    Args:
        loop: of the tree.
        parts: in order.
    """

    loop: Loop
    parts: tuple[Part, ...]


class Block(NamedTuple):
    """Neighboring nodes, executed one after another.

    Args:
        nodes: of the tree.
        items: how they are executed, each by itself or some together.
    """

    nodes: tuple[Node, ...]
    items: tuple[Item, ...]


def is_start(leaf: Leaf, fresh: AbstractSet[str], reduced: Container[str]) -> bool:
    """Return whether a leaf gives reduced buffers, which begin in a region, their first value."""
    buffer = leaf.target.buffer
    return buffer in fresh and buffer in reduced and isinstance(leaf.value, Const)


Slot = tuple[int, int]
"""(offset in elements, lanes): a vector of a buffer that a register holds.

The offset counts from where the buffer's references are when the region begins.
"""


class Region(NamedTuple):
    """Neighboring nodes whose results live in registers meanwhile.

    Args:
        nodes: of the tree.
        items: how each of them is executed, those that only give first values left out.
        made: for each of the items, the buffers that it has reduced when it ends: sums that were kept in
            parts or lane by lane become whole then, in the first of their registers, which serves alone from
            there on.
        registers: buffer to its vectors, each with the numbers of its registers; several where sums are kept
            in parts to hide latency, which iterations take alternately.
        homes: for the same vectors, a reference to where they are in memory.
        stride: elements between the lanes of a buffer's vectors, where it is not 1.
        reduce: how a buffer's elements are reduced, for buffers that are.
        lanewise: reduced buffers whose elements are kept as a vector of partial results.
        fresh: reduced buffers that begin here, so that memory is not read.
        local: buffers that live in the region only, so that memory is not written.
        copies: the most registers that one vector has.
        free: how many registers, from the first one, are left for operands.
        unrolled: the loops below along which results are written.
    """

    nodes: tuple[Node, ...]
    items: tuple[Item, ...]
    made: tuple[AbstractSet[str], ...]
    registers: Mapping[str, Mapping[Slot, Sequence[int]]]
    homes: dict[str, dict[Slot, Ref]]
    stride: Mapping[str, int]
    reduce: Mapping[str, str]
    lanewise: AbstractSet[str]
    fresh: AbstractSet[str]
    local: AbstractSet[str]
    copies: int
    free: int
    unrolled: Sequence[Loop]

    def is_start(self, leaf: Leaf) -> bool:
        """Return whether a leaf gives held vectors their first value, which they have from the beginning."""
        return is_start(leaf, self.fresh, self.reduce)


Item = Unrolled | AnnotatedLoop | Block | Region


def nodes_of(item: Item) -> tuple[Node, ...]:
    """Return the nodes of the tree that an item executes."""
    match item:
        case Unrolled():
            return (item.node,)
        case AnnotatedLoop():
            return (item.loop,)
        case _:
            return item.nodes


class Function(NamedTuple):
    """Root nodes that one machine function executes.

    Args:
        nodes: of the tree; a parallel loop is alone.
        item: how.
        kind: "serial", or "parallel" where threads share the iterations of its only loop.
    """

    nodes: tuple[Node, ...]
    item: Item
    kind: Literal["serial", "parallel"] = "serial"

    def iterations(self, tree: LoopTree) -> tuple[int, bool]:
        """Count a parallel loop's iterations, the tail included, or 1; and return whether it is one."""
        node = self.nodes[0]
        if self.kind == "serial" or isinstance(node, Leaf):
            return 1, False
        return -(-tree.size[node.axis] // node.step), True


MEMORY = "memory"
"""The space of what all threads see."""
STACK = "stack"
"""The space of what lives inside one iteration of a parallel loop: each thread has a piece of its own."""
REGISTERS = "registers"
"""The space of temporaries that registers hold for as long as they live: they take no memory."""


@dataclass(frozen=True)
class AnnotatedTree:
    """A loop tree with all decisions.

    Args:
        tree: what is executed.
        vectors: of the machine that it was decided for.
        body: what runs at each call, in order.
        ahead: what runs once, before the first call.
        spaces: buffer to where it lives: `MEMORY`, `STACK` or `REGISTERS`. What is in memory or on the stack
            may be in registers now and then: regions and lanes say when.
        nontemporal_stores: outputs whose whole vectors are stored past the caches, where their arrays begin
            at a multiple of a vector's size.
    """

    tree: LoopTree
    vectors: Vectors
    body: tuple[Function, ...]
    ahead: tuple[Function, ...]
    spaces: Mapping[str, str]
    nontemporal_stores: AbstractSet[str] = frozenset()


def memory_space_of(tree: LoopTree, functions: Iterable[Function]) -> Mapping[str, str]:
    """Return the memory space of each buffer.

    Args:
        functions: how all of it is executed.
    """
    found = dict.fromkeys([buffer.name for buffer in tree.buffers], MEMORY)
    temporaries = [buffer for buffer in tree.buffers if buffer.kind == "temporary"]
    if not temporaries:
        return found
    functions = tuple(functions)
    addressed = {name for function in functions for name in _addressed(function.item, frozenset())}
    parallel_nodes = [function.nodes for function in functions if function.kind == "parallel"]
    inside = {ref.buffer for nodes in parallel_nodes for leaf in leaves(nodes) for ref in leaf.refs}
    for buffer in temporaries:
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
        case AnnotatedLoop(parts=parts):
            for part in parts:
                yield from _addressed(part.body, in_registers)
        case Block() | Region():
            local = item.local if isinstance(item, Region) else frozenset[str]()
            for inner in item.items:
                yield from _addressed(inner, in_registers | local)


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


# Annotated trees


# Listing


def annotated_text(annotated: AnnotatedTree) -> str:
    """Write an annotated tree: a line for each part of a loop, and for what is held around its body.

    `m:12: 16 counted` is a loop whose body stands once; `k: 300 counted by 4` one whose body stands four
    times in each iteration; `n: 2 vectors of 16, unrolled` one that is no longer a loop.
    """
    vectors = annotated.vectors
    lines = [f"{vectors.registers} vector registers of {vectors.lanes} lanes", *_spaces(annotated)]
    for title, functions in (("once, ahead of the first call", annotated.ahead), ("", annotated.body)):
        for function in functions:
            lines += [f"# {title}"] if title else []
            lines += _item(function.item, "")
    return "\n".join(lines) + "\n"


def _spaces(annotated: AnnotatedTree) -> Iterator[str]:
    """Describe where the kernel's own buffers are."""
    for buffer in annotated.tree.buffers:
        if buffer.kind == "temporary":
            on = "on the" if annotated.spaces[buffer.name] == STACK else "in"
            yield f"{buffer.name}: {buffer.size} of {buffer.dtype} {on} {annotated.spaces[buffer.name]}"
    for name in sorted(annotated.nontemporal_stores):
        yield f"{name}: written past the caches"


def _item(item: Item, indent: str) -> Iterator[str]:
    match item:
        case Unrolled(node=node):
            yield indent + _unrolled(node)
        case AnnotatedLoop(parts=parts):
            for part in parts:
                yield f"{indent}{loop_text(item.loop.id)}: {_part(part)}"
                yield from _item(part.body, indent + "  ")
        case Block(items=items):
            for inner in items:
                yield from _item(inner, indent)
        case Region(items=items):
            yield from _held(indent, item)
            for inner in items:
                yield from _item(inner, indent)


def _unrolled(node: Node) -> str:
    if isinstance(node, Leaf):
        return f"{node.target.buffer}[...]"
    below = [*dict.fromkeys([loop_text(loop.id) for loop in (node, *loops(node.body))])]
    vectors = ", in vectors" if any(loop.side_by_side for loop in (node, *loops(node.body))) else ""
    written = dict.fromkeys([leaf.target.buffer for leaf in leaves((node,))])
    return f"{', '.join(below)} unrolled{vectors}: {', '.join(f'{name}[...]' for name in written)}"


def _part(part: Part) -> str:
    if part.lanes > 1:
        active = "" if part.width == part.lanes else f" ({part.width} count)"
        what = f"{part.passes} vectors of {part.lanes}{active}"
    else:
        what = f"{part.passes} of {part.width}" if part.width > 1 else str(part.passes)
    by = f" by {part.copies}" if part.kind == "counted" and part.copies > 1 else ""
    fetched = dict.fromkeys([ref.buffer for ref in part.fetched])
    early = f", asks early for {', '.join(fetched)}" if fetched else ""
    comma = "," if part.lanes > 1 else ""
    return f"{what}{comma} {part.kind}{by}{early}"


def _held(indent: str, region: Region) -> Iterator[str]:
    """Describe what is held; of a buffer in brackets memory sees nothing."""
    if region.registers:
        names = [(f"({name})" if name in region.local else name, name) for name in region.registers]
        words = [f"{len(region.registers[name])} of {text}" for text, name in names]
        times = f", sums in up to {region.copies} parts" if region.copies > 1 else ""
        yield f"{indent}in registers: {', '.join(words)}{times}"
