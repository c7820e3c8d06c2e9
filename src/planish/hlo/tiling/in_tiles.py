"""Rewriting a function so that its batch is computed in tiles, one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import ScheduleError
from planish.hlo.ir import UID, functions, ir, set_uid, uid_of, walk
from planish.hlo.tiling.batch_axes import batch_of
from planish.hlo.tiling.looped import looped
from planish.hlo.tiling.unrolled import unrolled


@dataclass(frozen=True)
class Tiles:
    """How a batch is cut.

    Args:
        examples: of one tile; the last one has what is left.
        loop: whether the tiles are a loop, in place of being written out one after the other.
    """

    examples: int
    loop: bool = False


def tiled(root: ir.Operation, function: str, tiles: Tiles) -> ir.Operation:
    """Give a module whose function computes a part of its batch at a time.

    What does not depend on the batch is computed once.

    ::

        f(x: 100)  -->  concatenate(f(x[0:10]), f(x[10:20]), ..., f(x[90:100]))

    Tiles that are written out compile longer, and XLA takes memory for what several of them compute: 48 MB
    for MobileNet on 100 pictures, ten at a time. A loop takes 8 MB, which stay in the caches. But XLA's
    convolution is slow inside a loop; where it is a product (`Lower`), a loop is the faster form.

    Args:
        root: the module; it is not changed.
        function: the function's name.
        tiles: how the batch is cut; each has fewer examples than the batch.

    Raises:
        ScheduleError: the function has no batch, or no more examples than a tile.
    """
    copy = root.clone().operation
    body = dict(functions(copy))[function]
    batch = batch_of(body.regions[0].blocks[0])
    if not 0 < tiles.examples < batch.size:
        raise ScheduleError(
            f"a batch of {batch.size} has no tiles of {tiles.examples}", f"Take 1 to {batch.size - 1}."
        )
    end = body.regions[0].blocks[0].operations[-1].operation
    places = [place for place, value in enumerate(end.operands) if value in batch.axes]
    with ir.InsertionPoint(end), ir.Location.unknown(copy.context):
        computed = looped if tiles.loop else unrolled
        made = computed(batch, [end.operands[place] for place in places], tiles.examples)
    for place, value in zip(places, made, strict=True):
        end.operands[place] = value
    # Backwards, since what is used cannot be erased.
    for op in reversed(batch.operations):
        op.erase()
    # Copies have the uid of what they are copies of: with a number each has its own.
    for number, op in enumerate(walk(body)[1:]):
        set_uid(op, f"{uid_of(op)}.{number}" if UID in op.attributes else f"tile.{number}")
    return copy
