"""What a training began with, in its folder: where it goes on, that must be the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planish.core import PlanishError
from planish.core.replacing import replace_text

NAME = "course.json"


def require_same(folder: Path, course: Mapping[str, Any]) -> None:
    """Write what a training begins with, or make sure that it goes on with the same.

    Args:
        folder: of the training; is made.
        course: name to value, as JSON has them.

    Raises:
        PlanishError: it began with something else, or what is there cannot be read.
        OSError: it cannot be written.
    """
    path = folder / NAME
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        replace_text(path, json.dumps(course))
        return
    hint = f"Remove {folder} to begin anew, or name another file: --output."
    try:
        before = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise PlanishError(f"cannot read {path}: {error}", hint) from error
    for name, value in course.items():
        if (old := before.get(name)) != value:
            both = isinstance(value, str | float | int) and name != "programs"
            what = f"{name} {old}, and not {value}" if both else f"other {name}"
            raise PlanishError(f"the training that {folder} is of began with {what}", hint)
