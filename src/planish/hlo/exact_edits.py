"""What the structure of a module suggests that changes no answer, but for tiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from planish.core import ScheduleError
from planish.hlo.edits import (
    Draft,
    Edit,
    Fold,
    Hoist,
    Relayout,
    Share,
    Sink,
    foldable,
    hoistable,
    layouts,
    lowerings,
    shareable,
    sinkable,
)
from planish.hlo.patch import extended

CONVOLUTIONS = 2
"""So many follow each other at least, where another layout saves transposes."""


PRODUCTS = ("Lower", "Fold", "Hoist", "Share")
"""Kinds that go together: convolutions become products. IREE is slower where transposes sink among these."""

LAYOUTS = ("Relayout", "Sink", "Fold", "Hoist", "Share")
"""Kinds that go together: convolutions stay, and have their channels last."""


def together(draft: Draft, kinds: Sequence[str], may: Callable[[str], bool]) -> list[Edit]:
    """List exact edits to be made together, each kind found in what those before it give.

    Args:
        draft: the unchanged module.
        kinds: in order: `PRODUCTS` or `LAYOUTS`.
        may: whether a kind of edit may be made, by name.
    """
    found: list[Edit] = []
    for kind in kinds:
        edits = _STAGES[kind](draft) if may(kind) else []
        after = _after(draft, edits)
        if after is not None:
            found += edits
            draft = after
    return found


def alone(draft: Draft, may: Callable[[str], bool]) -> list[Sequence[Edit]]:
    """List the exact edits of each kind, of the unchanged module, that give another one."""
    found = [_STAGES[kind](draft) for kind in _STAGES if may(kind)]
    return [edits for edits in found if _after(draft, edits) is not None]


def _after(draft: Draft, edits: Sequence[Edit]) -> Draft | None:
    """Give the module after some edits; None where there is none, or it is the same or not legal."""
    if not edits:
        return None
    try:
        after = extended(draft, tuple(edits))
    except ScheduleError:
        return None
    return after if after.identity() != draft.identity() else None


def _lowered(draft: Draft) -> list[Edit]:
    """List one form of each convolution."""
    found: dict[str, Edit] = {}
    for edit in lowerings(draft):
        found.setdefault(edit.op, edit)
    return list(found.values())


def _relaid(draft: Draft) -> list[Edit]:
    found = layouts(draft)
    return [Relayout(found)] if len(found) >= CONVOLUTIONS else []


def _named(
    edit: Callable[[tuple[str, ...]], Edit], listed: Callable[[Draft], tuple[str, ...]]
) -> Callable[[Draft], list[Edit]]:
    """Make what lists one edit of all operations that are listed, if any is."""

    def edits(draft: Draft) -> list[Edit]:
        found = listed(draft)
        return [edit(found)] if found else []

    return edits


_STAGES: Mapping[str, Callable[[Draft], list[Edit]]] = {
    "Lower": _lowered,
    "Fold": _named(Fold, foldable),
    "Relayout": _relaid,
    "Sink": _named(Sink, sinkable),
    "Hoist": _named(Hoist, hoistable),
    "Share": _named(Share, shareable),
}
