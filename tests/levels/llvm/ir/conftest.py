"""Real IR: what clang makes of C and C++, as fixtures."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from levels.llvm.ir.samples import SOURCES

Compile = Callable[[str], str]

FLAGS = {
    "plain": ("c", "-O0", "-Xclang", "-disable-O0-optnone", "-g0"),
    "debug": ("c", "-O0", "-g"),
    "named": ("c", "-O0", "-fno-discard-value-names"),
    "optimized": ("c", "-O2", "-g"),
    "lifetimes": ("c", "-Oz", "-Xclang", "-disable-llvm-passes"),
    "vectors": ("c", "-O3", "-mavx2"),
    "cxx": ("c++", "-O0", "-g"),
    "cxx-optimized": ("c++", "-O2"),
}


@pytest.fixture(scope="session")
def clang(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Return a function that compiles the sample source, by the name of its flags, to IR's text."""
    program = shutil.which("clang-22")
    if program is None:
        reason = "clang-22 is not installed: apt-get install clang-22"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return _Compiled(program, tmp_path_factory.mktemp("clang"))


@pytest.fixture(params=sorted(FLAGS))
def real(request: pytest.FixtureRequest, clang: Compile) -> str:
    """Return a real module's text, compiled in each of several ways."""
    return clang(request.param)


class _Compiled:
    """Compiles each variant once."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder = program, folder

    def __call__(self, flags: str) -> str:
        output = self._folder / f"{flags}.ll"
        if not output.exists():
            language, *options = FLAGS[flags]
            command = [self._program, *options, "-S", "-emit-llvm", SOURCES[language], "-o", output]
            subprocess.run(command, check=True)
        return output.read_text()
