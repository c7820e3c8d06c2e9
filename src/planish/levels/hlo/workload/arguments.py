"""Arguments of a module's functions: their signature, their roles, and the arrays that fit them.

An argument takes images, labels, parameters (from a file of weights, or random ones), or an array that the
user names or that is drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError, did_you_mean
from planish.core.files import DAMAGED, check_regular, why
from planish.levels.hlo.backend import numpy_type
from planish.levels.hlo.ir.mlir import (
    TensorType,
    functions,
    integers,
    ir,
    shape_of,
    stablehlo,
    tensor_type,
    walk,
)
from planish.levels.hlo.ir.normal import chosen_function, load, named_location
from planish.levels.hlo.program import Program
from planish.levels.hlo.workload.data import unchanged_path
from planish.levels.hlo.workload.spec import Data, File, Images, Workload

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Signature:
    """Names of a function's arguments, empty where the module has none, with their and the results' types."""

    names: tuple[str, ...]
    arguments: tuple[TensorType, ...]
    results: tuple[TensorType, ...]


def signature(program: Program, function: str = "main") -> Signature:
    """Read what a function takes and gives.

    Raises:
        ProgramError: there is no such function, or it takes or gives what is no tensor.
    """
    root = load(program.text)
    known = dict(functions(root))
    if function not in known:
        raise ProgramError(f"the module has no function '{function}'", did_you_mean(function, known))
    arguments = list(known[function].regions[0].blocks[0].arguments)
    type_ = known[function].attributes["function_type"]
    assert isinstance(type_, ir.TypeAttr)
    assert isinstance(type_.value, ir.FunctionType)
    types: list[TensorType] = []
    for each in (*(argument.type for argument in arguments), *type_.value.results):
        found = tensor_type(each)
        if found is None:
            raise ProgramError(f"function '{function}' takes or returns {each}, which is not a tensor")
        types.append(found)
    names = tuple(named_location(argument.location) for argument in arguments)
    return Signature(names, tuple(types[: len(names)]), tuple(types[len(names) :]))


@dataclass(frozen=True)
class RoleCall:
    """Roles of a function's arguments.

    Args:
        function: its name.
        arguments: their types.
        names: one for each; "argument 3" where the module has none.
        images: which takes the images.
        labels: which takes the labels; None: none does.
        results: their types.
    """

    function: str
    arguments: tuple[TensorType, ...]
    names: tuple[str, ...]
    images: int
    labels: int | None = None
    results: tuple[TensorType, ...] = ()

    @property
    def batch(self) -> int:
        """The images that it takes at once."""
        return self.arguments[self.images].shape[0]

    @property
    def parameters(self) -> tuple[int, ...]:
        """The positions of the parameters: of all other arguments."""
        return tuple(i for i in range(len(self.arguments)) if i not in (self.images, self.labels))

    def types(self) -> dict[str, TensorType]:
        """Return the parameters' types by name."""
        return {self.names[i]: self.arguments[i] for i in self.parameters}


@dataclass(frozen=True)
class Fitted:
    """Roles of the arguments of a module's functions.

    Args:
        evolved: the function that is changed and timed: it predicts, or it is one step of training.
        predict: the function whose answers are scored.
        classes: how many numbers it gives for an image.
    """

    evolved: RoleCall
    predict: RoleCall
    classes: int


def fit(program: Program, workload: Workload) -> Fitted:
    """Find out which argument of a module's functions is what.

    Raises:
        ProgramError: a function or an argument is missing, or of a type that does not fit.
    """
    function = chosen_function(load(program.text))
    training = workload.training
    if training is None:
        predict = _call(program, function, workload.images.argument)
        return Fitted(predict, predict, _classes(predict))
    step = _call(program, function, workload.images.argument, training.labels)
    predict = _call(program, training.predict, workload.images.argument)
    _check_step(step, predict)
    return Fitted(step, predict, _classes(predict))


def _call(program: Program, function: str, images: str, labels: str = "") -> RoleCall:
    found = signature(program, function)
    names = tuple(name or f"argument {i}" for i, name in enumerate(found.names))
    position = _position(names, images, function)
    shape = found.arguments[position].shape
    if len(shape) < 2 or shape[0] < 1:
        what = f"the images of '{function}' are {found.arguments[position]}"
        raise ProgramError(what, "It takes a batch: the first dimension counts the images.")
    of_labels = _position(names, labels, function) if labels else None
    return RoleCall(function, found.arguments, names, position, of_labels, found.results)


def _position(names: tuple[str, ...], wanted: str, function: str) -> int:
    if wanted.isdecimal() and int(wanted) < len(names):
        return int(wanted)
    if wanted not in names:
        what = f"function '{function}' has no argument '{wanted}' that the workload names"
        raise ProgramError(what, did_you_mean(wanted, names))
    return names.index(wanted)


def _check_step(step: RoleCall, predict: RoleCall) -> None:
    """Check a training step's labels and results, and the parameters that it shares with the prediction."""
    assert step.labels is not None
    type_ = step.arguments[step.labels]
    if type_.shape[:1] != (step.batch,) or len(type_.shape) > 2 or not type_.plain:
        what = f"the labels of '{step.function}' are {type_}, beside a batch of {step.batch} images"
        raise ProgramError(what, "They are one number, or one row, for each image.")
    known = step.types()
    for position, (name, type_) in enumerate(known.items()):
        given = step.results[position] if position < len(step.results) else "missing"
        if given != type_:
            what = f"result {position} of '{step.function}' is {given}, parameter '{name}' is {type_}"
            raise ProgramError(what, "A step gives the new parameters first, in the order of the arguments.")
    for name, type_ in predict.types().items():
        if known.get(name) != type_:
            takes = f"function '{predict.function}' takes '{name}' of {type_}"
            what = f"{takes}, which '{step.function}' does not"
            raise ProgramError(what, "It takes parameters of the same names and types, and images.")


def _classes(predict: RoleCall) -> int:
    first = predict.results[0] if predict.results else None
    if first is None or len(first.shape) != 2 or first.shape[0] != predict.batch or "f" not in first.element:
        what = f"'{predict.function}' gives {first or 'nothing'}, beside a batch of {predict.batch} images"
        raise ProgramError(what, "It gives a row of floats for each image.")
    return first.shape[1]


def shaped(images: NDArray[Any], type_: TensorType, how: Images) -> NDArray[Any]:
    """Return images as an argument takes them.

    Args:
        images: N x height x width (x channels), or flat; bytes are scaled to 0 to 1.

    Raises:
        ProgramError: they have more pixels than the argument takes, or fewer, or other channels.
    """
    pixels = images.astype(np.float32) / np.float32(255) if images.dtype == np.uint8 else images
    mean, deviation = (np.asarray(values, np.float32) for values in (how.mean, how.deviation))
    channels = images.shape[3] if images.ndim == 4 else 1
    if not {mean.size, deviation.size} <= {1, channels}:
        what = f"the mean has {mean.size} and the deviation {deviation.size} channels, the images {channels}"
        raise ProgramError(what, "Give one number for each channel, or one for all.")
    pixels = (pixels - mean) / deviation
    if how.layout == "NCHW" and pixels.ndim == 4:
        pixels = pixels.transpose(0, 3, 1, 2)
    wanted = type_.shape[1:]
    if math.prod(pixels.shape[1:]) != math.prod(wanted):
        what = f"the images are of shape {list(images.shape[1:])}, the module takes {list(wanted)}"
        raise ProgramError(what, "Give data of that size, or make the module for these images.")
    if len(wanted) == pixels.ndim - 1 and wanted != pixels.shape[1:]:
        what = f"the images are of shape {list(pixels.shape[1:])}, the module takes {list(wanted)}"
        raise ProgramError(what, "Set 'layout' of [images].")
    return np.ascontiguousarray(pixels.reshape(-1, *wanted), numpy_type(type_.element))


def labels_as(labels: NDArray[np.int64], type_: TensorType) -> NDArray[Any]:
    """Return labels as an argument takes them: numbers, or rows with one 1 where it has two dimensions."""
    if len(type_.shape) == 1:
        return labels.astype(numpy_type(type_.element))
    return np.eye(type_.shape[1], dtype=numpy_type(type_.element))[labels]


def first_parameters(workload: Workload, call: RoleCall) -> list[NDArray[Any]]:
    """Return the parameters that a function starts with, in the order of its arguments.

    They are those of the weights' file. Without it matrices are normal, with a variance of 2 over the number
    of inputs, and vectors are 0.

    Raises:
        ProgramError: the file lacks one, or has it in another shape or type, or the workload is an
            inference and names none.
    """
    types = call.types()
    if workload.weights is not None:
        found = read_weights(workload.weights)
        return [_checked(found, name, type_, workload.weights.path) for name, type_ in types.items()]
    if types and workload.training is None:
        what = f"function '{call.function}' takes {len(types)} parameters, and the workload has no weights"
        raise ProgramError(what, "Name a file: weights = 'FILE.safetensors'.")
    rng = np.random.default_rng(workload.training.seed if workload.training else 0)

    def first(type_: TensorType) -> NDArray[Any]:
        # He and others, 2015; nothing is drawn for a vector.
        deviation = math.sqrt(2 / math.prod(type_.shape[:-1])) if len(type_.shape) > 1 else 0
        values = rng.normal(0, deviation, type_.shape) if deviation else np.zeros(type_.shape)
        return values.astype(numpy_type(type_.element))

    return [first(type_) for type_ in types.values()]


def _checked(found: Arrays, name: str, type_: TensorType, path: str) -> NDArray[Any]:
    if name not in found:
        raise ProgramError(f"'{path}' has no array '{name}'", did_you_mean(name, found))
    array = found[name]
    if array.shape != type_.shape or array.dtype != numpy_type(type_.element):
        what = f"'{name}' of '{path}' is {array.dtype} {list(array.shape)}, the module takes {type_}"
        raise ProgramError(what, "Give the weights of this module.")
    return array


def read_weights(file: File) -> Arrays:
    """Read arrays by name; raises ProgramError where the file is missing, another one, or malformed."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        path = unchanged_path(file.path, file.digest, "the weights")
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as found:
                return dict(found)
        return load_file(path)
    except (*DAMAGED, SafetensorError) as error:
        what = f"cannot read the weights '{file.path}': {why(error)}"
        raise ProgramError(what, "Write them again.") from error


TARGETS = "targets"
"""The name of the array that answers are scored by."""


def read_arrays(data: Data) -> Arrays:
    """Read the arrays of a workload's data; none where it has no data.

    Raises:
        ProgramError: the file is missing, malformed, or other than when it was located.
    """
    if not data.digest:
        return {}
    try:
        path = unchanged_path(data.folder, data.digest, "the inputs")
        files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
        if len(files) != 1:
            raise ProgramError(f"'{path}' has {len(files)} .npz files", "Name one file with data=.")
        check_regular(files[0])
        with np.load(files[0], allow_pickle=False) as found:
            return dict(found)
    except (*DAMAGED, AttributeError) as error:
        what = f"cannot read the inputs '{data.folder}': {why(error)}"
        raise ProgramError(what, "Use numpy.savez.") from error


def check_names(arguments: Collection[str], given: Arrays, others: Collection[str]) -> None:
    """Raise ProgramError where an argument has no array, or an array belongs to none."""
    known = [*arguments, TARGETS]
    for name in given:
        if name not in known:
            raise ProgramError(
                f"the module has no argument '{name}', which the inputs have", did_you_mean(name, known)
            )
    for name in arguments:
        if name not in given and name not in others:
            has = f"They have {', '.join(given) or 'none'}."
            raise ProgramError(
                f"the inputs have no array '{name}'",
                f"{has} A file of weights alone is named by 'weights' in a workload: inputs are random then.",
            )


def drawn(type_: TensorType, rng: np.random.Generator, below: int) -> NDArray[Any]:
    """Draw an array: normal floats, whole numbers from 0 to `below` - 1, truth values."""
    dtype = numpy_type(type_.element)
    if dtype.kind == "b":
        return rng.integers(0, 2, type_.shape).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, min(below, int(np.iinfo(dtype).max) + 1), type_.shape).astype(dtype)
    return rng.standard_normal(type_.shape).astype(dtype)


def cast_argument(array: NDArray[Any], type_: TensorType, name: str) -> NDArray[Any]:
    """Return an array of elements that an argument takes; raises ProgramError where some would change."""
    dtype = numpy_type(type_.element)
    if array.dtype == dtype:
        return np.ascontiguousarray(array)
    fits = array.dtype.kind in "biu" and (array.astype(dtype) == array).all()
    if dtype.kind in "biu" and not fits:
        what = f"'{name}' of the inputs is {array.dtype}, the module takes {type_}"
        raise ProgramError(what, "Convert it.")
    return np.ascontiguousarray(array.astype(dtype))


def rows_of(array: NDArray[Any], type_: TensorType, name: str) -> int | None:
    """Return the rows of an array that an argument takes in a call; 0: a value each; None: it as it is.

    Raises:
        ProgramError: it is of another shape.
    """
    if array.shape == type_.shape:
        return None
    if array.shape[1:] == type_.shape and array.ndim:
        return 0
    if array.ndim and array.shape[1:] == type_.shape[1:] and type_.shape and math.prod(type_.shape):
        return type_.shape[0]
    what = f"'{name}' of the inputs is of shape {list(array.shape)}, the module takes {type_}"
    raise ProgramError(what, "Give that shape, N x that shape, or N rows of it.")


WITHOUT = 100
"""Random numbers are below this where a module looks nothing up."""


def smallest_table(program: Program) -> int:
    """Return the length of the smallest table that a module gathers single rows from."""
    found: list[int] = []
    root = load(program.text)  # operations live no longer than this name does
    for op in walk(root):
        if op.name == "stablehlo.gather":
            numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
            sizes, shape = integers(op, "slice_sizes"), shape_of(op.operands[0])
            found += [shape[axis] for axis in numbers.start_index_map if sizes[axis] == 1]
    return min(found, default=WITHOUT)
