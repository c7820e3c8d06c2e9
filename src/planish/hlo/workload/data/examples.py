"""Labelled images, read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError

Group = Literal["train", "test"]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Examples:
    """The examples of one group.

    Args:
        labels: whole numbers, from 0.
        images: gives those at some places, in that order: N x height x width (x channels), or flat. Bytes
            are 0 to 255; floats are taken as they are.
    """

    labels: Indices
    images: Callable[[Indices], NDArray[Any]]


def examples_of(images: NDArray[Any], labels: NDArray[Any], where: str) -> Examples:
    """Make examples of arrays in memory.

    Raises:
        ProgramError: there are more images than labels, or fewer; a label is no whole number from 0.
    """
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or len(images) != len(labels):
        what = f"{where} has {len(images)} images and labels of shape {list(labels.shape)}"
        raise ProgramError(what, "Give one label for each image.")
    if labels.dtype.kind not in "biuf" or not _counts(labels):
        raise ProgramError(f"{where} has labels that are no whole numbers from 0", "Number the classes.")
    if images.dtype != np.uint8 and images.dtype.kind != "f":
        raise ProgramError(f"the images of {where} are {images.dtype}", "Give bytes or floats.")
    return Examples(labels.astype(np.int64), lambda places: images[places])


def _counts(labels: NDArray[Any]) -> bool:
    return bool(np.isfinite(labels).all() and (labels % 1 == 0).all() and (labels >= 0).all())
