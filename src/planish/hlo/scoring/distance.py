"""How far outputs are from those of the unchanged module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.hlo.scoring.not_finite import NotFiniteError

ROUNDING = {1: 0.05, 2: 0.02, 4: 1e-5, 8: 1e-12}
"""Bytes of an element to the share up to which floats differ by rounding alone."""


def distance(answers: Sequence[NDArray[Any]], targets: Sequence[NDArray[Any]]) -> float:
    """Give the distance of answers from others, from 0 to 1: that of the result which differs most.

    Of floats it is the length of the difference as a share of the length of the other, 1 at most, and the
    mean over the examples; a difference up to rounding is 0. An example with a number that is not finite,
    where the other's is, is 1. Of whole numbers and truth values it is the share that differ.

    Args:
        answers: an array for each result, examples first.
        targets: of the same shapes.

    Raises:
        NotFiniteError: no example is finite where the other is.
    """
    return float(f"{max((_one(a, t) for a, t in zip(answers, targets, strict=True)), default=0.0):.6g}")


def _one(answer: NDArray[Any], target: NDArray[Any]) -> float:
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
        raise NotFiniteError("no output of the unchanged module is finite: give other inputs with --data")
    a, t = (np.where(known & whole[:, None], each, 0.0) for each in (a, t))
    off, size = np.linalg.norm(a - t, axis=1), np.linalg.norm(t, axis=1)
    # One at most, so that a single wild example does not outweigh all others.
    share = np.minimum(off / np.maximum(size, np.finfo(np.float64).tiny), 1.0)
    # By the type of the unchanged module's result: what compilers reorder is no error of a patch.
    share[share <= ROUNDING[target.dtype.itemsize]] = 0.0
    share[~whole] = 1.0
    return float(share.mean())
