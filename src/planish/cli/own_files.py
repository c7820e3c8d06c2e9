"""Files of models and policies: found by name, read, copied and removed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TypeVar

from planish.cli.output import remark, writing
from planish.core.arguments import as_options

Loaded = TypeVar("Loaded")


def readable(files: Mapping[str, Path], load: Callable[[Path], Loaded]) -> dict[str, tuple[Path, Loaded]]:
    """Load the files; say on standard error which cannot be read, and why.

    Args:
        files: name to file.
        load: reads one; raises PlanishError where it cannot.

    Returns:
        Name to file and what was read, without those that cannot be.
    """
    from planish.core import PlanishError

    found = dict[str, tuple[Path, Loaded]]()
    for name, path in files.items():
        try:
            found[name] = path, load(path)
        except PlanishError as error:
            remark(f"planish: warning: {name} is skipped: {as_options(str(error))}")
    return found


def file_of(what: str, name: str, files: Mapping[str, Path], suffixes: Collection[str]) -> Path:
    """Find a file by the name that is listed, or by its path.

    Args:
        what: it is: "model".
        name: as the user wrote it.
        files: name to file.
        suffixes: of such files.

    Raises:
        PlanishError: there is none of that name.
    """
    from planish.core import unknown

    if name in files:
        return files[name]
    if Path(name).suffix in suffixes:
        return Path(name)
    raise unknown(f"unknown {what}", name, files)


def show_written(
    path: Path,
    trained_on: tuple[str, str],
    metrics: Mapping[str, float],
    document: Mapping[str, object],
    form: str,
) -> None:
    """Report a file that was written.

    Args:
        path: the file.
        trained_on: what is counted, and the count.
        metrics: name to value.
        document: what is printed as JSON.
        form: "json" or "text".
    """
    from planish.cli import output

    if form == "json":
        output.document(document)
        return
    name, count = trained_on
    values = {name: f"{value:.3g}" for name, value in metrics.items()}
    output.facts({"wrote": str(path), name: count, **values})


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
        hint: lists what there is.

    Raises:
        PlanishError: it is not one of the user's own, or cannot be removed.
    """
    from planish.cli.output import say
    from planish.core import PlanishError

    if path.parent != folder:
        raise PlanishError(f"{what} is not one of your own", hint)
    try:
        path.unlink()
    except OSError as error:
        raise PlanishError(
            f"cannot remove {path}: {error.strerror}", "Check the permissions of its folder."
        ) from error
    say(f"removed {path}")
