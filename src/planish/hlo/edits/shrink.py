"""An edit of the resolution: pictures have fewer pixels, from some value on."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import ScheduleError
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.module_draft import Draft
from planish.hlo.shrinking import Smaller, pictured

CUTS = (2, 4, 6, 8)
"""By how many pixels pictures are cropped."""

FEWEST = 4
"""Pixels along a side: smaller pictures are left alone."""

_READERS = ("stablehlo.convolution", "stablehlo.dot_general")


@dataclass(frozen=True)
class Shrink(Edit):
    """Let a value keep the middle of its pictures, each second pixel, or means; all that follows fits that.

    It is done when all else is edited, before the batch is computed in tiles, wherever it stands in a patch;
    of several for a value the last counts. Weights stay as they are, and so do means over pixels. Where a
    result of the function would have fewer pixels, or what follows needs each at its place, it is illegal.

    ::

        b = convolution(a: 32x32) : 16x16   -- Shrink("a#0", 30) -->   b = convolution(a[1:31]) : 15x15

    Args:
        value: whose pictures they are.
        pixels: that are kept along each side.
        stride: how far they are apart; 1 crops, 2 takes each second one.
        mean: whether each becomes the mean of the square from it to the next, so that pictures are resized.
    """

    value: str
    pixels: int
    stride: int = 1
    mean: bool = False

    def apply(self, draft: Draft) -> None:
        # Only looked up: a value that is not there is told now, and not when all is edited.
        draft.value(self.value)
        if self.pixels < 1 or self.stride < 1:
            raise ScheduleError(f"{self.pixels} pixels, {self.stride} apart, are none", "Take 1 or more.")
        draft.smaller[self.value] = Smaller(self.pixels, self.stride, self.mean)


def shrinks(draft: Draft) -> list[Shrink]:
    """List crops, strides and means of what the function is given, and what convolutions and products read.

    Those that cut least come first. Not all of them are legal.
    """
    found: list[Shrink] = []
    for name, side in _pictures(draft).items():
        found += [Shrink(name, side - cut) for cut in CUTS if side - cut >= max(FEWEST, side // 2)]
        found += [Shrink(name, side // 2, 2, mean) for mean in (False, True)]
    return found


def _pictures(draft: Draft) -> dict[str, int]:
    """Name values that have pictures, with the pixels along a side."""
    live, mirror = draft.live(), draft.mirror
    types = {f"arg{number}": type_ for number, type_ in enumerate(mirror.arguments[""])}
    for uid in mirror.blocks[""]:
        fact = mirror.facts[uid]
        if uid in live and fact.name in _READERS:
            types[draft.name(draft.op(uid).operands[0])] = fact.operands[0]
    found: dict[str, int] = {}
    for name, type_ in types.items():
        axes = pictured(type_.shape) if type_ else None
        if type_ and axes and type_.shape[axes[0]] >= FEWEST:
            found[name] = type_.shape[axes[0]]
    return found
