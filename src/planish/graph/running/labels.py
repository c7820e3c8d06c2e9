"""The user's labels, and the share of them that a model's answers tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from planish.core import ProgramError
from planish.graph.program import GraphProgram
from planish.graph.running.feeds import arrays_in, batches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Answers = Sequence[Sequence[Any]]
"""The outputs of a model for each batch."""


def check_given(program: GraphProgram) -> None:
    """Look whether the user's inputs and labels can be read and fit the model's inputs, before a run begins.

    Raises:
        ProgramError: they do not.
    """
    if program.data is not None:
        batches(program, arrays_in(program.data.file))
    labelled(program)


def labelled(program: GraphProgram) -> NDArray[np.int64] | None:
    """Give the labels of the user's inputs; None where there are none.

    Raises:
        ProgramError: there are none of the inputs, or the labels are not whole numbers.
    """
    if program.labels is None:
        return None
    if program.data is None:
        raise ProgramError("there are labels, and no inputs", "Give both: --option inputs=FILE.npz.")
    arrays = list(arrays_in(program.labels.file).values())
    if len(arrays) != 1 or arrays[0].dtype.kind not in "iu":
        raise ProgramError(f"'{program.labels.path}' does not hold one array of whole numbers")
    return arrays[0].reshape(-1).astype("int64")


def check_labels(labels: NDArray[np.int64], answers: Answers) -> None:
    """Look whether labels are of a model's answers.

    Args:
        labels: in order; inputs that fill no batch may have some more.
        answers: of the model as it came.

    Raises:
        ProgramError: there are more or fewer of them, or they name classes that the model lacks.
    """
    first = [outputs[0] for outputs in answers]
    if not getattr(first[0], "shape", ()):
        raise ProgramError("the model's first output has no rows to be labelled", "Leave the labels out.")
    count, classes = len(_told(answers)), first[0].shape[-1]
    if not count <= len(labels) < count + max(count // len(first), 1):
        raise ProgramError(
            f"there are {len(labels)} labels, and the model gives {count} answers", "Give one for each."
        )
    if labels.max() >= classes or labels.max() < 0:
        what = f"the labels are up to {labels.max()}, and the model tells {classes} classes"
        raise ProgramError(what, "Give whole numbers from 0; those below 0 are left out.")


def accuracy(labels: NDArray[np.int64], answers: Answers) -> float:
    """Give the share of the labels that the largest number of the first output tells."""
    told = _told(answers)
    wanted = labels[: len(told)]
    return float((told == wanted)[wanted >= 0].mean())


def _told(answers: Answers) -> NDArray[Any]:
    import numpy as np

    return np.concatenate([outputs[0].argmax(-1).reshape(-1) for outputs in answers])
