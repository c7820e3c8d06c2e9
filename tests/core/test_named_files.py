"""Files that the user named are found again."""

import os
from pathlib import Path

import pytest

from planish.core import place_of
from planish.core.files import remember

DIGEST = "0123456789abcdef" * 2


@pytest.mark.parametrize("name", [b"weights.npz", b"two\r\nlines", b"no text \xff"])
def test_a_file_is_found_whatever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: bytes
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    remember(DIGEST, tmp_path / os.fsdecode(name))
    # As in the next process, which knows of no file.
    monkeypatch.setattr("planish.core.files._named", dict[str, str]())
    assert place_of(DIGEST) == str(tmp_path / os.fsdecode(name))
