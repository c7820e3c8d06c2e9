"""What is said of files of arrays that cannot be read."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from planish.core.files import DAMAGED, why

CONTENTS = {
    "missing": (None, "No such file or directory"),
    "text": (b"no arrays\n", "it is no file of arrays"),
    "pickled": (pickle.dumps([1, 2]), "it is no file of arrays"),
    "empty": (b"", "No data left in file"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_what_is_wrong_is_said_to_people(name: str, tmp_path: Path) -> None:
    content, said = CONTENTS[name]
    path = tmp_path / "a.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DAMAGED) as raised, path.open("rb") as file:
        np.load(file, allow_pickle=False)
    assert why(raised.value) == said


def test_an_array_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.zeros(2))
    with pytest.raises(KeyError) as raised, np.load(path) as held:
        _ = held["y"]
    assert "it lacks" in why(raised.value)
