"""Metrics: a number for answers, the less the better; and the check that a metric suits a module."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError
from planish.levels.hlo.program import Program
from planish.levels.hlo.workload import Workload
from planish.levels.hlo.workload.arguments import first_parameters, fit
from planish.levels.hlo.workload.data import unchanged_path
from planish.levels.hlo.workload.examples import NamedInputs
from planish.levels.hlo.workload.spec import File, compares_outputs, top_of


class NotFiniteError(Exception):
    """No answer is a finite number, or not all of those are that a metric needs."""


class MetricError(Exception):
    """A metric cannot score the answers, or the user's own raises an error."""


ROUNDING = {1: 0.05, 2: 0.02, 4: 1e-5, 8: 1e-12}
"""Bytes of an element to the share up to which floats differ by rounding alone."""


def distance(answers: Sequence[NDArray[Any]], targets: Sequence[NDArray[Any]]) -> float:
    """Return the distance of answers from others, from 0 to 1: that of the result which differs most.

    Of floats it is the length of the difference as a share of the length of the other, 1 at most, and the
    mean over the examples; a difference up to rounding is 0. An example with a number that is not finite,
    where the other's is, is 1. Of whole numbers and truth values it is the share that differ.

    Args:
        answers: an array for each result, examples first.
        targets: of the same shapes.

    Raises:
        NotFiniteError: no example is finite where the other is.
    """
    return float(f"{max(map(_distance, answers, targets), default=0.0):.6g}")


def _distance(answer: NDArray[Any], target: NDArray[Any]) -> float:
    if not target.size:
        return 0.0
    if target.dtype.kind in "biu":
        return float((answer != target).mean())
    # In float64: squares of float16 and bfloat16 overflow, or vanish.
    a, t = (each.astype(np.float64).reshape(len(target), -1) for each in (answer, target))
    known = np.isfinite(t)
    # What is infinite or no number in both is the same.
    alike: NDArray[np.bool_] = np.where(known, np.isfinite(a), (a == t) | (np.isnan(a) & np.isnan(t)))
    whole: NDArray[np.bool_] = np.all(alike, axis=1)
    if not whole.any():
        raise NotFiniteError(f"none of {len(t)} outputs is finite where those of the unchanged module are")
    if not known.any():
        raise NotFiniteError("no output of the unchanged module is finite: give other inputs with data=")
    a, t = (np.where(known & whole[:, None], each, 0.0) for each in (a, t))
    off, size = np.linalg.norm(a - t, axis=1), np.linalg.norm(t, axis=1)
    # One at most, so that a single wild example does not outweigh all others.
    share = np.minimum(off / np.maximum(size, np.finfo(np.float64).tiny), 1.0)
    # By the type of the unchanged module's result: what compilers reorder is not an error of a patch.
    share[share <= ROUNDING[target.dtype.itemsize]] = 0.0
    share[~whole] = 1.0
    return float(share.mean())


Arrays = Sequence[NDArray[Any]]
Metric = Callable[[Arrays, Arrays], float]
"""Answers and targets, an array for each result, to a number.

Raises NotFiniteError where there is nothing to score, MetricError where it fails in another way.
"""


def metric_of(workload: Workload) -> Metric:
    """Return the metric of a workload; the user's own is executed. Raises ProgramError where that fails."""
    if workload.code is not None:
        return _checked_metric(_own(workload.code, workload.metric), workload.metric)
    if compares_outputs(workload):
        return distance
    if not workload.metric:
        return lambda answers, targets: error_of(answers[0], targets[0])
    return partial(_by_first, _LOSSES.get(workload.metric) or partial(_top, top_of(workload.metric)))


def check_targets(workload: Workload, answers: tuple[int, ...], targets: NDArray[Any]) -> None:
    """Check that targets are what a metric compares answers with."""
    name, top = workload.metric, top_of(workload.metric)
    if workload.code or compares_outputs(workload):
        return
    wanted = answers if name == "mse" else answers[:-1]
    if targets.shape != wanted and targets.size != int(np.prod(wanted)):
        those = f"those of '{name or 'top-1'}' of {list(wanted)}"
        raise ProgramError(f"the targets are of shape {list(targets.shape)}, {those}", "Give one each.")
    if name == "mse":
        return
    if targets.dtype.kind not in "iu" or targets.max() >= answers[-1]:
        given = f"{targets.dtype}, up to {targets.max()}"
        what = f"the targets are {given}; the module gives {answers[-1]} classes"
        raise ProgramError(what, "Give whole numbers from 0; those below 0 are skipped.")
    if top >= answers[-1]:
        raise ProgramError(f"top-{top} of {answers[-1]} classes is never wrong", "Take fewer.")


def error_of(answers: NDArray[Any], labels: NDArray[np.int64]) -> float:
    """Return the top-1 error.

    The paper asks of a module that it runs and that its accuracy can be evaluated (section 4.3): an answer
    with a number that is not finite is wrong, and where all are so, there is none to evaluate.

    Raises:
        NotFiniteError: no answer is finite.
    """
    return float(1 - right_answers(answers, labels).mean())


def right_answers(answers: NDArray[Any], labels: NDArray[Any], most: int = 1) -> NDArray[np.bool_]:
    """Return for each answer whether its label is among its largest numbers, and all are finite.

    Args:
        most: how many of the largest numbers count; of equal ones the first, as argmax has it.

    Raises:
        NotFiniteError: no answer is finite.
    """
    finite = np.isfinite(answers).all(axis=1)
    if not finite.any():
        raise NotFiniteError(f"none of {len(answers)} answers is finite")
    if most == 1:  # a label may be none of the classes
        return finite & (answers.argmax(axis=1) == labels)
    own = np.take_along_axis(answers, labels[:, None], axis=1)
    before = np.arange(answers.shape[1]) < labels[:, None]
    with np.errstate(invalid="ignore"):
        above = ((answers > own) | ((answers == own) & before)).sum(axis=1)
    return finite & (above < most)


def _by_first(
    score: Callable[[NDArray[Any], NDArray[Any]], float], answers: Arrays, targets: Arrays
) -> float:
    """Score the first result, to six digits: sums in another order are not another answer."""
    with np.errstate(over="ignore"):
        number = score(answers[0].astype(np.float64), targets[0])
    if not np.isfinite(number):
        raise NotFiniteError(f"the metric gives {number}")
    return float(f"{number:.6g}")


def _top(most: int, answers: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return the share of answers of which a label is not among the largest numbers."""
    return float(1 - right_answers(*_labeled(answers, labels), most).mean())


def _cross_entropy(answers: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return the mean cross-entropy of the labels under the softmax of the logits."""
    rows, wanted = _labeled(answers, labels)
    _all_finite(rows)
    shifted = rows - rows.max(axis=1, keepdims=True)
    own = np.take_along_axis(shifted, wanted[:, None], axis=1)[:, 0]
    return float((np.log(np.exp(shifted).sum(axis=1)) - own).mean())


def _mse(answers: NDArray[Any], targets: NDArray[Any]) -> float:
    _all_finite(answers.reshape(len(answers), -1))
    return float(np.square(answers - targets.reshape(answers.shape)).mean())


def _labeled(answers: NDArray[Any], labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a row of numbers for each label; what has none, as padding has, is left out."""
    rows, flat = answers.reshape(-1, answers.shape[-1]), labels.reshape(-1)
    known = flat >= 0
    if not known.any():
        raise MetricError("no answer has a label")
    return rows[known], flat[known]


def _all_finite(rows: NDArray[Any]) -> None:
    wrong = int((~np.isfinite(rows).all(axis=1)).sum())
    if wrong:
        raise NotFiniteError(f"{wrong} of {len(rows)} answers are not finite")


_ROUNDING = 1e-6
_LOSSES: Mapping[str, Callable[[NDArray[Any], NDArray[Any]], float]] = {
    "cross-entropy": _cross_entropy,
    "perplexity": lambda answers, labels: float(np.exp(np.float64(_cross_entropy(answers, labels)))),
    "mse": _mse,
}


def _own(file: File, name: str) -> Callable[..., object]:
    """Execute the user's file, and return the function."""
    try:
        path = unchanged_path(file.path, file.digest, "the metric's functions")
        found = runpy.run_path(str(path)).get(name)
    except ProgramError:
        raise
    except Exception as error:
        raise ProgramError(f"the metric '{file.path}' fails: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise ProgramError(f"the metric '{file.path}' has no function '{name}'", "Define it.")
    return found


def _checked_metric(function: Callable[..., object], name: str) -> Metric:
    """Return the user's metric; the first answers are scored twice: one that draws numbers ranks by luck."""
    is_steady = False

    def score(answers: Arrays, targets: Arrays) -> float:
        nonlocal is_steady
        number = _by_own(function, name, answers, targets)
        again = number if is_steady else _by_own(function, name, answers, targets)
        # A sum by several threads may round otherwise.
        if not np.isclose(number, again, rtol=_ROUNDING, atol=0):
            what = f"'{name}' gives {number:g}, then {again:g} for the same answers: it is random"
            hint = "seed it in each call, or leave out what draws numbers, as Dropout does"
            raise MetricError(f"{what}; {hint}")
        is_steady = True
        return number

    return score


def _by_own(function: Callable[..., object], name: str, answers: Arrays, targets: Arrays) -> float:
    try:
        # Copies: the targets score other candidates too, whatever the function does with them.
        value = function(list(answers), [target.copy() for target in targets])
    except Exception as error:
        first = str(error).partition("\n")[0]
        raise MetricError(f"'{name}' raises {type(error).__name__}: {first}") from error
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise MetricError(f"'{name}' must return a number, but returned a {type(value).__name__}") from error
    if not np.isfinite(number):
        raise NotFiniteError(f"'{name}' gives {number}")
    if number < 0:  # gains are ratios
        raise MetricError(f"'{name}' gives {number:g}, and must not be negative")
    return number


def check_suits(program: Program, workload: Workload) -> None:
    """Check that a module can be run and scored, before a run is stored and workers start.

    Raises:
        ProgramError: an array is missing or does not fit, or the metric scores other answers.
    """
    if workload.inputs is None:
        fitted = fit(program, workload)
        first_parameters(workload, fitted.evolved)
        if workload.metric and top_of(workload.metric) >= fitted.classes:
            what = f"'{workload.metric}' of {fitted.classes} classes is never wrong"
            raise ProgramError(what, "Take fewer.")
        return
    inputs = NamedInputs(program, workload)
    shape, targets = inputs.answer_shape("search"), inputs.targets("search")
    if targets is not None:
        check_targets(workload, shape, targets)
    elif not (workload.code or compares_outputs(workload)):
        what = f"the metric '{workload.metric}' needs targets, and the data has none"
        raise ProgramError(what, "Add an array 'targets' to the file of data=.")
