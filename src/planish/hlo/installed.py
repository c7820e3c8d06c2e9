"""Which compilers are installed; asked without loading any."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from planish.core import TargetError, unknown

BACKENDS = ("xla", "iree")

_PACKAGES = {"xla": ("jaxlib",), "iree": ("iree-base-compiler", "iree-base-runtime")}
_FLAGS = {"xla": "XLA_FLAGS"}


def versions(name: str = "") -> Mapping[str, str]:
    """Give what decides the code that a back end makes: its name, versions, and flags of the environment.

    Args:
        name: one of `BACKENDS`; empty for the first.

    Raises:
        PlanishError: there is none of this name.
        TargetError: it is not installed.
    """
    chosen = name or BACKENDS[0]
    if chosen not in BACKENDS:
        raise unknown("level 'hlo' has no back end", chosen, BACKENDS)
    packages = _PACKAGES[chosen]
    try:
        found = {package: version(package) for package in packages}
    except PackageNotFoundError as error:
        raise TargetError(
            f"the back end '{chosen}' is not installed", f"Install it with: pip install {' '.join(packages)}"
        ) from error
    flags = os.environ.get(_FLAGS.get(chosen, ""), "")
    # XLA's flags change the code that it makes: what was measured with others does not count here.
    return {"backend": chosen, **found, **({"flags": flags} if flags else {})}
