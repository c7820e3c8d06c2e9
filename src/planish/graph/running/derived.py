"""Further inputs made of the user's: with their values, each of which is somewhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from planish.core import rng

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from planish.graph.running.feeds import Feed

_SEED = 20_220_518
_ROWS = 8
"""Of so many, columns are shuffled each by itself: what a column means stays in it."""
_BATCHES = 64
"""So many of the given ones are enough to take values from."""


def derived(feeds: Sequence[Feed], count: int) -> Sequence[Feed]:
    """Make further inputs; none where nothing in the given ones may be moved.

    An input's values are shuffled: along its rows, of all batches, where there are some; else all. So whole
    numbers stay in their range. Masks stay as they are, and so do numbers that count on, such as positions.

    Args:
        feeds: the given batches.
        count: how many are made, at most.
    """
    import numpy as np

    found: list[Feed] = []
    for number in range(count):
        made: dict[str, Any] = {}
        for place, name in enumerate(feeds[0]):
            given = [np.asarray(feed[name]) for feed in feeds[:_BATCHES]]
            made[name] = _shuffled(given, rng(_SEED, number, place))
        if not any(_same(made, each) for each in (*feeds, *found)):
            found.append(made)
    return found


def _shuffled(given: Sequence[NDArray[Any]], generator: Generator) -> NDArray[Any]:
    """Shuffle the values of an input of all batches, and give as many of them as are in one."""
    import numpy as np

    first = given[0]
    if _is_mask(given) or _counts_on(given):
        return first
    rows = np.concatenate(given) if first.ndim else np.stack(given)
    if len(rows) >= _ROWS:
        mixed = generator.permuted(rows, axis=0)
    else:
        mixed = generator.permutation(rows.reshape(-1)).reshape(rows.shape)
    return np.ascontiguousarray(mixed[: len(first)] if first.ndim else mixed[0])


def _is_mask(given: Sequence[NDArray[Any]]) -> bool:
    """Whether there are two values at most, as in masks and flags."""
    import numpy as np

    return (
        given[0].dtype.kind == "b"
        or len(np.unique(np.concatenate([each.reshape(-1) for each in given]))) <= 2
    )


def _counts_on(given: Sequence[NDArray[Any]]) -> bool:
    """Whether all rows are whole numbers that grow by 1."""
    import numpy as np

    return all(
        each.dtype.kind in "iu" and each.ndim > 0 and each.shape[-1] > 1 and bool(np.all(np.diff(each) == 1))
        for each in given
    )


def _same(one: Feed, other: Feed) -> bool:
    return all(array.tobytes() == other[name].tobytes() for name, array in one.items())
