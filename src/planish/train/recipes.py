"""Recipes of what is made over several runs of a command, which an interrupted run must not change."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planish.core import PlanishError
from planish.core.files import replace_text

RECIPE = "recipe.json"


def require_same(path: Path, recipe: Mapping[str, Any], what: str) -> None:
    """Write a recipe, or compare it with the one that is there.

    Args:
        path: of the recipe, in a folder that is there.
        recipe: name to value, as JSON has them.
        what: what the recipe is of, for errors: "the labels in FOLDER".

    Raises:
        PlanishError: the recipe that is there has another value, or cannot be read.
        OSError: it cannot be written.
    """
    if not path.is_file():
        replace_text(path, json.dumps(recipe, indent=1))
        return
    hint = f"Remove {path.parent}, or use another folder."
    try:
        before: dict[str, Any] = dict(json.loads(path.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise PlanishError(f"cannot read {path}: {error}", hint) from error
    for name, value in recipe.items():
        if (old := before.get(name)) != value:
            short = isinstance(value, str | float | int)
            differing = f"{name} {old}, and not {value}" if short else f"other {name}"
            raise PlanishError(f"{what} began with {differing}", hint)
