"""Models and policies, which lie in files: found by name, copied and removed."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from planish.cli.errors import writing


def place_of(what: str, name: str, places: Mapping[str, Path], suffixes: Collection[str]) -> Path:
    """Find a file by the name that is listed, or by its path.

    Args:
        what: it is: "model".
        name: as the user wrote it.
        places: name to file.
        suffixes: of such files.

    Raises:
        PlanishError: there is none of that name.
    """
    from planish.core import unknown

    if name in places:
        return places[name]
    if Path(name).suffix in suffixes:
        return Path(name)
    raise unknown(f"unknown {what}", name, places)


def copy(path: Path, file: Path) -> None:
    """Copy a file, as a whole or not at all, and say so; raises PlanishError where it cannot be written."""
    from planish.cli.output import say
    from planish.core.files import replacing

    with writing(file), replacing(file) as part:
        shutil.copyfile(path, part)
    say(f"wrote {file}")


def remove_own(what: str, path: Path, folder: Path, hint: str) -> None:
    """Remove a file of the user's own, and say so.

    Args:
        what: it is: "the model loops".
        path: the file.
        folder: of the user's own.
        hint: tells what there is.

    Raises:
        PlanishError: it is none of the user's own, or cannot be removed.
    """
    from planish.cli.output import say
    from planish.core import PlanishError

    if path.parent != folder:
        raise PlanishError(f"{what} is none of your own", hint)
    try:
        path.unlink()
    except OSError as error:
        raise PlanishError(
            f"cannot remove {path}: {error.strerror}", "See who may change its folder."
        ) from error
    say(f"removed {path}")
