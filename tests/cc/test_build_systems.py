"""Build systems take `planish cc` for clang, outside a tree that is read-only and has spaces in its name."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from cc.conftest import EXPECTED, SMALLER, Place, text

SCRIPTS = Path(sys.executable).parent
SAYS = """
#include <cstdio>
extern "C" int mixed(const unsigned char *, int);
extern "C" int answer(void);
int main() { std::printf("%d\\n", mixed((const unsigned char *)"iaeou", answer())); }
"""
ANSWER = '.globl answer\nanswer: movl $5, %eax\n ret\n.section .note.GNU-stack,"",@progbits\n'
CMAKE = """
cmake_minimum_required(VERSION 3.13)
project(trial C CXX ASM)
add_library(mixed STATIC mixed.c answer.S)
add_executable(says says.cpp)
target_link_libraries(says mixed)
"""
MAKEFILE = """
program: mixed.o says.o answer.o
\t$(CXX) $^ -o $@
%.o: $(SOURCES)/%.c
\t$(CC) $(CFLAGS) -MD -c '$<' -o $@
%.o: $(SOURCES)/%.cpp
\t$(CXX) $(CFLAGS) -c '$<' -o $@
%.o: $(SOURCES)/%.S
\t$(CC) -c '$<' -o $@
"""


@pytest.fixture
def sources(place: Place, tmp_path: Path) -> Path:
    """Have a tree that nobody may write to, beside the folder that is built in, and our scripts on PATH."""
    if not (SCRIPTS / "planish-cc").exists():
        pytest.skip("planish is not installed")
    place.environment["PATH"] = f"{SCRIPTS}:{os.environ['PATH']}"
    tree = tmp_path / "the source 源 ü"
    tree.mkdir()
    written = {"mixed.c": SMALLER, "says.cpp": SAYS, "answer.S": ANSWER, "CMakeLists.txt": CMAKE}
    for name, content in written.items():
        (tree / name).write_text(content)
    tree.chmod(0o555)
    return tree


def test_cmake(place: Place, sources: Path) -> None:
    if shutil.which("cmake") is None or shutil.which("make") is None:
        pytest.skip("no cmake")
    compilers = ("-DCMAKE_C_COMPILER=planish-cc", "-DCMAKE_CXX_COMPILER=planish-c++")
    begun = place.run(["cmake", "-S", str(sources), *compilers, "-DCMAKE_BUILD_TYPE=MinSizeRel"])
    assert begun.returncode == 0, begun.stdout + begun.stderr
    assert "compiler identification is Clang" in begun.stdout
    built = place.run(["cmake", "--build", "."])
    assert built.returncode == 0, built.stdout + built.stderr
    assert "planish" not in built.stderr
    assert place.run(["./says"]).stdout == EXPECTED
    assert len(list(sources.iterdir())) == 4
    reported = place.run(["planish", "report", ".", "--format", "json"])
    assert {name for name in ("mixed.c", "says.cpp", "answer.S") if name in reported.stdout} == {
        *("mixed.c", "says.cpp")
    }


def test_make(place: Place, sources: Path) -> None:
    place.write("Makefile", MAKEFILE)
    (place.folder.parent / "sources").symlink_to(sources)  # make takes no spaces in what it depends on
    compilers = ("CC=planish cc", "CXX=planish c++")
    built = place.run(["make", "-j2", *compilers, "CFLAGS=-Oz", "SOURCES=../sources"])
    assert (built.returncode, built.stderr) == (0, "")
    assert place.run(["./program"]).stdout == EXPECTED
    place.as_clang("-Oz", "-c", "../sources/mixed.c", "-o", "clang.o")
    assert text(place.folder / "mixed.o") <= text(place.folder / "clang.o")
    assert "mixed.c" in (place.folder / "mixed.d").read_text()
