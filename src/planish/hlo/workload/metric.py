"""The names of metrics, and what each of them measures: a share of wrong answers, or a loss."""

from __future__ import annotations

import re
from typing import Literal

from planish.core import ProgramError, did_you_mean
from planish.hlo.workload.spec import Workload

LOSSES = ("mse", "cross-entropy", "perplexity")
OUTPUTS = "outputs"
NAMES = ("top-1", "top-5", OUTPUTS, *LOSSES)
"""Any `top-N` is one of them."""

_TOP = re.compile(r"top-([1-9]\d{0,5})")


def compares_outputs(workload: Workload) -> bool:
    """Whether answers are compared with those of the unchanged module, as where no metric is named."""
    return workload.inputs is not None and not workload.code and workload.metric in ("", OUTPUTS)


def measured_as(workload: Workload) -> Literal["error", "loss"]:
    """Name the objective that a workload's metric gives: an error is a share, a loss has no bound."""
    return "loss" if workload.code or workload.metric in LOSSES else "error"


def top_of(metric: str) -> int:
    """Give N of `top-N`, 1 for the metric of no name, else 0."""
    found = _TOP.fullmatch(metric or "top-1")
    return int(found[1]) if found else 0


def check_metric(workload: Workload, where: str) -> None:
    """Raise ProgramError where a workload's metric is unknown, or its data has nothing that it needs."""
    name, calls = workload.metric, workload.inputs is not None
    if workload.code:
        if not name.isidentifier():
            raise ProgramError(
                f"'{name}' is no name of a function", "Write --option metric=FILE.py:FUNCTION."
            )
        return
    if name and name not in NAMES and not top_of(name):
        raise ProgramError(f"the metric of {where} is {name!r}", did_you_mean(name, NAMES))
    if name in (OUTPUTS, "mse") and not calls:
        raise ProgramError(f"the metric '{name}' of {where} scores no images", "Add a section [inputs].")
