"""Files of a compiled network."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planish.core import PlanishError
from planish.core.files import copy_regular
from planish.network.library.assembly import Built
from planish.network.library.elf import link

# Files


def write_library(built: Built, folder: Path) -> None:
    """Link a library; write `model.so`, its header and its manifest to a folder."""
    parts = link(
        built.sections, built.weights, built.architecture, "model.so", built.exported, stays=built.has_threads
    )
    with (folder / "model.so").open("wb") as file:
        file.writelines(parts)
    (folder / "model.h").write_text(built.header)
    write_manifest(built.manifest, folder)


def write_manifest(manifest: Mapping[str, Any], folder: Path) -> None:
    """Write what a library is beside it."""
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


WRITTEN = ("model.so", "model.h", "manifest.json")
"""The files of a compiled network."""


def check_folder(output: Path) -> None:
    """Raise PlanishError where a folder cannot be made or written, before time is spent on its files."""
    found = next(each for each in (output, *output.absolute().parents) if each.exists())
    if not (found.is_dir() and os.access(found, os.W_OK | os.X_OK)):
        why = "not writable" if found.is_dir() else "not a folder"
        raise PlanishError(
            f"cannot write to '{output}': '{found}' is {why}", "Choose another folder: -o FOLDER."
        )


def write_files(built: Built, made: Path, output: Path) -> list[Path]:
    """Write a library that was made in one folder to another.

    Raises:
        PlanishError: the folder cannot be written.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        write_manifest(built.manifest, made)
        with tempfile.TemporaryDirectory(dir=output, prefix=".planish-") as folder:
            for name in WRITTEN:
                copy_regular(made / name, Path(folder) / name)
            for name in WRITTEN:
                (Path(folder) / name).replace(output / name)
    except OSError as error:
        hint = "Choose another folder: -o FOLDER."
        raise PlanishError(f"cannot write to '{output}': {error.strerror}", hint) from error
    return [output / name for name in WRITTEN]
