"""An annotated tree as text for people: what is counted, unrolled, a vector, and in registers."""

from __future__ import annotations

from collections.abc import Iterator, Set

from planish.loops.ir.annotated import (
    STACK,
    AnnotatedTree,
    Block,
    CellRegion,
    Item,
    Lanes,
    Nest,
    Part,
    Region,
    Unrolled,
)
from planish.loops.ir.schedule import loop_text
from planish.loops.ir.tree import Leaf, Node, leaves, loops


def annotated_text(annotated: AnnotatedTree) -> str:
    """Write an annotated tree: a line for each part of a loop, and for what is held around its body.

    `m:12: 16 counted` is a loop whose body stands once; `k: 300 counted by 4` one whose body stands four
    times in each iteration; `n: 2 vectors of 16, unrolled` one that is no loop any more.
    """
    vectors = annotated.vectors
    lines = [f"{vectors.registers} vector registers of {vectors.lanes} lanes", *_spaces(annotated)]
    for title, functions in (("once, ahead of the first call", annotated.ahead), ("", annotated.body)):
        for function in functions:
            lines += [f"# {title}"] if title else []
            lines += _item(function.item, "")
    return "\n".join(lines) + "\n"


def _spaces(annotated: AnnotatedTree) -> Iterator[str]:
    """Say where the kernel's own buffers live."""
    for buffer in annotated.tree.buffers:
        if buffer.kind == "temporary":
            on = "on the" if annotated.spaces[buffer.name] == STACK else "in"
            yield f"{buffer.name}: {buffer.size} of {buffer.dtype} {on} {annotated.spaces[buffer.name]}"
    for name in sorted(annotated.past_caches):
        yield f"{name}: written past the caches"


def _item(item: Item, indent: str) -> Iterator[str]:
    match item:
        case Unrolled(node=node):
            yield indent + _unrolled(node)
        case Lanes(loop=loop):
            yield indent + ", ".join(f"{leaf.target.buffer}[...]" for leaf in leaves(loop.body))
        case Nest(parts=parts):
            for part in parts:
                yield indent + f"{loop_text(item.loop.id)}: {_part(part)}"
                yield from _item(part.body, indent + "  ")
        case Block(items=items):
            for inner in items:
                yield from _item(inner, indent)
        case Region(items=items):
            yield from _held(indent, {b: len(t) for b, t in item.registers.items()}, item.copies, item.local)
            for inner in items:
                yield from _item(inner, indent)
        case CellRegion():
            yield from _held(indent, dict.fromkeys(sorted(item.held), 0), item.parts, item.local)
            yield from _item(item.item, indent)


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


def _held(indent: str, vectors: dict[str, int], parts: int, local: Set[str]) -> Iterator[str]:
    """Say what is held; of a buffer in brackets memory sees nothing."""
    if vectors:
        words = [_buffer(name, count, name in local) for name, count in vectors.items()]
        times = f", sums in up to {parts} parts" if parts > 1 else ""
        yield f"{indent}in registers: {', '.join(words)}{times}"


def _buffer(name: str, count: int, local: bool) -> str:
    word = f"({name})" if local else name
    return f"{count} of {word}" if count else word
