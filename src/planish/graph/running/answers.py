"""Whether a model's answers are those of the model before it was changed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planish.graph.installed import OPENVINO_BFLOAT16
from planish.graph.running.feeds import is_fraction

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDING = 1e-5


@dataclass(frozen=True)
class Tolerance:
    """How far numbers may be from what is expected.

    Args:
        of_largest: as a share of the largest number of the expected output.
        narrow: the same where the output is of half precision.
        of_whole: the share of whole numbers and truth values that may differ.
        by_part: the share is of the largest number of the part of the output that a number is in (see
            `scales`), so that scores count by themselves where boxes stand beside them. It is not where a
            user intends that results change: what is rounded more coarsely is so by the largest of all.
    """

    of_largest: float = 1e-3
    narrow: float = 1e-2
    of_whole: float = 0.0
    by_part: bool = True


FEWEST = 8
"""Numbers of a part that tell how large such numbers are."""
_NOISE, _NARROW_NOISE = 1e-5, 1e-3
"""What rounding alone may come to, as a share of an output's largest number; that in half precision."""
_ZERO = 1e-6
"""Where all that is expected is as small, differences count by themselves."""
DEFAULT = Tolerance()
ANY = Tolerance(math.inf, math.inf, 1.0, by_part=False)
"""Shapes and types alone have to be right, and what is finite has to stay so."""
_INTENDED = {
    **dict.fromkeys(("intent.fp16", "intent.mixed", OPENVINO_BFLOAT16), 0.05),
    **dict.fromkeys(("intent.int8", "intent.int8_static"), 0.5),
}


def tolerance(changes: Collection[str], wanted: float | None = None, *, judged: bool = False) -> Tolerance:
    """Give the tolerance for a selection: wider where a user intends that results change.

    Args:
        changes: passes of the selection and values of its settings; where none changes results, the rest
            does not count.
        wanted: what the user bears, as a share of the largest number.
        judged: whether accuracy is an objective, which then judges what has no other bound.
    """
    widest = max((_INTENDED.get(name, 0.0) for name in changes), default=0.0)
    if not widest:
        return DEFAULT
    if wanted is not None:
        return Tolerance(wanted, wanted, wanted, by_part=False)
    return ANY if judged else Tolerance(widest, widest, by_part=False)


def similarity(found: Sequence[Any], expected: Sequence[Any]) -> float:
    """Give how like the expected outputs others are, from 0 to 1; of several outputs that of the least alike.

    Of numbers with a fraction it is 1 less the length of the difference as a share of the expected one's
    length; a difference up to rounding is none. Of others it is the share that is equal.
    """
    pairs = zip(_arrays(found), _arrays(expected), strict=True)
    return min((_alike(one, other) for one, other in pairs), default=1.0)


def _alike(found: NDArray[Any], expected: NDArray[Any]) -> float:
    import numpy as np

    if not is_fraction(expected.dtype):
        return float(np.mean(found == expected)) if expected.size else 1.0
    fine = np.isfinite(expected) & np.isfinite(found)
    one, other = (np.where(fine, each, 0).astype("f8") for each in (found, expected))
    off, size = float(np.linalg.norm(one - other)), float(np.linalg.norm(other))
    share = off / max(size, float(np.finfo("f8").tiny))
    return 1.0 if share <= _ROUNDING else max(0.0, 1.0 - share)


def largest_difference(found: Any, expected: Any) -> float:
    """Give the most by which finite numbers with a fraction differ between outputs of one shape; else 0."""
    import numpy as np

    largest = 0.0
    for one, other in zip(_arrays(found), _arrays(expected), strict=False):
        if one.shape == other.shape and other.size and is_fraction(one.dtype) and is_fraction(other.dtype):
            fine = np.isfinite(one) & np.isfinite(other)
            off = np.where(fine, one, 0).astype("f8") - np.where(fine, other, 0).astype("f8")
            largest = max(largest, float(np.abs(off).max()))
    return largest


def largest_number(output: Any) -> float:
    """Give the largest magnitude of an output's finite numbers with a fraction; 0 where there are none."""
    import numpy as np

    fractions = (each for each in _arrays(output) if is_fraction(each.dtype) and each.size)
    return max(
        (float(np.abs(np.where(np.isfinite(a), a, 0)).astype("f8").max()) for a in fractions), default=0.0
    )


def difference(
    found: Sequence[Any], expected: Sequence[Any], allowed: Tolerance, floors: Sequence[float] = ()
) -> str:
    """Say how outputs differ from the expected ones; empty where they do not.

    Numbers with a fraction may differ by the tolerance; all else must be equal.

    Args:
        found: arrays, lists of them, or lists of dictionaries.
        expected: likewise.
        allowed: the tolerance.
        floors: what numbers of each output may be off by in any case; by default nothing.
    """
    for place, (one, other) in enumerate(zip(found, expected, strict=True)):
        said = _difference(one, other, allowed, floors[place] if floors else 0.0)
        if said:
            return f"output {place}: {said}"
    return ""


def not_finite(outputs: Sequence[Any]) -> bool:
    """Whether an output has a number that is not finite."""
    import numpy as np

    return any(is_fraction(each.dtype) and not np.isfinite(each).all() for each in _arrays(outputs))


def _arrays(output: Any) -> Iterator[Any]:
    """List the arrays of an output, which may be a sequence of them, or a sequence of maps."""
    import numpy as np

    if isinstance(output, dict):
        yield from _arrays(list(output.values()))
    elif isinstance(output, list | tuple):
        for part in output:
            yield from _arrays(part)
    else:
        yield np.asarray(output)


def _difference(one: Any, other: Any, allowed: Tolerance, least: float) -> str:
    if isinstance(other, dict):
        same = isinstance(one, dict) and list(one) == list(other)
        return _of_parts(list(one.values()), list(other.values()), allowed, least) if same else "other keys"
    if isinstance(other, list):
        if not isinstance(one, list):
            return "no sequence"
        return _of_parts(one, other, allowed, least)
    if isinstance(other, float) or hasattr(other, "dtype"):
        return _of_arrays(one, other, allowed, least)
    return "" if one == other else "not equal"


def _of_parts(one: list[Any], other: list[Any], allowed: Tolerance, least: float) -> str:
    if len(one) != len(other):
        return f"{len(one)} elements in place of {len(other)}"
    told = (_difference(a, b, allowed, least) for a, b in zip(one, other, strict=True))
    return next((f"element {i}: {said}" for i, said in enumerate(told) if said), "")


def _of_arrays(found: Any, expected: Any, allowed: Tolerance, least: float) -> str:
    import numpy as np

    one, other = np.asarray(found), np.asarray(expected)
    if one.shape != other.shape or one.dtype != other.dtype:
        return f"{one.dtype} {one.shape} in place of {other.dtype} {other.shape}"
    if not is_fraction(other.dtype):
        count = int(np.count_nonzero(one != other))
        return f"{count} of {other.size} elements differ" if count > allowed.of_whole * other.size else ""
    # What is not finite must be where it is in the original, and the same: as infinities of masks are.
    fine = np.isfinite(other)
    if not np.array_equal(np.where(fine, 0, other), np.where(np.isfinite(one), 0, one), equal_nan=True):
        return "numbers that are not finite"
    is_narrow = other.dtype.itemsize <= 2
    share, noise = (allowed.narrow, _NARROW_NOISE) if is_narrow else (allowed.of_largest, _NOISE)
    wanted, given = (np.where(fine, each.astype("f8"), 0) for each in (other, one))
    size, off = np.abs(wanted), np.abs(given - wanted)
    largest = max(float(size.max(initial=0.0)), _ZERO)
    floor = max((noise if allowed.by_part else share) * largest, least)
    if off.max(initial=0.0) <= floor:
        return ""
    part = scales(size) if allowed.by_part else np.full((1,) * size.ndim, size.max())
    beyond = off - np.maximum(share * np.maximum(part, _ZERO), floor)
    if not (beyond > 0).any():
        return ""
    place = np.unravel_index(int(np.argmax(beyond)), off.shape)
    around = float(np.broadcast_to(part, off.shape)[place])
    return f"off by {float(off[place]):.3g} where the largest number is {around:.3g}"


def scales(size: NDArray[Any]) -> NDArray[Any]:
    """Give how large the numbers are beside which each one stands, to be broadcast.

    A part of an output is what has one index along one axis, as a channel, a row or an example; those of
    fewer than `FEWEST` numbers count not. Of the parts that a number is in, it is the largest number of the
    part where that is least: detectors join boxes in pixels and scores below 1, along whichever axis.

    Args:
        size: magnitudes; at least one.
    """
    import numpy as np

    found = np.full((1,) * size.ndim, size.max())
    for axis, extent in enumerate(size.shape):
        if extent > 1 and size.size // extent >= FEWEST:
            others = tuple(each for each in range(size.ndim) if each != axis)
            found = np.minimum(found, size.max(axis=others, keepdims=True))
    return found
