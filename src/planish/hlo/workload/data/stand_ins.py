"""Examples for machines without data: scikit-learn's digits, or made ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import TargetError
from planish.hlo.workload.data.examples import Examples, examples_of

COUNT = 8000
_LIT = 0.15
_MIXED = 0.55
_NOISE = 0.15


def made(shape: Sequence[int], classes: int) -> Examples:
    """Make examples, always the same: each is its class's pattern, mixed with that of another class.

    A tenth of them is more of the other class than of its own, so that no model has an error of 0.

    Args:
        shape: of an image.
        classes: how many.
    """
    rng = np.random.default_rng(0)
    size = math.prod(shape)
    patterns = (rng.random((classes, size)) < _LIT).astype(np.float32)
    labels, others = rng.integers(0, classes, (2, COUNT))
    share = rng.uniform(0, _MIXED, (COUNT, 1)).astype(np.float32)
    pixels = (1 - share) * patterns[labels] + share * patterns[others]
    pixels += np.float32(_NOISE) * rng.standard_normal((COUNT, size), np.float32)
    images = (np.clip(pixels, 0, 1) * 255).astype(np.uint8).reshape(COUNT, *shape)
    return examples_of(images, labels, "the made data")


def digits(shape: Sequence[int], classes: int) -> Examples:
    """Give scikit-learn's 1797 digits of 8 x 8, enlarged.

    Args:
        shape: of an image: flat, height x width, or with channels first or last.
        classes: how many; digits from this number on are left out.

    Raises:
        TargetError: scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits  # type: ignore[import-not-found]
    except ImportError as error:
        raise TargetError(
            "the digits need scikit-learn", "Install it with: pip install scikit-learn"
        ) from error
    found: Any = load_digits()
    known = found.target < classes
    images = np.clip(found.images[known] * 16, 0, 255).astype(np.uint8)
    return examples_of(_enlarged(images, tuple(shape)), found.target[known], "the digits")


def _enlarged(images: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Repeat the pixels until the images have a shape."""
    if len(shape) == 1:
        side = math.isqrt(shape[0])
        flat = _resized(images, side, side).reshape(len(images), -1)
        return np.pad(flat, ((0, 0), (0, shape[0] - flat.shape[1])))
    if len(shape) == 2:
        return _resized(images, *shape)
    if shape[0] < shape[2]:
        return np.repeat(_resized(images, *shape[1:])[:, None], shape[0], axis=1)
    return np.repeat(_resized(images, *shape[:2])[..., None], shape[2], axis=3)


def _resized(images: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    rows, columns = (np.arange(n) * 8 // n for n in (height, width))
    return images[:, rows][:, :, columns]
