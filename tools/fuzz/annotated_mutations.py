"""Ways in which one decision of an annotated tree can be wrong: a guard, a bound, a register."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from planish.levels.loops.ir.annotated import (
    AnnotatedTree,
    Block,
    CellRegion,
    Function,
    Item,
    Lanes,
    Nest,
    Part,
    Region,
    Slot,
    Unrolled,
)

Changed = Iterator[tuple[str, AnnotatedTree]]
"""The kind of each mutation, and the tree that has it."""
_Registers = Mapping[str, Mapping[Slot, list[int]]]


def annotated_mutations(annotated: AnnotatedTree) -> Changed:
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
        case Lanes():
            for name in sorted(item.private):
                yield "register", item._replace(private=item.private - {name})
        case Nest():
            yield from _of_nest(item)
        case Block():
            for kind, items in _of_items(item.items):
                yield kind, item._replace(items=items)
        case Region():
            yield from _of_region(item)
        case CellRegion():
            yield from _of_cells(item)


def _of_unrolled(item: Unrolled) -> Iterator[tuple[str, Item]]:
    for axis, count in item.inside.items():
        yield "guard", item._replace(inside={**item.inside, axis: count + 1})
        if count > 1:
            yield "bound", item._replace(inside={**item.inside, axis: count - 1})


def _of_nest(nest: Nest) -> Iterator[tuple[str, Item]]:
    for i, part in enumerate(nest.parts):
        before, after = nest.parts[:i], nest.parts[i + 1 :]
        # Threads share the first part of a parallel loop: it stays.
        if len(nest.parts) > 1 and part.kind != "parallel":
            yield "tail left out", nest._replace(parts=(*before, *after))
        for kind, changed in _of_part(part):
            yield kind, nest._replace(parts=(*before, changed, *after))


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
    for i in range(len(part.carried)):
        yield "register", part._replace(carried=(*part.carried[:i], *part.carried[i + 1 :]))
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
    for k, (buffer, place, i) in enumerate(used):
        for number in {numbers[k - 1], region.free - 1} - {numbers[k]}:
            if number >= 0:
                row = [*table[buffer][place]]
                row[i] = number
                yield {**table, buffer: {**table[buffer], place: row}}


def _of_cells(region: CellRegion) -> Iterator[tuple[str, Item]]:
    for name in sorted(region.held - region.local):
        yield "no store", region._replace(local=region.local | {name})
    for kind, item in _of_item(region.item):
        yield kind, region._replace(item=item)
