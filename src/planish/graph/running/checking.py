"""Whether a model's answers are those of the model before it was changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Tolerance:
    """How far numbers may be from what is expected.

    Args:
        of_largest: as a share of the largest number of the expected output.
        narrow: the same where the output is of half precision.
    """

    of_largest: float = 1e-3
    narrow: float = 1e-2


_INTENDED = {"intent.fp16": 0.05, "intent.mixed": 0.05, "intent.int8": 0.5}


def tolerance(rewrites: Collection[str]) -> Tolerance:
    """Give the tolerance for a selection: wider where a user intends that results change."""
    widest = max((_INTENDED.get(name, 0.0) for name in rewrites), default=0.0)
    return Tolerance(widest, widest) if widest else Tolerance()


def difference(found: Sequence[Any], expected: Sequence[Any], allowed: Tolerance) -> str:
    """Say how outputs differ from the expected ones; empty where they do not.

    Numbers with a fraction may differ by the tolerance; all else must be equal.

    Args:
        found: arrays.
        expected: arrays.
        allowed: the tolerance.
    """
    for place, (one, other) in enumerate(zip(found, expected, strict=True)):
        said = _difference(one, other, allowed)
        if said:
            return f"output {place}: {said}"
    return ""


def not_finite(outputs: Sequence[Any]) -> bool:
    """Whether an output has a number that is not finite."""
    import numpy as np

    return any(_is_fraction(each) and not np.isfinite(each).all() for each in outputs)


def _difference(one: Any, other: Any, allowed: Tolerance) -> str:
    import numpy as np

    if not isinstance(other, np.ndarray):
        return "" if one == other else "not equal"
    if one.shape != other.shape or one.dtype != other.dtype:
        return f"{one.dtype} {one.shape} in place of {other.dtype} {other.shape}"
    if not _is_fraction(other):
        count = int(np.count_nonzero(one != other))
        return f"{count} of {other.size} elements differ" if count else ""
    # Where the original has an infinity, as masks do, it must be there.
    fine = np.isfinite(other)
    if not np.array_equal(np.isfinite(one), fine) or not other.size:
        return "numbers that are not finite" if other.size else ""
    largest = float(np.abs(other[fine]).max(initial=0.0))
    furthest = float(np.abs(one[fine].astype("f8") - other[fine].astype("f8")).max(initial=0.0))
    share = allowed.narrow if other.dtype.itemsize <= 2 else allowed.of_largest
    limit = share * max(largest, 1e-6)
    return f"off by {furthest:.3g} where the largest number is {largest:.3g}" if furthest > limit else ""


def _is_fraction(array: NDArray[Any]) -> bool:
    return getattr(array, "dtype", None) is not None and (
        array.dtype.kind == "f" or array.dtype.name == "bfloat16"
    )
