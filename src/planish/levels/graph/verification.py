"""Verification of a model's answers against those of the model as it came."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import rng
from planish.levels.graph.feeds import Feed, is_fraction
from planish.levels.graph.installed import OPENVINO_BFLOAT16
from planish.levels.graph.model_protos import all_tensors
from planish.levels.graph.sessions import ModelSession, RefusedError, open_session

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray
    from onnx import ModelProto

    from planish.levels.graph.sessions import SessionSettings

_ROUNDING = 1e-5


@dataclass(frozen=True)
class Tolerance:
    """Tolerance of numbers: how far they may be from what is expected.

    Args:
        of_largest: as a share of the largest number of the expected output.
        narrow: the same where the output is of half precision.
        of_whole: the share of whole numbers and truth values that may differ.
        by_part: the share is of the largest number of the part of the output that a number is in (see
            `_scales`), so that scores count by themselves where boxes stand beside them. It is not where a
            user intends that results change: what is rounded more coarsely is so by the largest of all.
    """

    of_largest: float = 1e-3
    narrow: float = 1e-2
    of_whole: float = 0.0
    by_part: bool = True


FEWEST = 8
"""Numbers of a part that show how large such numbers are."""
_NOISE, _NARROW_NOISE = 1e-5, 1e-3
"""Error that rounding alone may cause, as a share of an output's largest number; that in half precision."""
_ZERO = 1e-6
"""Size of results up to which differences count by themselves."""
DEFAULT = Tolerance()
ANY = Tolerance(math.inf, math.inf, 1.0, by_part=False)
"""Shapes and types alone have to be right, and what is finite has to stay so."""
_INTENDED = {
    **dict.fromkeys(("intent.fp16", "intent.mixed", OPENVINO_BFLOAT16), 0.05),
    **dict.fromkeys(("intent.int8", "intent.int8_static"), 0.5),
}


def tolerance(
    changes: Collection[str], wanted: float | None = None, *, by_accuracy: bool = False
) -> Tolerance:
    """Return the tolerance for a selection: wider where a user intends that results change.

    Args:
        changes: passes of the selection and values of its settings; where none changes results, the rest
            does not count.
        by_accuracy: whether accuracy is an objective, which then bounds what has no other bound.
    """
    widest = max((_INTENDED.get(name, 0.0) for name in changes), default=0.0)
    if not widest:
        return DEFAULT
    if wanted is not None:
        return Tolerance(wanted, wanted, wanted, by_part=False)
    return ANY if by_accuracy else Tolerance(widest, widest, by_part=False)


def similarity(found: Sequence[Any], expected: Sequence[Any]) -> float:
    """Return how similar outputs are to the expected ones, from 0 to 1; of several, the least of all.

    Of numbers with a fraction it is 1 less the length of the difference as a share of the expected one's
    length; a difference up to rounding is none. Of others it is the share that is equal.
    """
    import numpy as np

    least = 1.0
    for one, other in zip(_arrays(found), _arrays(expected), strict=True):
        if is_fraction(other.dtype):
            fine = np.isfinite(other) & np.isfinite(one)
            given, wanted = (np.where(fine, each, 0).astype("f8") for each in (one, other))
            off, size = float(np.linalg.norm(given - wanted)), float(np.linalg.norm(wanted))
            share = off / max(size, float(np.finfo("f8").tiny))
            least = min(least, 1.0 if share <= _ROUNDING else max(0.0, 1.0 - share))
        elif other.size:
            least = min(least, float(np.mean(one == other)))
    return least


def _largest_difference(found: Any, expected: Any) -> float:
    """Return the most by which finite numbers with a fraction differ between outputs of one shape; else 0."""
    import numpy as np

    largest = 0.0
    for one, other in zip(_arrays(found), _arrays(expected), strict=False):
        if one.shape == other.shape and other.size and is_fraction(one.dtype) and is_fraction(other.dtype):
            fine = np.isfinite(one) & np.isfinite(other)
            off = np.where(fine, one, 0).astype("f8") - np.where(fine, other, 0).astype("f8")
            largest = max(largest, float(np.abs(off).max()))
    return largest


def _largest_number(output: Any) -> float:
    """Return the largest magnitude of an output's finite numbers with a fraction; 0 where there are none."""
    import numpy as np

    fractions = (each for each in _arrays(output) if is_fraction(each.dtype) and each.size)
    sizes = (np.abs(np.where(np.isfinite(each), each, 0)).astype("f8").max() for each in fractions)
    return float(max(sizes, default=0.0))


def difference(
    found: Sequence[Any], expected: Sequence[Any], allowed: Tolerance, floors: Sequence[float] = ()
) -> str:
    """Return how outputs differ from the expected ones; empty where they do not.

    Numbers with a fraction may differ by the tolerance; all else must be equal.

    Args:
        floors: what numbers of each output may be off by in any case; by default nothing.
    """
    least = floors or [0.0] * len(found)
    for index, (one, other, floor) in enumerate(zip(found, expected, least, strict=True)):
        if said := _difference(one, other, allowed, floor):
            return f"output {index}: {said}"
    return ""


def not_finite(outputs: Sequence[Any]) -> bool:
    """Return whether an output has a number that is not finite."""
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
    if isinstance(other, float) or hasattr(other, "dtype"):
        return _of_arrays(one, other, allowed, least)
    if isinstance(other, dict):
        same = isinstance(one, dict) and list(one) == list(other)
        return _difference([*one.values()], [*other.values()], allowed, least) if same else "other keys"
    if not isinstance(other, list):
        return "" if one == other else "not equal"
    if not isinstance(one, list):
        return "no sequence"
    if len(one) != len(other):
        return f"{len(one)} elements in place of {len(other)}"
    found = (_difference(a, b, allowed, least) for a, b in zip(one, other, strict=True))
    return next((f"element {i}: {said}" for i, said in enumerate(found) if said), "")


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
    part = _scales(size) if allowed.by_part else np.full((1,) * size.ndim, size.max())
    beyond = off - np.maximum(share * np.maximum(part, _ZERO), floor)
    if not (beyond > 0).any():
        return ""
    index = np.unravel_index(int(np.argmax(beyond)), off.shape)
    around = float(np.broadcast_to(part, off.shape)[index])
    return f"off by {float(off[index]):.3g} where the largest number is {around:.3g}"


def _scales(size: NDArray[Any]) -> NDArray[Any]:
    """Return how large the numbers are beside which each magnitude stands, to be broadcast.

    A part of an output is what has one index along one axis, as a channel, a row or an example; those of
    fewer than `FEWEST` numbers count not. Of the parts that a number is in, it is the largest number of the
    part where that is least: detectors join boxes in pixels and scores below 1, along whichever axis.
    """
    import numpy as np

    found = np.full((1,) * size.ndim, size.max())
    for axis, extent in enumerate(size.shape):
        if extent > 1 and size.size // extent >= FEWEST:
            others = tuple(each for each in range(size.ndim) if each != axis)
            found = np.minimum(found, size.max(axis=others, keepdims=True))
    return found


_SEED = 20_220_519
_FEWEST_AXES = 2
"""Weights of fewer axes stay: sizes, exponents, bounds and the like are stored so, and mean what they say."""
_TYPES = ("float16", "float32", "float64")


def moved_answers(
    model: ModelProto, feeds: Sequence[Feed], settings: SessionSettings, scratch: Path
) -> list[Sequence[Any]]:
    """Run a model, not optimized, where each weight and each input is the next number up or down, at random.

    Its answers are as right as those of the model itself, whose numbers were rounded too; so what they differ
    by is what rounding comes to in this model. Monte Carlo arithmetic (Parker, 1997) moves each result.

    Raises:
        RefusedError: the runtime does not run it.
    """
    from onnx import ModelProto
    from onnx.helper import tensor_dtype_to_np_dtype
    from onnx.numpy_helper import from_array, to_array

    generator = rng(_SEED, 0)
    moved = [{name: _moved(array, generator) for name, array in feed.items()} for feed in feeds]
    copy = ModelProto()
    copy.CopyFrom(model)
    for tensor in all_tensors(copy):
        if len(tensor.dims) >= _FEWEST_AXES and tensor_dtype_to_np_dtype(tensor.data_type).name in _TYPES:
            tensor.CopyFrom(from_array(_moved(to_array(tensor), generator), tensor.name))
    scratch.write_bytes(copy.SerializeToString())
    try:
        session = open_session(scratch, settings, as_it_is=True)
        return [session.run(feed) for feed in moved]
    finally:
        scratch.unlink()


def _moved(array: NDArray[Any], generator: Generator) -> NDArray[Any]:
    """Return the next numbers up or down; a 0 stays, and so does what has no fraction."""
    import numpy as np

    if array.dtype.name not in _TYPES:
        return array
    towards = np.where(generator.random(array.shape) < 0.5, np.inf, -np.inf).astype(array.dtype)
    return np.where((array == 0) | ~np.isfinite(array), array, np.nextafter(array, towards))


Answers = Sequence[Any]

OF_BASELINE = 2.0
"""Error allowed to others, as a multiple of the baseline's: they may round once more."""
OF_ROUNDING = 4.0
"""The same in terms of what answers change by when weights and inputs are rounded otherwise."""
_BLIND = 0.1
"""Answers show nothing where rounding may come to this share of the largest of them."""
_UNSTABLE = "the model's answers to all inputs depend on rounding, so that nothing can be compared with them"


@dataclass(eq=False)
class Batch:
    """Inputs on which answers are compared.

    Args:
        derived: whether the inputs were made of the user's.

    Attributes:
        floors: what numbers of each output may be off by in any case.
        is_settled: whether the floors are known.
    """

    feed: Feed
    expected: Answers
    derived: bool = False
    floors: list[float] = field(init=False)
    is_settled: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.floors = [0.0] * len(self.expected)

    def widen(self, found: Answers, factor: float) -> None:
        """Raise the floors to a multiple of what other answers, which are right, are off by."""
        pairs = zip(self.floors, found, self.expected, strict=True)
        self.floors = [max(floor, factor * _largest_difference(one, other)) for floor, one, other in pairs]

    def wrong(self, found: Answers, allowed: Tolerance = DEFAULT) -> str:
        """Return how outputs differ; empty where they do not."""
        return difference(found, self.expected, allowed, self.floors)

    @property
    def is_blind(self) -> bool:
        """Return whether an output may be off by so much that a comparison shows nothing."""
        pairs = zip(self.floors, self.expected, strict=True)
        return any(floor > _BLIND * _largest_number(output) for floor, output in pairs)


class Verifier:
    """Compares answers with those of the model as it came, with every optimization off.

    Where something is off by more than its tolerance, the model's own rounding decides: numbers may be off by
    twice what the baseline is off by, where that is right, and by four times what answers change by when
    weights and inputs are rounded otherwise. A batch is left out on which these come to a tenth of an output,
    or on which the other roundings change what has to be equal; one that was made of the user's inputs also
    where the baseline is wrong.

    Args:
        moved: computes answers with other roundings; it may raise RefusedError.
    """

    def __init__(
        self,
        batches: Sequence[Batch],
        baseline: ModelSession | None,
        moved: Callable[[Sequence[Feed]], Sequence[Answers]],
    ) -> None:
        self._all, self._baseline, self._moved = batches, baseline, moved
        self.batches = [each for each in batches if not each.derived or self._by_default(each) is not None]

    def wrong(self, session: ModelSession, allowed: Tolerance) -> str:
        """Return how a session's answers differ; empty where they do not.

        Raises:
            RefusedError: the runtime fails.
        """
        for batch in tuple(self.batches):
            found = session.run(batch.feed)
            said = batch.wrong(found, allowed)
            if said and not batch.is_settled:
                if not self._settle(batch):
                    self.batches.remove(batch)
                    continue
                said = batch.wrong(found, allowed)
            if said:
                return said
        return "" if any(not batch.derived for batch in self.batches) else _UNSTABLE

    def _settle(self, batch: Batch) -> bool:
        """Find out what rounding comes to; False where the batch is of no use."""
        batch.is_settled = True
        moved = self._roundings[self._all.index(batch)] if self._roundings else batch.expected
        batch.widen(moved, OF_ROUNDING)
        if batch.wrong(moved):
            return False
        found = self._by_default(batch)
        if found is not None:
            batch.widen(found, OF_BASELINE)
        return not batch.is_blind

    def _by_default(self, batch: Batch) -> Answers | None:
        """Return the baseline's answers; None where they are wrong, or it fails."""
        try:
            found = self._baseline.run(batch.feed) if self._baseline is not None else None
        except RefusedError:  # that is the baseline's failure, in its turn
            return None
        return None if found is None or batch.wrong(found) else found

    @cached_property
    def _roundings(self) -> Sequence[Answers]:
        """The answers to all batches with other roundings; empty where the runtime refuses the model."""
        try:
            return self._moved([batch.feed for batch in self._all])
        except RefusedError:
            return ()
