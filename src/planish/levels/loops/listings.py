"""Listings of a candidate for people.

A loop tree over named axes, pseudo-code over memory, and the annotated tree, which says what is counted,
unrolled, a vector, and in registers.
"""

from __future__ import annotations

from collections.abc import Iterator

from planish.levels.loops.ir.annotated import (
    STACK,
    AnnotatedLoop,
    AnnotatedTree,
    Block,
    Item,
    Part,
    Region,
    Unrolled,
)
from planish.levels.loops.ir.schedule import Schedule, loop_text
from planish.levels.loops.ir.tree import (
    Leaf,
    LoopTree,
    Node,
    Ref,
    Remaining,
    Value,
    iterations,
    leaves,
    loops,
    within,
)
from planish.levels.loops.lang.program import COMPARISONS, IDENTITY, Const
from planish.levels.loops.lower.lowering import Memory
from planish.levels.loops.lower.placement import Scope, Start

# Annotated trees


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


# Schedules

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_UPDATE = {
    "add": "{0} += {1}",
    "mul": "{0} *= {1}",
    "max": "{0} = max({0}, {1})",
    "min": "{0} = min({0}, {1})",
}


def loop_tree_text(schedule: Schedule) -> str:
    """Write which nests share which loops, in the manner of the thesis's listings 1 to 5.

    Below the loops stands how many elements each intermediate tensor, tile and copy takes.
    """
    memory = Memory(schedule)
    lines = [f"ahead: {_copy_text(memory, n)}" for n, copy in memory.plan.copies.items() if copy.ahead]
    lines += _items(memory, memory.placement.root, "")
    lines += [f"%{name}: no buffer" for name in sorted(memory.inlined)]
    lines += [f"%{b.name}: {b.size}" for b in memory.buffers if b.kind in ("temporary", "ahead")]
    return "\n".join(lines) + "\n"


def _items(memory: Memory, scope: Scope, indent: str) -> Iterator[str]:
    for item in scope.items:
        if isinstance(item, Scope):
            yield f"{indent}iter {loop_text(item.loop)}:"
            yield from _items(memory, item, indent + "  ")
        elif isinstance(item, Start):
            statement = memory.graph.nests[memory.graph.nest[item.node]].statement
            yield f"{indent}%{statement.target} = {IDENTITY[statement.reduce or 'add']:g}"
        elif item in memory.plan.copies:
            yield indent + _copy_text(memory, item)
        elif item in memory.graph.nest:
            yield f"{indent}%{memory.graph.nests[memory.graph.nest[item]].statement}"
        else:
            tile = item.removeprefix("write ")
            yield f"{indent}{memory.graph.nests[memory.graph.nest[tile]].statement.target} = %{tile}.tile"


def _copy_text(memory: Memory, name: str) -> str:
    copy = memory.plan.copies[name]
    loops = ", ".join(loop_text(run.loop) for run in copy.packed.runs)
    return f"%{name}[{loops}] = %{copy.source}"


def pseudocode(tree: LoopTree) -> str:
    """Write a tree as pseudo-code, with the counters of loops and flat subscripts.

    A loop over tiles is written `for m.12 in 0..16 of 12 (tail 8)`: sixteen iterations of twelve elements,
    and one of eight. `m.12` is its iteration number, `m` that of the loop of step 1.
    """
    lines: list[str] = []
    for b in tree.buffers:
        where = f", new in each iteration of {b.scope} loops" if b.scope else ""
        lines.append(f"{b.kind} {b.name}: {b.dtype}[{b.size}]{where}")
    for title, nodes in (("once, ahead of the first call", tree.ahead), ("each call", tree.body)):
        if nodes and tree.ahead:
            lines += ["", f"# {title}"]
        elif nodes:
            lines.append("")
        lines += _nodes(tree, nodes, {}, "")
    return "\n".join(lines) + "\n"


def _nodes(tree: LoopTree, nodes: tuple[Node, ...], inside: Remaining, indent: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, Leaf):
            target, value = _ref(node.target), _value(node.value)
            value = value[1:-1] if value.startswith("(") and value.endswith(")") else value
            update = _UPDATE[node.reduce] if node.reduce else "{0} = {1}"
            yield indent + update.format(target, value)
            continue
        full, tail = iterations(tree, inside, node)
        kind = "" if node.kind == "serial" else f"{node.kind} "
        of = f" of {node.step}" if node.step > 1 else ""
        rest = f" (tail {tail})" if tail else ""
        yield f"{indent}{kind}for {_counter(node.axis, node.step)} in 0..{full}{of}{rest}:"
        inner = within(inside, node.axis, node.step if full else tail)
        yield from _nodes(tree, node.body, inner, indent + "  ")


def _value(value: Value) -> str:
    match value:
        case Const():
            return str(value)
        case Ref():
            return _ref(value)
        case _:
            args = [_value(v) for v in value.args]
            if value.function in _INFIX:
                return f"({args[0]} {_INFIX[value.function]} {args[1]})"
            if value.function in COMPARISONS:
                return f"where({args[0]} {value.function} {args[1]}, {args[2]}, {args[3]})"
            return f"{value.function}({', '.join(args)})"


def _ref(ref: Ref) -> str:
    counters = [(stride, _counter(axis, step)) for (axis, step), stride in ref.strides]
    terms = [counter if stride == 1 else f"{stride}*{counter}" for stride, counter in counters]
    if ref.offset or not terms:
        terms.append(str(ref.offset))
    return f"{ref.buffer}[{' + '.join(terms).replace('+ -', '- ')}]"


def _counter(axis: str, step: int) -> str:
    return axis if step == 1 else f"{axis}.{step}"
