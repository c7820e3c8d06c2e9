"""Edits that the structure of a module suggests: its batch in tiles, and each block left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planish.core import ScheduleError
from planish.hlo.edits import DeleteOp, Draft, Edit, TileBatch
from planish.hlo.ir import ir, uid_of, walk

TILES = (2, 5, 10, 20)
"""Numbers of tiles; what lies between is for mutations."""

BLOCKS = 16
"""The largest blocks alone."""

LEAST = 3
"""Operations of a block."""


def structural(draft: Draft, kinds: Sequence[str] = ()) -> list[Edit]:
    """List the edits that are worth a measurement each, whatever a search finds.

    Args:
        draft: the unchanged module.
        kinds: names of the edits that may be made; all when empty.
    """
    tiles = _tiles(draft) if not kinds or "TileBatch" in kinds else []
    # Those who draw the paper's edits alone draw them as the paper does.
    return [*tiles, *([] if kinds else _bypasses(draft))]


def _tiles(draft: Draft) -> list[TileBatch]:
    try:
        batch = draft.batch()
    except ScheduleError:
        return []
    sizes = {-(-batch // tiles): None for tiles in TILES}
    return [TileBatch(size) for size in sizes if size < batch]


def _bypasses(draft: Draft) -> list[DeleteOp]:
    """Find what is joined to its own input, as by a residual: to delete the joint leaves out the block."""
    sources = _sources(draft)
    found = [block for op in _operations(draft) for block in _blocks(draft, op, sources)]
    largest = sorted(found, key=lambda block: -block[0])  # stable: of equal ones the first
    return [edit for _, edit in largest[:BLOCKS]]


def _operations(draft: Draft) -> list[ir.Operation]:
    live = draft.live()
    facts = [uid for uid, fact in draft.mirror.facts.items() if not fact.block and uid in live]
    return [draft.op(uid) for uid in facts]


def _sources(draft: Draft) -> dict[str, frozenset[str]]:
    """Map each operation of the function to all that it is computed from, by name, itself included."""
    found: dict[str, frozenset[str]] = {}
    for op in _operations(draft):
        used = [value for each in walk(op) for value in each.operands]
        names = {draft.name(value) for value in used}
        before = (found.get(name.partition("#")[0], frozenset()) for name in names)
        found[uid_of(op)] = frozenset({uid_of(op)}.union(names, *before))
    return found


def _blocks(
    draft: Draft, op: ir.Operation, sources: dict[str, frozenset[str]]
) -> Iterator[tuple[int, DeleteOp]]:
    """Give an operation that joins a value with what is computed from it, and how much lies between."""
    if len(op.results) != 1:
        return
    names = [draft.name(value) for value in op.operands if value.type == op.results[0].type]
    for inner in names:
        for outer in names:
            of_inner, of_outer = (sources.get(n.partition("#")[0], frozenset()) for n in (inner, outer))
            between = len([name for name in of_inner - of_outer if "#" not in name and "arg" not in name])
            if outer in of_inner and inner != outer and between >= LEAST:
                yield between, DeleteOp(uid_of(op), ((outer, ()),))
