"""Element types of StableHLO as those of NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from planish.core import ProgramError

_TYPES: dict[str, Any] = {
    "i1": np.bool_,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
}


def numpy_type(element: str) -> np.dtype[Any]:
    """Give NumPy's type; raises ProgramError where it has none that arrays are exchanged in."""
    if element not in _TYPES:
        raise ProgramError(
            f"arguments and results of type {element} are not supported", f"Known: {', '.join(_TYPES)}."
        )
    return np.dtype(_TYPES[element])
