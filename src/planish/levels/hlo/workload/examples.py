"""Examples of a workload's parts, as a module takes them: labeled images, or calls of any arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError, ProgramError
from planish.levels.hlo.ir.mlir import TensorType
from planish.levels.hlo.ir.normal import chosen_function, load
from planish.levels.hlo.program import Program
from planish.levels.hlo.workload.arguments import (
    TARGETS,
    Fitted,
    RoleCall,
    cast_argument,
    check_names,
    drawn,
    first_parameters,
    fit,
    labels_as,
    read_arrays,
    read_weights,
    rows_of,
    shaped,
    signature,
    smallest_table,
)
from planish.levels.hlo.workload.data import (
    Examples,
    Group,
    digits,
    open_data,
    synthetic_examples,
    unchanged_path,
)
from planish.levels.hlo.workload.spec import Split, Workload

Part = Literal["train", "search", "validation", "final"]
PARTS: tuple[Part, ...] = get_args(Part)

_STAND_INS = {"digits": digits, "made": synthetic_examples}
_SHARE = 0.9
"""Share of a stand-in that the parts before the final one may take."""


Arguments = dict[int, NDArray[Any]]
"""Arrays by the positions of the arguments."""


@dataclass(frozen=True)
class Calls:
    """Calls of a function on the examples of a part.

    Args:
        varying: of each call, the arguments that are not the same in all.
        targets: of the examples, by row or else by call; None where the data has none.
        rows: examples that a call takes; 0 where it takes values of its own.
        count: of the examples; the last call may be filled up with others, which do not count.
        scored: how many of a call's results are scored; None: all.
    """

    varying: Sequence[Arguments]
    targets: NDArray[Any] | None
    rows: int
    count: int
    scored: int | None = None

    def seen(self, calls: int) -> int:
        """Return how many examples a number of calls have."""
        return min(calls * (self.rows or 1), self.count)

    def joined(self, answers: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Put one result of the first calls together: by row where it has a row for each, else by call."""
        if not self.rows or answers[0].shape[:1] != (self.rows,):
            return np.stack(answers)
        return np.concatenate(answers)[: self.seen(len(answers))]


class LabeledExamples:
    """The parts of a workload's labeled images.

    Args:
        at_the_end: whether the search is over; before, the final part stays closed.

    Raises:
        ProgramError: the data is missing, malformed, or other than when it was located.
        TargetError: it takes a library that is not installed.
    """

    def __init__(self, workload: Workload, fitted: Fitted, *, at_the_end: bool = False) -> None:
        self._workload, self._fitted = workload, fitted
        self._at_the_end = at_the_end
        if not workload.data.stand_in:
            try:
                unchanged_path(workload.data.folder, workload.data.digest, "the data")
            except FileNotFoundError as error:
                what = f"the data '{workload.data.folder}' does not exist"
                raise ProgramError(what, "Name it with data=.") from error
        train = self._open("train")
        assert train is not None
        self._train = train

    def count(self, part: Part) -> int:
        """Count the examples of a part; raises as `calls` does."""
        return len(self._drawn(part)[1])

    def calls(self, part: Part, call: RoleCall, some: NDArray[np.int64] | None = None) -> Calls:
        """Return the calls of a function on the examples of a part; the last one is filled up.

        Args:
            some: their positions in the part; None for all.

        Raises:
            PlanishError: the final part is asked for before the end.
            ProgramError: the examples do not fit the split, the module or its classes.
        """
        examples, drawn = self._drawn(part)
        wanted, size = drawn if some is None else drawn[some], call.batch
        positions = np.resize(wanted, -(-len(wanted) // size) * size)
        labels = examples.labels[positions]
        if labels.max() >= self._fitted.classes:
            what = f"the data has the label {labels.max()}, the module gives {self._fitted.classes} classes"
            raise ProgramError(what, "Labels count from 0.")
        images = shaped(examples.images(positions), call.arguments[call.images], self._workload.images)
        arrays = {call.images: images}
        if call.labels is not None:
            arrays[call.labels] = labels_as(labels, call.arguments[call.labels])
        batches = [slice(first, first + size) for first in range(0, len(labels), size)]
        varying = [{i: array[batch] for i, array in arrays.items()} for batch in batches]
        return Calls(varying, labels[: len(wanted)], size, len(wanted), scored=1)

    def _drawn(self, part: Part) -> tuple[Examples, NDArray[np.int64]]:
        """Return the examples that a part is drawn from, and its positions among them."""
        if part == "final" and not self._at_the_end:
            raise PlanishError("the final examples stay unseen until the search is over")
        test = self._open("test") if part == "final" else None
        examples = test or self._train
        return examples, split_positions(self._split(), part, len(examples.labels), own=test is not None)

    def _split(self) -> Split:
        """Return the split; a stand-in may be too small for the one that was asked for."""
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


def split_positions(split: Split, part: Part, there: int, *, own: bool) -> NDArray[np.int64]:
    """Draw a part: the same seed gives the same examples, and another part others.

    Args:
        own: whether they are for this part alone.
    """
    first = 0 if own else sum(getattr(split, before) for before in PARTS[: PARTS.index(part)])
    count = getattr(split, part) or there - first
    # A lack of examples for the validation is an error now, and not when the search is over.
    asked = max(first + max(count, 1), 0 if own else split.train + split.search + split.validation)
    if asked > there:
        what = f"the split asks for {asked} examples, there are {there}"
        raise ProgramError(what, "Make the parts of [split] smaller.")
    order = np.random.default_rng([split.seed, int(own)]).permutation(there)
    return order[first : first + count]


_ORDER: tuple[Part, ...] = ("search", "validation", "final")


class NamedInputs:
    """The parts of a workload's inputs, which are arrays by the arguments' names, or random.

    Args:
        workload: located; it has `inputs`.
        at_the_end: whether the search is over; before, the final calls stay closed.

    Attributes:
        takes: what the function takes and gives.
        fixed: the arguments that are the same in each call.
        rows: how many rows of the data one call takes; 0 where it takes values of its own.

    Raises:
        ProgramError: the arrays are missing or malformed, or do not fit.
    """

    def __init__(self, program: Program, workload: Workload, *, at_the_end: bool = False) -> None:
        assert workload.inputs is not None
        self._inputs, self._at_the_end = workload.inputs, at_the_end
        self.takes = signature(program, chosen_function(load(program.text)))
        if not self.takes.results:
            raise ProgramError("the module gives nothing to compare", "Let it give a result.")
        self.names = [name or str(position) for position, name in enumerate(self.takes.names)]
        given = read_arrays(workload.data)
        weights = read_weights(workload.weights) if workload.weights else {}
        self._below = self._inputs.below or smallest_table(program)
        self._random = not workload.data.digest
        if not self._random:
            check_names(self.names, given, weights)
        self._take({**weights, **given})
        order = np.random.default_rng(self._inputs.seed).permutation(self._count * (self.rows or 1))
        self._varying = {position: array[order] for position, array in self._varying.items()}
        self._targets = None
        if TARGETS in given:
            targets = given[TARGETS]
            if not targets.ndim or len(targets) < len(order):
                what = f"the targets have shape {list(targets.shape)}, the inputs {len(order)} examples"
                raise ProgramError(what, "Give one for each row, or for each call.")
            self._targets = targets[order]
        self._positions("search")  # a lack of calls is an error at once

    def _take(self, found: dict[str, NDArray[Any]]) -> None:
        """Divide the arrays: some are the same in each call, of the others each takes a part."""
        self.fixed, self._varying = Arguments(), Arguments()
        ways: dict[tuple[int, int], str] = {}
        for position, (name, type_) in enumerate(zip(self.names, self.takes.arguments, strict=True)):
            if name not in found:
                continue
            array, rows = cast_argument(found[name], type_, name), rows_of(found[name], type_, name)
            if rows is None:
                self.fixed[position] = array
                continue
            self._varying[position] = array
            ways.setdefault((rows, len(array) // (rows or 1)), name)
        if len(ways) > 1:
            several = " and ".join(f"{n} calls by '{name}'" for (_, n), name in ways.items())
            what = f"the inputs are for {several}"
            raise ProgramError(what, "Give as much of each, all as rows or all as calls.")
        self.rows, self._count = next(iter(ways), (0, 0))

    def calls(self, part: Part) -> Calls:
        """Return the calls of a part, without the arguments that are fixed."""
        positions = self._positions(part)
        count = len(positions) * (self.rows or 1)
        return Calls([*map(self._call, positions)], self.targets(part), self.rows, count)

    def targets(self, part: Part) -> NDArray[Any] | None:
        """Return the targets of a part, by row or else by call; None where the data has none."""
        if self._targets is None:
            return None
        positions, size = self._positions(part), self.rows or 1
        return self._targets[positions.start * size : positions.stop * size]

    def answer_shape(self, part: Part) -> tuple[int, ...]:
        """Return the shape of the first result of a part's calls, put together."""
        count, shape = len(self._positions(part)), self.takes.results[0].shape
        return (count * self.rows, *shape[1:]) if self.rows and shape[:1] == (self.rows,) else (count, *shape)

    def _call(self, position: int) -> Arguments:
        if self._random:
            rng = np.random.default_rng([self._inputs.seed, position])
            types = enumerate(self.takes.arguments)
            return {i: drawn(type_, rng, self._below) for i, type_ in types if i not in self.fixed}
        if not self.rows:
            return {i: array[position] for i, array in self._varying.items()}
        rows = slice(position * self.rows, (position + 1) * self.rows)
        return {i: array[rows] for i, array in self._varying.items()}

    def _positions(self, part: Part) -> range:
        """Number the calls of a part; raises ProgramError where the parts want more than there are."""
        if part == "final" and not self._at_the_end:
            raise PlanishError("the final examples stay unseen until the search is over")
        search, validation, final = self._inputs.search, self._inputs.validation, self._inputs.final
        left = validation if self._random else self._count - search - validation
        sizes = (search, validation, final or left)
        if not self._random and (min(sizes) < 1 or sum(sizes) > self._count):
            asked = search + validation + max(final, 1)
            what = f"[inputs] asks for {asked} calls, the data is for {self._count}"
            raise ProgramError(what, "Give more, or make its 'search' and 'validation' smaller.")
        first = sum(sizes[: _ORDER.index(part)])
        return range(first, first + sizes[_ORDER.index(part)])


def first_call(program: Program, workload: Workload) -> tuple[tuple[TensorType, ...], list[NDArray[Any]]]:
    """Return the types of a function's arguments, and arrays for them, of the search's first examples."""
    if workload.inputs is not None:
        inputs = NamedInputs(program, workload)
        types, fixed, calls = inputs.takes.arguments, inputs.fixed, inputs.calls("search")
    else:
        fitted = fit(program, workload)
        call = fitted.evolved
        fixed = dict(zip(call.parameters, first_parameters(workload, call), strict=True))
        types, calls = call.arguments, LabeledExamples(workload, fitted).calls("search", call)
    arrays = fixed | calls.varying[0]
    return types, [arrays[position] for position in range(len(types))]
