"""clang's configuration files: what they say is part of what an object is known by."""

from __future__ import annotations

from pathlib import Path

import pytest

from cc.conftest import Place
from planish.levels.llvm.backend.elf import sections


@pytest.fixture
def folder(place: Place) -> Path:
    """Have clang look for its configuration in a folder."""
    folder = place.folder.parent / "configuration"
    folder.mkdir()
    clang = " ".join([*place.clang.command, f"--config-user-dir={folder}"])
    place.environment["PLANISH_CLANG"] = clang
    return folder


def has_sections_of_functions(place: Place) -> bool:
    done = place.cc("-Oz", "-c", "mixed.c")
    assert (done.returncode, done.stderr) == (0, "")
    return ".text.mixed" in {section.name for section in sections((place.folder / "mixed.o").read_bytes())}


def test_another_configuration_is_another_compilation(place: Place, folder: Path) -> None:
    assert not has_sections_of_functions(place)
    (folder / "clang.cfg").write_text("-ffunction-sections\n")
    assert has_sections_of_functions(place)
    (folder / "clang.cfg").write_text("\n")
    assert not has_sections_of_functions(place)


def test_a_configuration_may_name_files(place: Place, folder: Path) -> None:
    (folder / "clang.cfg").write_text("# what all need\n@more.txt\n")
    (folder / "more.txt").write_text("-g0\n")
    assert not has_sections_of_functions(place)
    (folder / "more.txt").write_text("-ffunction-sections\n")
    assert has_sections_of_functions(place)


@pytest.mark.parametrize("option", ["--config=./given.cfg", "--config ./given.cfg"])
def test_what_the_command_line_names_is_left_to_clang(place: Place, option: str) -> None:
    for said, expected in (("-fno-function-sections", False), ("-ffunction-sections", True)):
        place.write("given.cfg", said)
        done = place.cc(*option.split(), "-Oz", "-c", "mixed.c")
        assert (done.returncode, done.stderr) == (0, "")
        names = {section.name for section in sections((place.folder / "mixed.o").read_bytes())}
        assert (".text.mixed" in names) == expected
