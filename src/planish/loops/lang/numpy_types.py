"""NumPy's types of elements, among them those that it has from a library."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def numpy_type(dtype: str) -> np.dtype[Any]:
    """Give the NumPy type of an element type; that of bfloat16 is the library `ml_dtypes`' own."""
    if dtype == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(dtype)
