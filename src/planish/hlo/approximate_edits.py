"""What the structure of a module suggests that changes answers, and may change them little."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from planish.hlo.edits import (
    Draft,
    DropChannels,
    Edit,
    Factor,
    Shrink,
    droppable,
    factorable,
    frozen_parts,
    lower_ranks,
    narrower,
    shorter,
    shrinks,
)
from planish.hlo.flops import flops_of
from planish.hlo.network_blocks import blocks

BLOCKS = 20
"""Those that compute most."""

WIDTHS = 10
"""Products whose channels are cut, or whose weights have a lower rank: those that compute most."""

MILD = 3 / 4
"""Of the channels that are kept, at least."""

PARAMETERS = 20
"""Those that are frozen, one by one, with their moments."""


def approximate(draft: Draft, kinds: Sequence[str] = ()) -> list[Edit]:
    """List loops with fewer steps, frozen parameters, blocks left out, crops, fewer channels and lower ranks.

    Args:
        draft: a module.
        kinds: names of the edits that may be made; all when empty.
    """
    return [edit for kind, edits in _LISTED.items() if not kinds or kind in kinds for edit in edits(draft)]


def cropped(draft: Draft) -> list[Shrink]:
    """List crops of the pictures that a function is given, those that cut least first, and half of a size."""
    given = [edit for edit in shrinks(draft) if edit.value.startswith("arg")]
    return [edit for edit in given if edit.stride == 1 or edit.mean]


def _widths(draft: Draft) -> list[DropChannels]:
    """List the mildest cut of each product's channels, if it is mild; those that compute most first."""
    found = sorted(droppable(draft).items(), key=lambda item: -flops_of(draft, item[0]))
    mildest = ((size, edit) for uid, size in found for edit in narrower(uid, size)[:1])
    return [edit for size, edit in mildest if edit.keep >= MILD * size][:WIDTHS]


def _ranks(draft: Draft) -> list[Factor]:
    """List the mildest rank of each product's weights, those that compute most first."""
    found = sorted(factorable(draft).items(), key=lambda item: -flops_of(draft, item[0]))
    return [edit for uid, useful in found for edit in lower_ranks(uid, useful)[:1]][:WIDTHS]


def _bypasses(draft: Draft) -> list[Edit]:
    return [block.bypass for block in blocks(draft)[:BLOCKS]]


def _frozen(draft: Draft) -> list[Edit]:
    return list(frozen_parts(draft)[:PARAMETERS])


_LISTED: Mapping[str, Callable[[Draft], Sequence[Edit]]] = {
    "Shorten": shorter,
    "Freeze": _frozen,
    "Bypass": _bypasses,
    "Shrink": cropped,
    "DropChannels": _widths,
    "Factor": _ranks,
}
"""Kind of edit to what lists some. Those who draw the paper's edits alone draw them as the paper does."""
