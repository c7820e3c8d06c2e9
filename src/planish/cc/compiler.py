"""Which clang compiles."""

from __future__ import annotations

import os

VARIABLE = "PLANISH_CLANG"
MAJOR = 22
"""The LLVM that is looked for first: that of the libraries which planish is tested with."""
_NAMES = (f"clang-{MAJOR}", "clang", *(f"clang-{major}" for major in range(MAJOR - 1, 16, -1)))


class Compiler:
    """A clang.

    Attributes:
        command: the program, and what it always needs: to be a C++ compiler, for instance.
        path: the program's path.
        installation: names the version of its libraries, and what its configuration files say.
    """

    __slots__ = ("command", "installation", "path")

    def __init__(self, path: str, more: list[str]) -> None:
        self.path, self.command, self.installation = path, [path, *more], ""

    @property
    def identity(self) -> str:
        """What tells it from another one, and from what it was before an upgrade or with other options."""
        found = os.stat(self.path)
        program = f"{os.path.realpath(self.path)}\n{found.st_size}\n{found.st_mtime_ns}"
        return f"{program}\n{self.command[1:]}{self.installation}"

    def replace_process(self, words: list[str]) -> None:
        """Become clang: its exit code, its signals and its output are this process's then.

        Raises:
            OSError: it does not start.
        """
        os.execv(self.path, [*self.command, *words])


def find_compiler(*, plus: bool) -> Compiler | None:
    """Find the clang that PLANISH_CLANG names, else one on PATH, planish's LLVM first; None: there is none.

    Args:
        plus: whether it shall compile and link C++.
    """
    mode = ["--driver-mode=g++"] if plus else []
    if given := os.environ.get(VARIABLE):
        named = [given] if os.path.isfile(given) else given.split()  # a path may have spaces
        path = _on_path(named[0]) if named else None
        return Compiler(path, [*named[1:], *mode]) if path else None
    for name in _NAMES:
        if path := _on_path(name):
            return Compiler(path, mode)
    return None


def _on_path(name: str) -> str | None:
    if "/" in name:
        return name if os.access(name, os.X_OK) else None
    for folder in os.get_exec_path():
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None
