"""planish: an autotuner that verifies and measures every candidate on the real machine."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than all this
if TYPE_CHECKING:
    from typing import Any

    from planish import plot
    from planish.core.budget import Budget
    from planish.core.version import __version__
    from planish.einsum import einsum, kernel
    from planish.tuning.api import tune
    from planish.tuning.result import Result
    from planish.tuning.settings import Settings
    from planish.tuning.validate import validate

__all__ = ["Budget", "Result", "Settings", "__version__", "einsum", "kernel", "plot", "tune", "validate"]

_LAZY = {
    "__version__": "planish.core.version",
    "Budget": "planish.core.budget",
    "einsum": "planish.einsum",
    "kernel": "planish.einsum",
    "Result": "planish.tuning.result",
    "Settings": "planish.tuning.settings",
    "tune": "planish.tuning.api",
    "validate": "planish.tuning.validate",
}


def __getattr__(name: str) -> Any:
    if name == "plot":
        return import_module("planish.plot")
    if name not in _LAZY:
        raise AttributeError(f"module 'planish' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return value


class _Front(ModuleType):
    """Importing `planish.einsum` must not put that package in the place of the function `planish.einsum`."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _LAZY and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Front
