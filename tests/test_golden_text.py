"""The golden helper itself: it must fail when texts differ."""

from pathlib import Path

import pytest

from golden_text import Golden


def test_what_was_written_passes_with_or_without_its_last_newline(tmp_path: Path) -> None:
    Golden(update=True, folder=tmp_path).check("deep/a.txt", "one\ntwo")
    Golden(folder=tmp_path).check("deep/a.txt", "one\ntwo\n")
    Golden(folder=tmp_path).check("deep/a.txt", "one\ntwo")


def test_a_different_text_fails(tmp_path: Path) -> None:
    Golden(update=True, folder=tmp_path).check("a.txt", "one")
    with pytest.raises(AssertionError, match=r"a\.txt differs"):
        Golden(folder=tmp_path).check("a.txt", "two")


def test_a_missing_file_fails_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no golden file"):
        Golden(folder=tmp_path).check("a.txt", "one")
    assert not (tmp_path / "a.txt").exists()


def test_the_fixture_compares_unless_asked_to_update(golden: Golden, request: pytest.FixtureRequest) -> None:
    assert golden.update == bool(request.config.getoption("--update-golden"))
