"""How many iterations a loop has: the arithmetic of tails and derived axes, for all who walk a tree."""

from __future__ import annotations

from collections.abc import Mapping

from planish.loops.ir.tree import Loop, LoopTree

Remaining = Mapping[str, int]
"""Axis to the elements that remain of it; only axes with an enclosing loop are in it."""


def remaining(tree: LoopTree, inside: Remaining, axis: str) -> int:
    """Count the elements of an axis that the next loop over it would walk.

    Args:
        tree: the whole kernel.
        inside: what remains at this place.
        axis: any axis of the tree.
    """
    here = inside.get(axis)
    if here is not None:
        return here
    terms = tree.window.get(axis)
    if terms is None:
        return tree.size[axis]
    return 1 + sum([c * (remaining(tree, inside, other) - 1) for other, c in terms])


def iterations(tree: LoopTree, inside: Remaining, loop: Loop) -> tuple[int, int]:
    """Count a loop's iterations.

    Returns:
        The number of full iterations, inside which `loop.step` elements remain, and what remains inside
        the tail iteration that follows them; 0 where there is no tail.
    """
    return divmod(remaining(tree, inside, loop.axis), loop.step)


def within(inside: Remaining, axis: str, rest: int) -> dict[str, int]:
    """Give what remains inside an iteration of a loop over `axis`, of whose axis `rest` elements remain."""
    return {**inside, axis: rest}
