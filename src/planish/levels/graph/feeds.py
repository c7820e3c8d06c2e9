"""Inputs and labels of a model: the user's, ones derived from them, and random ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import ProgramError, did_you_mean, rng
from planish.core.files import DAMAGED, check_regular, why
from planish.levels.graph.program import GraphProgram, Port

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray
    from onnx import ModelProto

Feed = Mapping[str, "NDArray[np.generic]"]

COUNT = 3
"""Random inputs of each comparison."""
BELOW_0 = 1
"""The number of the batch without numbers above 0, in which wrong padding shows."""
FURTHER = 2
"""Random inputs more, for what is about to be kept."""

_SEED = 20_220_517
_FOLLOWED = (
    *("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"),
    *("Gather", "Slice", "Split", "Transpose"),
)
_SMALL = 2
_OF_IMAGES = {"uint8": 1 << 8, "int8": 1 << 7}
"""Upper bound of 8-bit integers: they are mostly pixels, or quantized."""


def make_feeds(program: GraphProgram, model: ModelProto, *, further: bool = False) -> Sequence[Feed]:
    """Return the inputs on which candidates are compared with the original; the first is timed.

    Args:
        program: its own data is taken, cut into batches; without any, random inputs are made.
        further: make more random inputs, which the search does not see.

    Raises:
        ProgramError: the data does not fit the model.
    """
    if program.data is not None:
        return batches(program, arrays_in(program.data.file))
    bounds = [_bound(model, port) for port in program.inputs]
    return [
        {
            port.name: _random(port, bound, rng(_SEED, number, index), below_0=number == BELOW_0)
            for index, (port, bound) in enumerate(zip(program.inputs, bounds, strict=True))
        }
        for number in range(COUNT + FURTHER * further)
    ]


def batches(program: GraphProgram, arrays: Mapping[str, NDArray[Any]]) -> list[Feed]:
    """Cut the user's arrays into as many batches as they hold."""
    import numpy as np

    path = program.data.path if program.data else ""
    names = [port.name for port in program.inputs]
    if set(arrays) != set(names):
        wrong = min(set(arrays) ^ set(names))
        if wrong in names:
            raise ProgramError(f"'{path}' has no array '{wrong}', which the model takes", "Add it.")
        raise ProgramError(f"the model takes no '{wrong}', which '{path}' has", did_you_mean(wrong, names))
    counts: set[int] = set()
    for port in program.inputs:
        array = arrays[port.name]
        empty = array.size == 0 and 0 not in port.shape
        if array.dtype != np.dtype(port.dtype) or array.shape[1:] != port.shape[1:] or empty:
            what = f"'{port.name}' of '{path}' is {array.dtype} {array.shape}; the model takes {port}"
            raise ProgramError(what, "Write it so.")
        # A batch of no rows is filled by any array.
        counts.add(len(array) // port.shape[0] if port.shape and port.shape[0] else 1)
    if not min(counts):
        raise ProgramError(f"'{path}' does not fill one batch of the model", "Give more rows.")

    def rows(port: Port, number: int) -> NDArray[Any]:
        array, count = arrays[port.name], port.shape[0] if port.shape else None
        return array if count is None else np.ascontiguousarray(array[number * count : (number + 1) * count])

    return [{port.name: rows(port, number) for port in program.inputs} for number in range(min(counts))]


def arrays_in(path: Path) -> Mapping[str, NDArray[Any]]:
    """Read the arrays of a file; raises ProgramError where it holds none."""
    import numpy as np

    try:
        check_regular(path)
        loaded = np.load(path, allow_pickle=False)
        return {name: loaded[name] for name in loaded.files} if hasattr(loaded, "files") else {"": loaded}
    except DAMAGED as error:
        what = f"cannot read arrays from '{path}': {why(error)}"
        raise ProgramError(what, "Write it by numpy.savez.") from error


def is_fraction(dtype: np.dtype[Any]) -> bool:
    """Return whether numbers of a type have fractions; NumPy counts bfloat16 among no kind that it knows."""
    return dtype.kind == "f" or dtype.name == "bfloat16"


def _random(port: Port, bound: int, generator: Generator, *, below_0: bool) -> NDArray[np.generic]:
    """Draw an input: normal numbers, of both signs or below 0; truth values; whole numbers below a bound."""
    import numpy as np

    dtype, shape = np.dtype(port.dtype), tuple(1 if extent is None else extent for extent in port.shape)
    if is_fraction(dtype):
        drawn = generator.standard_normal(shape)
        drawn = -np.abs(drawn) if below_0 else drawn
    elif dtype.kind == "b":
        drawn = generator.random(shape) < 0.5
    else:
        drawn = generator.integers(0, bound, shape)
    # NumPy draws a number in place of an array without axes, which ONNX Runtime does not take.
    return np.asarray(drawn, dtype)


def _bound(model: ModelProto, port: Port) -> int:
    """Find what whole numbers of an input must stay below: the rows of a table that they look up, if any.

    Others are pixels where they have 8 bits, and else masks.
    """
    weights = model.graph.initializer
    tables = {tensor.name: tensor.dims[0] for tensor in weights if tensor.dims and tensor.dims[0]}
    reached, found = {port.name}, list[int]()
    # In topological order: one walk meets all that an input reaches. A table of no rows bounds nothing.
    for node in model.graph.node:
        if node.op_type == "Gather" and node.input[1] in reached and node.input[0] in tables:
            found.append(tables[node.input[0]])
        elif node.op_type in _FOLLOWED and node.input[0] in reached:
            reached.update(node.output)
    return min(found, default=_OF_IMAGES.get(port.dtype, _SMALL))


_DERIVED_SEED = 20_220_518
_ROWS = 8
"""Rows from which on columns are shuffled each by itself: what a column means stays in it."""
_BATCHES = 64
"""So many of the given ones are enough to take values from."""


def derived(feeds: Sequence[Feed], count: int) -> Sequence[Feed]:
    """Make further inputs; none where nothing in the given ones may be moved.

    An input's values are shuffled: along its rows, of all batches, where there are some; else all. So whole
    numbers stay in their range. Masks stay as they are, and so do numbers that count on, such as positions.
    """
    import numpy as np

    found: list[Feed] = []
    for number in range(count):
        made: dict[str, Any] = {}
        for index, name in enumerate(feeds[0]):
            given = [np.asarray(feed[name]) for feed in feeds[:_BATCHES]]
            made[name] = _shuffled(given, rng(_DERIVED_SEED, number, index))
        if not any(
            all(made[name].tobytes() == array.tobytes() for name, array in each.items())
            for each in (*feeds, *found)
        ):
            found.append(made)
    return found


def _shuffled(given: Sequence[NDArray[Any]], generator: Generator) -> NDArray[Any]:
    """Shuffle the values of an input of all batches, and return as many of them as are in one."""
    import numpy as np

    first, rows = given[0], np.stack(given) if given[0].ndim == 0 else np.concatenate(given)
    # Masks and flags have two values at most.
    if first.dtype.kind == "b" or len(np.unique(rows)) <= 2 or all(map(_counts_on, given)):
        return first
    if len(rows) >= _ROWS:
        mixed = generator.permuted(rows, axis=0)
    else:
        mixed = generator.permutation(rows.reshape(-1)).reshape(rows.shape)
    return np.ascontiguousarray(mixed[: len(first)] if first.ndim else mixed[0])


def _counts_on(array: NDArray[Any]) -> bool:
    """Return whether all rows are whole numbers that grow by 1."""
    import numpy as np

    whole = array.dtype.kind in "iu" and array.ndim > 0 and array.shape[-1] > 1
    return whole and bool(np.all(np.diff(array) == 1))


Answers = Sequence[Sequence[Any]]
"""The outputs of a model for each batch."""


def check_given(program: GraphProgram) -> None:
    """Look whether the user's inputs and labels can be read and fit the model's inputs, before a run begins.

    Raises:
        ProgramError: they do not.
    """
    if program.data is not None:
        batches(program, arrays_in(program.data.file))
    labeled(program)


def labeled(program: GraphProgram) -> NDArray[np.int64] | None:
    """Return the labels of the user's inputs; None where there are none.

    Raises:
        ProgramError: there are none of the inputs, or the labels are not whole numbers.
    """
    if program.labels is None:
        return None
    if program.data is None:
        raise ProgramError("there are labels, and no inputs", 'Give both: inputs="FILE.npz".')
    arrays = list(arrays_in(program.labels.file).values())
    if len(arrays) != 1 or arrays[0].dtype.kind not in "iu":
        raise ProgramError(f"'{program.labels.path}' does not hold one array of whole numbers")
    return arrays[0].reshape(-1).astype("int64")


def check_labels(labels: NDArray[np.int64], answers: Answers) -> None:
    """Look whether labels are of a model's answers.

    Raises:
        ProgramError: there are more or fewer of them, or they name classes that the model lacks.
    """
    first = [outputs[0] for outputs in answers]
    if not getattr(first[0], "shape", ()) or not first[0].size:
        raise ProgramError("the model's first output has no rows to be labeled", "Leave the labels out.")
    count, classes = len(_classes_in(answers)), first[0].shape[-1]
    if not count <= len(labels) < count + max(count // len(first), 1):
        what = f"there are {len(labels)} labels, and the model has {count} answers"
        raise ProgramError(what, "Give one for each.")
    if labels.max() >= classes or labels.max() < 0:
        what = f"the labels are up to {labels.max()}, and the model has {classes} classes"
        raise ProgramError(what, "Give whole numbers from 0; those below 0 are skipped.")


def accuracy(labels: NDArray[np.int64], answers: Answers) -> float:
    """Return the share of labels that the largest number of the first output is at."""
    found = _classes_in(answers)
    wanted = labels[: len(found)]
    return float((found == wanted)[wanted >= 0].mean())


def _classes_in(answers: Answers) -> NDArray[Any]:
    import numpy as np

    return np.concatenate([outputs[0].argmax(-1).reshape(-1) for outputs in answers])
