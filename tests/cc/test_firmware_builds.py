"""The settings of build systems that the page on microcontrollers has: each builds firmware that runs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from cc.conftest import EXPECTED, Place
from fuzz_cc import TARGETS, clang_link_words, run_program

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "microcontrollers.md"
TARGET = next(target for target in TARGETS if target.name == "thumbv7em")
SCRIPTS = Path(sys.executable).parent


def blocks(title: str, language: str) -> str:
    """Return the code that the page shows in a language under a title, one block after another."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    found = section.split(f"```{language}\n")[1:]
    assert found
    return "\n".join(each.partition("```")[0] for each in found)


@pytest.fixture
def linked(place: Place, tmp_path: Path) -> str:
    """Have planish on PATH; return the words by which the firmware is linked, quoted and with commas."""
    has_lld = shutil.which("ld.lld") or shutil.which("ld.lld-22")
    if TARGET.missing or not has_lld or not (SCRIPTS / "planish-cc").exists():
        pytest.skip(f"{TARGET.missing or 'lld, or an installed planish'} is not here")
    place.environment |= {"PATH": f"{SCRIPTS}:{os.environ['PATH']}", "PLANISH_EVALUATIONS": "30"}
    place.environment["PLANISH_SECONDS"] = ""
    return ", ".join(f"'{word}'" for word in clang_link_words(TARGET, tmp_path))


def build(place: Place, commands: str, program: str) -> None:
    """Run the commands of the page; what they build runs, and was searched when it was linked."""
    done = place.run(["bash", "-ec", commands])
    assert done.returncode == 0, done.stdout + done.stderr
    assert EXPECTED.strip() in run_program(TARGET, place.folder / program)
    reported = place.run(["planish", "report", ".", "--format", "json"])
    assert program.rpartition("/")[2] in reported.stdout


@pytest.mark.slow
def test_cmake(place: Place, linked: str) -> None:
    if not shutil.which("cmake"):
        pytest.skip("cmake is not here")
    place.write("toolchain.cmake", blocks("CMake", "cmake"))
    words = linked.replace("', '", " ").strip("'")
    place.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.13)\nproject(trial C)\nadd_library(mixed STATIC mixed.c)\n"
        f"add_executable(firmware main.c)\ntarget_link_libraries(firmware mixed {words})\n",
    )
    build(place, blocks("CMake", "sh"), "build/firmware")


@pytest.mark.slow
@pytest.mark.parametrize("where", ["here", "microcontroller"])
def test_meson(place: Place, linked: str, where: str) -> None:
    if not shutil.which("meson", path=place.environment["PATH"]) or not shutil.which("ninja"):
        pytest.skip("meson is not here")
    native, _, cross = blocks("Meson", "sh").partition("\n\n")
    words = linked if where == "microcontroller" else ""
    place.write(
        "meson.build",
        f"project('t', 'c')\nexecutable('firmware', 'main.c', 'mixed.c', link_args: [{words}])\n",
    )
    if where == "microcontroller":
        place.write("cortex-m4.ini", blocks("Meson", "ini"))
        build(place, cross, "build/firmware")
        return
    done = place.run(["bash", "-ec", native])
    assert done.returncode == 0, done.stdout + done.stderr
    assert place.run(["build/firmware"]).stdout == EXPECTED


@pytest.mark.slow
def test_scons(place: Place, linked: str) -> None:
    if not shutil.which("scons", path=place.environment["PATH"]):
        pytest.skip("scons is not here")
    place.write("use_planish.py", blocks("PlatformIO and other builds by SCons", "text"))
    headers = "/usr/lib/picolibc/arm-none-eabi/include"
    place.write(
        "SConstruct",
        f"import os\nenv = Environment(ENV=os.environ, CCFLAGS=['-isystem', '{headers}', '-fshort-enums'])\n"
        "Export('env')\nSConscript('use_planish.py')\n"
        f"env.Program('firmware', ['main.c', 'mixed.c'], _LIBFLAGS=' '.join([{linked}]))\n",
    )
    build(place, "scons -Q", "firmware")
