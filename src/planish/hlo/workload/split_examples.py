"""The examples of each part of a workload, as a module takes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError, ProgramError, unnamed
from planish.hlo.workload.argument_roles import Fitted, RoleCall
from planish.hlo.workload.data import Examples, Group, digest_of, digits, made, open_data
from planish.hlo.workload.shaping import shaped
from planish.hlo.workload.spec import Data, Split, Workload

Part = Literal["train", "search", "validation", "final"]
PARTS: tuple[Part, ...] = get_args(Part)

_STAND_INS = {"digits": digits, "made": made}
_SHARE = 0.9
"""How much of a stand-in the parts before the final one may take."""


@dataclass(frozen=True)
class Labelled:
    """Images as an argument takes them, and their labels.

    Args:
        images: N x the shape of one.
        labels: N whole numbers.
    """

    images: NDArray[Any]
    labels: NDArray[np.int64]


class Parts:
    """The parts of a workload's examples.

    Args:
        workload: located.
        fitted: how the module takes them.
        at_the_end: whether the search is over; before, the final part stays closed.

    Raises:
        ProgramError: the data is missing, malformed, or other than when it was located.
        TargetError: it takes a library that is not installed.
    """

    def __init__(self, workload: Workload, fitted: Fitted, *, at_the_end: bool = False) -> None:
        self._workload, self._fitted = workload, fitted
        self._at_the_end = at_the_end
        self._check_digest(workload.data)
        train = self._open("train")
        assert train is not None
        self._train = train

    def count(self, part: Part) -> int:
        """Count the examples of a part; raises as `read` does."""
        return len(self._drawn(part)[1])

    def read(self, part: Part, call: RoleCall, some: NDArray[np.int64] | None = None) -> Labelled:
        """Give the examples of a part, as a function takes them.

        Args:
            part: which.
            call: the function.
            some: their places in the part; None for all.

        Raises:
            PlanishError: the final part is asked for before the end.
            ProgramError: the examples do not fit the split, the module or its classes.
        """
        examples, drawn = self._drawn(part)
        places = drawn if some is None else drawn[some]
        labels = examples.labels[places]
        if labels.max() >= self._fitted.classes:
            what = f"the data has the label {labels.max()}, the module gives {self._fitted.classes} classes"
            raise ProgramError(what, "Labels count from 0.")
        images = shaped(examples.images(places), call.arguments[call.images], self._workload.images)
        return Labelled(images, labels)

    def _drawn(self, part: Part) -> tuple[Examples, NDArray[np.int64]]:
        """Give the examples that a part is drawn from, and its places among them."""
        if part == "final" and not self._at_the_end:
            raise PlanishError("the final examples stay unseen until the search is over")
        test = self._open("test") if part == "final" else None
        examples = test or self._train
        return examples, _places(self._split(), part, len(examples.labels), own=test is not None)

    def _split(self) -> Split:
        """Give the split; a stand-in may be too small for the one that was asked for."""
        split, there = self._workload.split, len(self._train.labels)
        asked = split.train + split.search + split.validation
        if not self._workload.data.stand_in or asked <= _SHARE * there:
            return split
        sizes = (split.train, split.search, split.validation)
        train, search, validation = (int(size * _SHARE * there / asked) for size in sizes)
        return replace(split, train=train, search=search, validation=validation, final=0)

    def _open(self, group: Group) -> Examples | None:
        data = self._workload.data
        if not data.stand_in:
            return open_data(Path(data.folder), group)
        if group == "test":
            return None
        predict = self._fitted.predict
        shape = predict.arguments[predict.images].shape[1:]
        return _STAND_INS[data.stand_in](shape, self._fitted.classes)

    @staticmethod
    def _check_digest(data: Data) -> None:
        if data.stand_in:
            return
        if not data.folder:
            raise unnamed("the data")
        if not Path(data.folder).exists():
            raise ProgramError(f"the data '{data.folder}' does not exist", "Name it with --data.")
        if digest_of(Path(data.folder)) != data.digest:
            what = f"the data in '{data.folder}' is not what it was when the program was read"
            raise ProgramError(what, "Tune again.")


def _places(split: Split, part: Part, there: int, *, own: bool) -> NDArray[np.int64]:
    """Draw a part: the same seed gives the same examples, and another part others.

    Args:
        split: how many each part has.
        part: which.
        there: how many examples there are.
        own: whether they are for this part alone.
    """
    first = 0 if own else sum(getattr(split, before) for before in PARTS[: PARTS.index(part)])
    count = getattr(split, part) or there - first
    # What lacks examples for its validation is to be told now, and not when the search is over.
    asked = max(first + max(count, 1), 0 if own else split.train + split.search + split.validation)
    if asked > there:
        what = f"the split asks for {asked} examples, there are {there}"
        raise ProgramError(what, "Make the parts of [split] smaller.")
    order = np.random.default_rng([split.seed, int(own)]).permutation(there)
    return order[first : first + count]
