"""Halide's autoscheduler on a matrix multiplication."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

AUTOSCHEDULER = "Adams2019"


@cache
def load() -> Any | None:
    """Import Halide and its autoscheduler; None where it is not installed."""
    try:
        halide: Any = import_module("halide")
    except ImportError as error:
        print(f"Halide is not installed: {error}")
        return None
    name = f"libautoschedule_{AUTOSCHEDULER.lower()}.*"
    halide.load_plugin(str(next(Path(halide.install_dir()).glob(f"lib*/{name}"))))
    return halide


def call(m: int, n: int, k: int, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Callable[[], object] | None:
    """Schedule C = A B by Adams et al. (2019) for this processor and one thread, and compile it.

    The autoscheduler trusts its cost model, with the weights that come with Halide; it measures nothing.

    Args:
        m: rows of A.
        n: columns of B.
        k: columns of A.
        arrays: A, B and C, in float32.

    Returns:
        What computes C; None where Halide is not installed.
    """
    hl = load()
    if hl is None:
        return None
    a, b = _input(hl, "A", m, k), _input(hl, "B", k, n)
    pipeline = hl.Pipeline(_product(hl, a, b, m, n, k))
    target = hl.get_host_target()
    for feature in (hl.TargetFeature.NoAsserts, hl.TargetFeature.NoBoundsQuery):
        target = target.with_feature(feature)
    parameters = hl.AutoschedulerParams(AUTOSCHEDULER)
    parameters.extra = {"parallelism": "1"}
    pipeline.apply_autoscheduler(target, parameters)
    compiled = pipeline.compile_to_callable([hl.Argument(a), hl.Argument(b)], target)
    return partial(compiled, *(hl.Buffer(arrays[name]) for name in "ABC"))


def _input(hl: Any, name: str, rows: int, columns: int) -> Any:
    """Declare a matrix; Halide counts dimensions from the innermost."""
    matrix = hl.ImageParam(hl.Float(32), 2, name)
    _fix(matrix, rows, columns)
    matrix.dim(0).set_estimate(0, columns)
    matrix.dim(1).set_estimate(0, rows)
    return matrix


def _fix(matrix: Any, rows: int, columns: int) -> None:
    matrix.dim(0).set_bounds(0, columns)
    matrix.dim(1).set_bounds(0, rows).set_stride(columns)


def _product(hl: Any, a: Any, b: Any, m: int, n: int, k: int) -> Any:
    i, j, r = hl.Var("i"), hl.Var("j"), hl.RDom([(0, k)])
    total, c = hl.Func("total"), hl.Func("C")
    total[j, i] = hl.f32(0)
    total[j, i] += a[r, i] * b[j, r]
    c[j, i] = total[j, i]
    c.set_estimates([hl.Range(0, n), hl.Range(0, m)])
    _fix(c.output_buffer(), m, n)
    return c
