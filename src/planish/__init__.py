"""planish: an autotuner that verifies and measures every candidate on the real machine."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than all this
if TYPE_CHECKING:
    from planish import callbacks, plot
    from planish.einsum.call import einsum, kernel
    from planish.measure.ray_cluster import RayCluster
    from planish.network.compiler import compile  # noqa: A004 (a function of this name is what users look for)
    from planish.store import Store, open_store
    from planish.tuning.api import tune
    from planish.tuning.result import Result, load_run, runs
    from planish.tuning.settings import Budget, Settings
    from planish.tuning.validate import validate

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "RayCluster",
    "Result",
    "Settings",
    "Store",
    "__version__",
    "callbacks",
    "compile",
    "einsum",
    "kernel",
    "load_run",
    "open_store",
    "plot",
    "runs",
    "tune",
    "validate",
]

_LAZY = {
    "Budget": "planish.tuning.settings",
    "compile": "planish.network.compiler",
    "einsum": "planish.einsum.call",
    "kernel": "planish.einsum.call",
    "load_run": "planish.tuning.result",
    "open_store": "planish.store",
    "RayCluster": "planish.measure.ray_cluster",
    "Result": "planish.tuning.result",
    "runs": "planish.tuning.result",
    "Settings": "planish.tuning.settings",
    "Store": "planish.store",
    "tune": "planish.tuning.api",
    "validate": "planish.tuning.validate",
}

_MODULES = ("callbacks", "plot")

_OTHER_NAMES = {
    "create_study": "tune",
    "InferenceSession": "compile",
    "load_study": "load_run",
    "optimize": "tune",
    "tune_kernel": "tune",
    "visualization": "plot",
}
"""Names of other libraries to those of the same here."""


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_MODULES})


if not TYPE_CHECKING:  # a type checker would take any name for one that is there

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return import_module(f"planish.{name}")
        if name not in _LAZY:
            hint = f". Did you mean: '{_OTHER_NAMES[name]}'?" if name in _OTHER_NAMES else ""
            raise AttributeError(f"module 'planish' has no attribute '{name}'{hint}")
        value = globals()[name] = getattr(import_module(_LAZY[name]), name)
        return value


class _Front(ModuleType):
    """Importing `planish.einsum` must not put that package in the place of the function `planish.einsum`."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _LAZY and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Front
