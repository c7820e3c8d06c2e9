"""Does a workload suit a module? And what the module is called with first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError
from planish.hlo.ir import TensorType
from planish.hlo.program import Program
from planish.hlo.scoring.metrics import check_targets
from planish.hlo.workload import Parts, Workload, WorkloadCalls, first_parameters, fit, labels_as
from planish.hlo.workload.metric import compares_outputs, top_of


def check_suits(program: Program, workload: Workload) -> None:
    """Look whether a module can be run and scored, so that no worker tells it once a run is stored.

    Raises:
        ProgramError: an array is missing or does not fit, or the metric scores other answers.
    """
    if workload.inputs is None:
        fitted = fit(program, workload)
        first_parameters(workload, fitted.evolved)
        if workload.metric and top_of(workload.metric) >= fitted.classes:
            raise ProgramError(
                f"'{workload.metric}' of {fitted.classes} classes is never wrong", "Take fewer."
            )
        return
    calls = WorkloadCalls(program, workload)
    shape, targets = calls.answer_shape("search"), calls.targets("search")
    if targets is not None:
        check_targets(workload, shape, targets)
    elif not (workload.code or compares_outputs(workload)):
        what = f"the metric '{workload.metric}' needs targets, and the data has none"
        raise ProgramError(what, "Add an array 'targets' to the file of --data.")


def first_call(program: Program, workload: Workload) -> tuple[tuple[TensorType, ...], list[NDArray[Any]]]:
    """Give the types of a function's arguments, and arrays for them, of the search's first examples."""
    if workload.inputs is not None:
        calls = WorkloadCalls(program, workload)
        found = calls.fixed | calls.of("search")[0]
        return calls.takes.arguments, [found[place] for place in range(len(found))]
    fitted = fit(program, workload)
    call = fitted.evolved
    examples = Parts(workload, fitted).read("search", call)
    # Fewer examples than a batch has are repeated.
    places = np.arange(call.batch) % len(examples.labels)
    arrays: dict[int, NDArray[Any]] = dict(
        zip(call.parameters, first_parameters(workload, call), strict=True)
    )
    arrays[call.images] = examples.images[places]
    if call.labels is not None:
        arrays[call.labels] = labels_as(examples.labels[places], call.arguments[call.labels])
    return call.arguments, [arrays[place] for place in range(len(call.arguments))]
