"""What a workload is: plain values, which a TOML file or a Python file gives."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Literal

from planish.core import canonical_json

_LATER = ("metric", "inputs", "code")


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
class Inputs:
    """What a module of any arguments is called with: arrays of a file, by name, or random ones.

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
    """With what a module is run, and how it is scored.

    Args:
        data: where the examples are.
        split: how they are divided.
        images: how the module takes them.
        training: None where the module predicts.
        weights: values for the other arguments, by name: a `.safetensors` or `.npz` file. A training starts
            from random ones without it.
        original: another form of the module, which is measured beside it at the end of a search; None: none.
        metric: how answers are scored (see `planish.hlo.workload.metric`), or the name of a function in the
            code. Empty: by the largest number of each answer.
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
        # What was not there in earlier versions is left out where it is not used: programs keep their names.
        entries = asdict(self)
        return canonical_json({k: v for k, v in entries.items() if v or k not in _LATER})
