"""Files of the user's own that a list is made of: one that cannot be read hides none of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from planish.cli.output import remark

Loaded = TypeVar("Loaded")


def readable(places: Mapping[str, Path], load: Callable[[Path], Loaded]) -> dict[str, tuple[Path, Loaded]]:
    """Load the files; say on standard error which cannot be read, and why.

    Args:
        places: name to file.
        load: reads one; raises PlanishError where it cannot.

    Returns:
        Name to file and what was read, without those that cannot be.
    """
    from planish.core import PlanishError

    found = dict[str, tuple[Path, Loaded]]()
    for name, path in places.items():
        try:
            found[name] = path, load(path)
        except PlanishError as error:
            remark(f"planish: warning: {name} is left out: {error}")
    return found
