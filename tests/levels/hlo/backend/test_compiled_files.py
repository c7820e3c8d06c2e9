"""What one process compiled another one reads; a damaged, full or missing folder only costs time."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from levels.hlo.modules import SUM
from planish.levels.hlo import program_from
from planish.levels.hlo.backend import CompiledFiles, open_backend
from planish.levels.hlo.ir.normal import entry_text
from planish.levels.hlo.patch import original

DRAFT = original(program_from(SUM))
TEXT = entry_text(DRAFT.root, DRAFT.function)


def answers(kept: CompiledFiles | None) -> list[bytes]:
    backend = open_backend("xla", files=kept)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    held = [backend.put(x), backend.put(np.array(3, np.int32))]
    return [backend.get(each).tobytes() for each in backend.compile(TEXT)(held)]


def files(kept: CompiledFiles) -> list[Path]:
    return sorted(kept.folder.glob("*.xla"))


def test_what_was_compiled_is_read_and_gives_the_same_answers() -> None:
    kept = CompiledFiles()
    assert answers(kept) == answers(None)
    before = [each.stat().st_mtime_ns for each in files(kept)]
    assert before
    assert answers(kept) == answers(None)
    assert [each.stat().st_mtime_ns for each in files(kept)] == before, "nothing is compiled again"


def test_other_cores_are_other_code() -> None:
    kept = CompiledFiles()
    answers(kept)
    assert kept.find(TEXT, 1) is not None
    assert kept.find(TEXT, 2) is None


@pytest.mark.parametrize("length", [0, 20, 1000])
def test_a_file_that_is_cut_off_is_compiled_anew(length: int) -> None:
    kept = CompiledFiles()
    answers(kept)
    for file in files(kept):
        file.write_bytes(file.read_bytes()[:length])
    assert answers(kept) == answers(None)


def test_a_folder_that_is_gone_keeps_nothing() -> None:
    kept = CompiledFiles()
    shutil.rmtree(kept.folder)
    assert answers(kept) == answers(None)
    assert kept.find(TEXT, 1) is None


def test_the_oldest_goes_where_there_is_no_room() -> None:
    kept = CompiledFiles(room=76)
    for number, text in enumerate("abc"):
        kept.keep(text, 1, b"1234")
        assert len(files(kept)) == min(2, number + 1)
    assert kept.find("c", 1) == b"1234"
