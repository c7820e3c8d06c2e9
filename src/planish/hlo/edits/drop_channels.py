"""An edit of the width: a product reads fewer channels, and all that makes and carries them has fewer."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import ScheduleError
from planish.hlo.edits import exclusions
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.module_draft import Draft
from planish.hlo.width import channels_of

SHARES = (7 / 8, 3 / 4, 1 / 2)
"""Of the channels that are kept."""

FEWEST = 8
"""Fewer channels than twice these are left alone: vectors of a processor have as many numbers."""


@dataclass(frozen=True)
class DropChannels(Edit):
    """Let a product or a convolution sum over those channels alone whose weights there are largest.

    Producers and consumers are cut alike: their weights, the scales and shifts between, depthwise kernels,
    and through sums all that is added. It is done when all else is edited, before pictures are cropped and
    tiles are made; of several for an operation the last counts. It is illegal where a result of the function
    has these channels, or something depends on how many they are.

    ::

        y = relu(x @ v: 64) @ w   -- DropChannels("y", 48) -->   y = relu(x @ v[:, c]: 48) @ w[c], c: 48 of 64

    Args:
        op: the product or convolution.
        keep: how many channels stay.
    """

    op: str
    keep: int

    def apply(self, draft: Draft) -> None:
        exclusions.target(draft, self.op)
        if self.keep < 1:
            raise ScheduleError(f"{self.keep} channels are none", "Keep 1 or more.")
        # Only noted: edits that come later name operations as they are with all channels.
        draft.channels[self.op] = self.keep


def droppable(draft: Draft) -> dict[str, int]:
    """List the products and convolutions whose channels may be cut, with how many they have.

    Of those that read the same channels the first is listed.
    """
    live, found, known = draft.live(), dict[str, int](), set[object]()
    for uid in draft.mirror.blocks[""]:
        if uid not in live or not exclusions.is_target(draft, uid):
            continue
        try:
            channels = channels_of(draft.op(uid))
        except ScheduleError:
            continue
        if channels.size >= 2 * FEWEST and channels.axes not in known:
            known.add(channels.axes)
            found[uid] = channels.size
    return found


def narrower(uid: str, size: int) -> list[DropChannels]:
    """List edits that keep a share of a number of channels, in steps of `FEWEST`, the mildest first."""
    kept = {int(size * share) // FEWEST * FEWEST: None for share in SHARES}
    return [DropChannels(uid, keep) for keep in kept if 0 < keep < size]
