"""Times below the roofline are refused, and the peak is measured for these alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest

from planish.core import Failed, Measured, Stage, Task
from planish.levels.loops.backends import this_machine
from planish.levels.loops.evaluator import LoopsEvaluator
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.reference.numpy_baseline import numpy_callable
from planish.levels.loops.roofline import MARGIN, DeviceRoofline, Roofline, least_work
from planish.levels.loops.workloads import matmul

LEVEL = LoopsLevel()
Library = Callable[[Program, Mapping[str, Any]], Callable[[], object]]


def no_clock(stage: Stage) -> AbstractContextManager[None]:
    del stage
    return nullcontext()


def outcome_of(program: Program, library: Library = numpy_callable) -> Measured | Failed:
    """Evaluate the baseline."""
    task = Task(program, this_machine(1), (LEVEL.objectives["time_s"],), LEVEL.version)
    outcome = LoopsEvaluator(task.program, task.target, library=library).evaluate(
        LEVEL.baseline(task), no_clock
    )
    assert isinstance(outcome, Measured | Failed)
    return outcome


def test_what_computes_only_where_inputs_are_new_is_refused() -> None:
    def lazy(_: Program, arrays: Mapping[str, Any]) -> Callable[[], object]:
        known = np.nan

        def call() -> None:
            nonlocal known
            if known != arrays["A"][0, 0] or arrays["C"][0, 0] != arrays["C"][0, 0]:
                np.matmul(arrays["A"], arrays["B"], out=arrays["C"])
                known = arrays["A"][0, 0]

        return call

    program = matmul(512, 512, 512)
    assert isinstance(outcome_of(program), Measured)
    outcome = outcome_of(program, lazy)
    assert isinstance(outcome, Failed)
    assert (outcome.stage, outcome.reason) == ("run", "faster than the machine")
    assert "the timed calls did not do their work" in outcome.detail


@pytest.mark.parametrize(
    ("text", "sizes", "dtype", "work"),
    [
        ("C[m,n] += A[m,k] * B[k,n]", {"m": 6, "n": 5, "k": 400}, "float32", 2 * 6 * 5 * 400),
        ("C[m,n] += A[m,k] * B[k,n]", {"m": 6, "n": 5, "k": 400}, "int8", 2 * 6 * 5 * 400 / 4),
        ("C[i] = A[i] + B[i]", {"i": 60}, "float64", 3 * 60 * 8 / 6),
        ("C[i] = A[2*i]", {"i": 60}, "float32", 60 * 4 / 6),  # only every other element is read
        ("C[i,j] += exp(A[i,k]) * B[k]", {"i": 3, "j": 50, "k": 9}, "float32", None),  # all columns are equal
        ("C[i,j] += A[i,k] * B[k]", {"i": 3, "j": 50, "k": 90}, "float32", None),
        ("C[i] += A[i,k] * B[i]", {"i": 3, "k": 9}, "float32", None),  # a factor can be taken out of the sum
    ],
)
def test_only_work_that_cannot_be_left_out_counts(
    text: str, sizes: dict[str, int], dtype: str, work: float | None
) -> None:
    program = parse(text, sizes, dtype=dtype)
    whole = sum(program.type[name].size * 4 for name in (*program.inputs, *program.outputs)) / 6
    assert least_work(program) == pytest.approx(whole if work is None else work)


def test_a_peak_is_measured_only_where_a_time_is_short() -> None:
    asked = list[str]()

    def peak(name: str, gflops: float) -> Callable[[str, str], float]:
        return lambda _, dtype: asked.append(f"{name} {dtype}") or gflops

    waits = list[Stage]()

    def clock(stage: Stage) -> AbstractContextManager[None]:
        waits.append(stage)
        return nullcontext()

    made = Roofline(matmul(100, 100, 100), 2, [peak("quick", 50.0), peak("thorough", 100.0)])
    at_peak = 2e6 / 100e9 / 2
    assert made.refuses(1.0, clock) is None
    assert asked == [] == waits
    assert made.refuses(2 * at_peak, clock) is None
    assert asked == ["quick float32"]
    assert waits == ["run"]
    assert made.refuses(1.01 * at_peak / MARGIN, clock) is None
    assert "thorough float32" in asked
    assert "takes" in (made.refuses(0.99 * at_peak / MARGIN, clock) or "")


@pytest.mark.parametrize(
    ("program", "least"),
    [
        (matmul(100, 100, 100), 2e6 / 50e9),
        (parse("C[i] = exp(A[i]) + B[2*i]", {"i": 3000}), 4 * 3000 / 10e9),  # all of A, and half of B
    ],
)
def test_a_devices_peaks_bound_arithmetic_and_what_is_read(program: Program, least: float) -> None:
    made = DeviceRoofline(program, gflops=50, bandwidth=10)
    assert made.refuses(1.01 * least / MARGIN, no_clock) is None
    assert "takes" in (made.refuses(0.99 * least / MARGIN, no_clock) or "")
