"""Does a workload fit a module? Which argument is what."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import ProgramError, did_you_mean
from planish.hlo.ir import TensorType, chosen_function, load
from planish.hlo.program import Program
from planish.hlo.signature import Signature, signature
from planish.hlo.workload.spec import Workload


@dataclass(frozen=True)
class RoleCall:
    """What the arguments of a function are.

    Args:
        function: its name.
        arguments: their types.
        names: one for each; "argument 3" where the module has none.
        images: which takes the images.
        labels: which takes the labels; None: none does.
    """

    function: str
    arguments: tuple[TensorType, ...]
    names: tuple[str, ...]
    images: int
    labels: int | None = None

    @property
    def batch(self) -> int:
        """How many images it takes at once."""
        return self.arguments[self.images].shape[0]

    @property
    def parameters(self) -> tuple[int, ...]:
        """Which arguments are parameters: all others."""
        return tuple(i for i in range(len(self.arguments)) if i not in (self.images, self.labels))

    def types(self) -> dict[str, TensorType]:
        """Give the parameters' types by name."""
        return {self.names[i]: self.arguments[i] for i in self.parameters}


@dataclass(frozen=True)
class Fitted:
    """How a module's functions are called.

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
        predict, found = _call(program, function, workload.images.argument, "")
        return Fitted(predict, predict, _classes(predict, found))
    step, results = _call(program, function, workload.images.argument, training.labels)
    predict, found = _call(program, training.predict, workload.images.argument, "")
    _check_labels(step)
    _check_results(step, results)
    _check_shared(step, predict)
    return Fitted(step, predict, _classes(predict, found))


def _call(program: Program, function: str, images: str, labels: str) -> tuple[RoleCall, Signature]:
    found = signature(program, function)
    names = tuple(name or f"argument {i}" for i, name in enumerate(found.names))
    place = _place(names, images, function)
    call = RoleCall(
        function, found.arguments, names, place, _place(names, labels, function) if labels else None
    )
    shape = call.arguments[place].shape
    if len(shape) < 2 or shape[0] < 1:
        what = f"the images of '{function}' are {call.arguments[place]}"
        raise ProgramError(what, "It takes a batch: the first dimension counts the images.")
    return call, found


def _place(names: tuple[str, ...], wanted: str, function: str) -> int:
    if wanted.isdecimal() and int(wanted) < len(names):
        return int(wanted)
    if wanted not in names:
        what = f"function '{function}' has no argument '{wanted}' that the workload names"
        raise ProgramError(what, did_you_mean(wanted, names))
    return names.index(wanted)


def _check_labels(step: RoleCall) -> None:
    assert step.labels is not None
    type_ = step.arguments[step.labels]
    if type_.shape[:1] != (step.batch,) or len(type_.shape) > 2 or not type_.plain:
        what = f"the labels of '{step.function}' are {type_}, beside a batch of {step.batch} images"
        raise ProgramError(what, "They are one number, or one row, for each image.")


def _check_results(step: RoleCall, results: Signature) -> None:
    for place, (name, type_) in enumerate(step.types().items()):
        given = results.results[place] if place < len(results.results) else "missing"
        if given != type_:
            what = f"result {place} of '{step.function}' is {given}, parameter '{name}' is {type_}"
            raise ProgramError(what, "A step gives the new parameters first, in the order of the arguments.")


def _check_shared(step: RoleCall, predict: RoleCall) -> None:
    known = step.types()
    for name, type_ in predict.types().items():
        if known.get(name) != type_:
            what = (
                f"function '{predict.function}' takes '{name}' of {type_}, which '{step.function}' does not"
            )
            raise ProgramError(what, "It takes parameters of the same names and types, and images.")


def _classes(predict: RoleCall, found: Signature) -> int:
    first = found.results[0] if found.results else None
    if first is None or len(first.shape) != 2 or first.shape[0] != predict.batch or "f" not in first.element:
        what = f"'{predict.function}' gives {first or 'nothing'}, beside a batch of {predict.batch} images"
        raise ProgramError(what, "It gives a row of floats for each image.")
    return first.shape[1]
