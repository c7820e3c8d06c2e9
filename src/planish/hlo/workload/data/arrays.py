"""npz files: arrays `images` and `labels`, or `x_train`, `y_train`, `x_test`, `y_test` as Keras has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from planish.core import ProgramError
from planish.core.damaged_files import DAMAGED, why
from planish.core.regular_files import check_regular
from planish.hlo.workload.data.examples import Examples, Group, examples_of

_NAMES = {
    "train": (("images", "labels"), ("x_train", "y_train")),
    "test": (("test_images", "test_labels"), ("x_test", "y_test")),
}


def open_group(path: Path, group: Group) -> Examples | None:
    """Read a group from a file, or from the first file of a folder; None where it is not there."""
    file = next(iter(sorted(path.glob("*.npz"))), None) if path.is_dir() else path
    if file is None or file.suffix != ".npz":
        return None
    try:
        check_regular(file)
        with np.load(file, allow_pickle=False) as found:
            for images, labels in _NAMES[group]:
                if images in found and labels in found:
                    return examples_of(found[images], found[labels], f"'{file}' ({group})")
    except DAMAGED as error:
        raise ProgramError(f"cannot read '{file}': {why(error)}", "Write it with numpy.savez.") from error
    if group == "train":
        raise ProgramError(f"'{file}' lacks the arrays 'images' and 'labels'", "Write it with numpy.savez.")
    return None
