"""What a workload is: plain values, which a TOML file or a Python file gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from planish.core import ProgramError, canonical_json, did_you_mean

T = TypeVar("T")


@dataclass(frozen=True)
class File:
    """A file beside the workload.

    Args:
        path: as given; absolute once it is located.
        digest: of its content; empty until it is located.
    """

    path: str
    digest: str = ""


@dataclass(frozen=True)
class Data:
    """Where the examples are.

    Args:
        name: the data set's, by which its folder is looked for in PLANISH_DATA.
        folder: with the files, or one file; beside the workload where it is relative. Empty: by the name.
        stand_in: "" for files; what replaces them where there are none: "digits" of scikit-learn, or "made"
            ones, of a fixed seed. Chosen when the workload is located.
        digest: of the files; empty until they are located.
    """

    name: str = ""
    folder: str = ""
    stand_in: Literal["", "digits", "made"] = ""
    digest: str = ""


@dataclass(frozen=True)
class Split:
    """How many examples each part has; drawn by a seed, no example is in two.

    Args:
        seed: by which the examples are shuffled.
        train: to train on; the others are what an error is measured on.
        search: seen by the search.
        validation: not seen by the search.
        final: seen only at the very end; from the data's test files, where it has some. 0: all that are left.
    """

    seed: int = 0
    train: int = 0
    search: int = 1000
    validation: int = 1000
    final: int = 0


@dataclass(frozen=True)
class Images:
    """The images as the module takes them.

    Args:
        argument: the name of the argument, or its position from 0.
        mean: taken from pixels, which are 0 to 1; one for all, or one for each channel.
        deviation: by which they are divided then.
        layout: the order of the dimensions.
    """

    argument: str = "images"
    mean: tuple[float, ...] = (0.0,)
    deviation: tuple[float, ...] = (1.0,)
    layout: Literal["NHWC", "NCHW"] = "NHWC"


@dataclass(frozen=True)
class Training:
    """How a module is trained, whose function that is evolved is one step.

    The step takes parameters, images and labels, and gives the new parameters first, in the same order.

    Args:
        labels: the name of the argument for labels, or its position; whole numbers, or rows of 0 and 1.
        predict: the function that scores: it takes the parameters and images, and gives a row of numbers for
            each image, the largest of which is the answer.
        seed: of the first parameters and of the order of the examples.
        epochs: how often the examples are gone through, at the end of a search.
        search_steps: how many steps are trained during a search; 0: as many as at its end.
    """

    labels: str = "labels"
    predict: str = "predict"
    seed: int = 0
    epochs: int = 1
    search_steps: int = 0


@dataclass(frozen=True)
class Workload:
    """With what a module is run, and how it is scored.

    Args:
        data: where the examples are.
        split: how they are divided.
        images: how the module takes them.
        training: None where the module predicts.
        weights: values for the other arguments, by name: a `.safetensors` or `.npz` file. A training starts
            from random ones without it.
    """

    data: Data = field(default_factory=Data)
    split: Split = field(default_factory=Split)
    images: Images = field(default_factory=Images)
    training: Training | None = None
    weights: File | None = None

    @cached_property
    def text(self) -> str:
        """The canonical JSON."""
        return canonical_json(asdict(self))


def workload_from(table: Mapping[str, Any], where: str) -> Workload:
    """Read a workload from a table, as of TOML or JSON.

    Args:
        table: sections as the classes here; `weights` may be a path.
        where: what messages call it.

    Raises:
        ProgramError: a name is unknown, a value is of the wrong type or size.
    """
    weights = table.get("weights")
    if isinstance(weights, str):
        table = {**table, "weights": {"path": weights}}
    workload = _read(Workload, table, where)
    _check(workload, where)
    return workload


def _read(kind: type[T], table: Any, where: str) -> T:
    if not isinstance(table, Mapping):
        raise ProgramError(f"{where} is no table", "Write it as [section] with NAME = VALUE.")
    types = get_type_hints(kind)
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in types:
            raise ProgramError(f"{where} has an unknown entry '{name}'", did_you_mean(name, types))
        values[name] = _value(types[name], value, f"'{name}' of {where}")
    missing = [f.name for f in fields(kind) if f.name not in values] if kind is File else []  # type: ignore[arg-type]
    if "path" in missing:
        raise ProgramError(f"{where} lacks 'path'", "Name the file.")
    return kind(**values)


def _value(type_: Any, value: Any, where: str) -> Any:
    if isinstance(type_, UnionType):
        if value is None:
            return None
        type_ = next(each for each in get_args(type_) if each is not type(None))
    if get_origin(type_) is Literal:
        if value not in get_args(type_):
            raise ProgramError(f"{where} is {value!r}", did_you_mean(str(value), map(str, get_args(type_))))
        return value
    if get_origin(type_) is tuple:
        values = value if isinstance(value, list | tuple) else [value]
        return tuple(_value(float, each, where) for each in values)
    if type_ is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type_ in (int, str, float):
        if type(value) is not type_:
            raise ProgramError(f"{where} is {value!r}", f"It is of type {type_.__name__}.")
        return value
    return _read(type_, value, where)


def _check(workload: Workload, where: str) -> None:
    split, training = workload.split, workload.training
    for name, count in asdict(split).items():
        if count < 0:
            raise ProgramError(f"'{name}' of {where} is {count}", "It is 0 or more.")
    if not (split.search and split.validation):
        raise ProgramError(f"{where} leaves the search or the validation no examples", "Give each some.")
    if bool(split.train) != (training is not None):
        wanted = "has no examples to train on" if training else "has examples to train on, and no [training]"
        raise ProgramError(f"{where} {wanted}", "A training has both, an inference neither.")
    if training and (training.epochs < 1 or training.search_steps < 0):
        raise ProgramError(f"the training of {where} has no steps", "Give epochs of 1 or more.")
    if not all(workload.images.deviation):
        raise ProgramError(f"{where} divides pixels by a deviation of 0", "Give another one.")
