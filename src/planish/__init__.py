"""planish: an autotuner that verifies and measures every candidate on the real machine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planish.einsum import einsum
    from planish.result import Result
    from planish.tune import tune

__version__ = "0.1.0"
__all__ = ["Result", "__version__", "einsum", "tune"]

_LAZY = {"einsum": "planish.einsum", "Result": "planish.result", "tune": "planish.tune"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'planish' has no attribute '{name}'")
    return getattr(import_module(_LAZY[name]), name)
