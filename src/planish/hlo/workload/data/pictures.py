"""Images by class: `train/cat/1.jpg`, in folders or in `train.tar`; Pillow decodes those that are needed."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError, TargetError
from planish.core.regular_files import read_regular
from planish.hlo.workload.data.examples import Examples, Group, Indices

SUFFIXES = (".jpg", ".jpeg", ".png")
_TARS = (".tar", ".tar.gz", ".tgz")


def open_group(folder: Path, group: Group) -> Examples | None:
    """List the images of a group; None where there are none. The class is the name of the folder above."""
    if (folder / group).is_dir():
        found = sorted(path for path in (folder / group).glob("*/*") if path.suffix.lower() in SUFFIXES)
        names = [f"{path.parent.name}/{path.name}" for path in found]

        def read(places: Sequence[int]) -> Iterator[bytes]:
            return (read_regular(found[place]) for place in places)

        return _examples(names, read, f"'{folder / group}'")
    for suffix in _TARS:
        path = folder / f"{group}{suffix}"
        if path.is_file():
            return _of_tar(path)
    return None


def _of_tar(path: Path) -> Examples:
    try:
        with tarfile.open(path) as content:
            members = [m for m in content.getmembers() if m.isfile() and m.name.lower().endswith(SUFFIXES)]
    except (OSError, tarfile.TarError) as error:
        raise ProgramError(f"cannot read '{path}': {error}", "Fetch it again.") from error
    members.sort(key=lambda member: member.name)

    def read(places: Sequence[int]) -> Iterator[bytes]:
        with tarfile.open(path) as content:
            for place in places:
                file = content.extractfile(members[place])
                assert file is not None
                yield file.read()

    return _examples([member.name for member in members], read, f"'{path}'")


def _examples(names: Sequence[str], read: Callable[[Sequence[int]], Iterator[bytes]], where: str) -> Examples:
    if not names:
        raise ProgramError(f"{where} has no images in folders", f"They end with {', '.join(SUFFIXES)}.")
    classes = [PurePosixPath(name).parent.name for name in names]
    numbers = {name: number for number, name in enumerate(sorted(set(classes)))}
    labels = np.array([numbers[name] for name in classes], np.int64)

    def images(indices: Indices) -> NDArray[Any]:
        places: list[int] = indices.tolist()
        contents = zip(read(places), places, strict=True)
        decoded = [_decoded(data, names[place], where) for data, place in contents]
        shapes = {image.shape for image in decoded}
        if len(shapes) > 1:
            raise ProgramError(f"the images of {where} have several sizes: {sorted(shapes)}", "Resize them.")
        return np.stack(decoded)

    return Examples(labels, images)


def _decoded(data: bytes, name: str, where: str) -> NDArray[np.uint8]:
    try:
        from PIL import Image
    except ImportError as error:
        raise TargetError("images need Pillow", "Install it with: pip install pillow") from error
    try:
        with Image.open(io.BytesIO(data)) as image:
            return np.asarray(image if image.mode == "L" else image.convert("RGB"), np.uint8)
    except OSError as error:
        raise ProgramError(f"'{name}' of {where} is no image: {error}", "Remove it.") from error
