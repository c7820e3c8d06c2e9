"""Specification of a workload: plain values, the names of metrics, and a reader for TOML and JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cached_property
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from planish.core import ProgramError, canonical_json, did_you_mean


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
    """Location of the examples.

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
    """Sizes of the parts of the examples; drawn by a seed, no example is in two.

    Args:
        seed: by which the examples are shuffled.
        train: to train on, or what the weights were trained on; the others are what an error is measured on.
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
    """Training of a module whose evolved function is one step.

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
class Inputs:
    """Inputs of a module of any arguments: arrays of a file, by name, or random ones.

    An array that has one more dimension than its argument has one value for each call; one of as many has
    rows, of which a call takes as many as the argument has; one of the argument's own shape is the same in
    each call.

    Args:
        seed: of random values, and of the order of rows and calls.
        search: how many calls the search sees.
        validation: how many calls it does not see.
        final: how many are made only at the very end. 0: all that are left, or as many as of the validation.
        below: random whole numbers are from 0 to one less. 0: as many as the smallest table
            has that the module looks anything up in, 100 where it has none.
    """

    seed: int = 0
    search: int = 4
    validation: int = 4
    final: int = 0
    below: int = 0


@dataclass(frozen=True)
class Workload:
    """The data that a module is run with, and how it is scored.

    Args:
        data: where the examples are.
        split: how they are divided.
        images: how the module takes them.
        training: None where the module predicts.
        weights: values for the other arguments, by name: a `.safetensors` or `.npz` file. A training starts
            from random ones without it.
        original: another form of the module, which is measured beside it at the end of a search; None: none.
        metric: how answers are scored (see `planish.levels.hlo.workload.spec`), or the name of a function in
            the code. Empty: by the largest number of each answer.
        inputs: what a module of any arguments is called with; None: it takes images.
        code: a Python file with the user's own metric; None: the metric is one of those here.
    """

    data: Data = field(default_factory=Data)
    split: Split = field(default_factory=Split)
    images: Images = field(default_factory=Images)
    training: Training | None = None
    weights: File | None = None
    original: File | None = None
    metric: str = ""
    inputs: Inputs | None = None
    code: File | None = None

    @cached_property
    def text(self) -> str:
        """The canonical JSON."""
        return canonical_json(asdict(self))


LOSSES = ("mse", "cross-entropy", "perplexity")
OUTPUTS = "outputs"
NAMES = ("top-1", "top-5", OUTPUTS, *LOSSES)
"""Any `top-N` is one of them."""

_TOP = re.compile(r"top-([1-9]\d{0,5})")


def compares_outputs(workload: Workload) -> bool:
    """Return whether answers are compared with those of the unchanged module, as without a metric."""
    return workload.inputs is not None and not workload.code and workload.metric in ("", OUTPUTS)


def measured_as(workload: Workload) -> Literal["error", "loss"]:
    """Name the objective that a workload's metric gives: an error is a share, a loss has no bound."""
    return "loss" if workload.code or workload.metric in LOSSES else "error"


def top_of(metric: str) -> int:
    """Return N of `top-N`, 1 for the metric of no name, else 0."""
    found = _TOP.fullmatch(metric or "top-1")
    return int(found[1]) if found else 0


def check_metric(workload: Workload, where: str) -> None:
    """Raise ProgramError where a workload's metric is unknown, or its data has nothing that it needs."""
    name, calls = workload.metric, workload.inputs is not None
    if workload.code:
        if not name.isidentifier():
            what = f"expected the name of a function, got '{name}'"
            raise ProgramError(what, 'Write metric="FILE.py:FUNCTION".')
        return
    if name and name not in NAMES and not top_of(name):
        raise ProgramError(f"the metric of {where} is {name!r}", did_you_mean(name, NAMES))
    if name in (OUTPUTS, "mse") and not calls:
        raise ProgramError(f"the metric '{name}' of {where} scores no images", "Add a section [inputs].")


T = TypeVar("T")
FILES = ("weights", "original")


def workload_from(table: Mapping[str, Any], where: str) -> Workload:
    """Read a workload from a table, as of TOML or JSON.

    Raises:
        ProgramError: a name is unknown, a value is of the wrong type or size.
    """
    paths = {name: {"path": table[name]} for name in FILES if isinstance(table.get(name), str)}
    workload = _read(Workload, {**table, **paths}, where)
    _check(workload, where)
    return workload


def _read(kind: type[T], table: Any, where: str) -> T:
    if not isinstance(table, Mapping):
        raise ProgramError(f"{where} is not a table", "Write it as [section] with NAME = VALUE.")
    types = get_type_hints(kind)
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in types:
            raise ProgramError(f"{where} has an unknown entry '{name}'", did_you_mean(name, types))
        values[name] = _value(types[name], value, f"'{name}' of {where}")
    for entry in fields(kind):  # type: ignore[arg-type]
        if entry.name not in values and entry.default is MISSING and entry.default_factory is MISSING:
            raise ProgramError(f"{where} lacks '{entry.name}'", "Add it.")
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
    # Where a float is wanted, 1 is one; true is none, though Python's bool is an int.
    if type_ is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type_ in (int, str, float):
        if type(value) is not type_:
            raise ProgramError(f"{where} is {value!r}", f"It is of type {type_.__name__}.")
        return value
    return _read(type_, value, where)


def _check(workload: Workload, where: str) -> None:
    check_metric(workload, where)
    inputs = workload.inputs
    if inputs and workload.training:
        raise ProgramError(f"{where} has [inputs] beside a training", "A training takes images and labels.")
    if inputs and (
        min(inputs.search, inputs.validation) < 1 or min(inputs.final, inputs.seed, inputs.below) < 0
    ):
        what = f"[inputs] of {where} leaves the search or the validation no calls, or has a number below 0"
        raise ProgramError(what, "Give 'search' and 'validation' 1 or more.")
    split, training = workload.split, workload.training
    for name, count in asdict(split).items():
        if count < 0:
            raise ProgramError(f"'{name}' of {where} is {count}", "It is 0 or more.")
    if not (split.search and split.validation):
        raise ProgramError(f"{where} leaves the search or the validation no examples", "Give each some.")
    if training and not split.train:
        raise ProgramError(f"{where} has no examples to train on", "Give 'train' of [split] some.")
    if training and (training.epochs < 1 or training.search_steps < 0):
        raise ProgramError(f"the training of {where} has no steps", "Give epochs of 1 or more.")
    if not all(workload.images.deviation):
        raise ProgramError(f"{where} divides pixels by a deviation of 0", "Give another one.")
