"""Choice of what code generation does for a whole program: attributes of functions, and the outliner."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from planish.cc.clang import CODE_ONLY, Compiler, run
from planish.cc.settings import SearchError
from planish.levels.llvm.bindings.elf import machine
from planish.levels.llvm.modules.function_costs import CHANGES, Attributes, with_attributes
from planish.levels.llvm.modules.transform import survived

Outliner = Literal["", "always", "never", "repeated"]
"""Functions on which the machine outliner runs: all, none, or all repeatedly; empty: clang's own choice."""
_OUTLINE = ("-mllvm", "-enable-machine-outliner=always")
_WORDS: dict[Outliner, tuple[str, ...]] = {
    "": (),
    "always": _OUTLINE,
    "never": ("-mllvm", "-enable-machine-outliner=never"),
    "repeated": (*_OUTLINE, "-mllvm", "-machine-outliner-reruns=4"),
}
_ARM, _X86_64, _AARCH64, RISCV = 40, 62, 183, 243
_RUNS_FOR_SIZE = {_ARM, _AARCH64, RISCV}
"""Processors for which clang runs the outliner on `minsize` functions."""
_OWN_WORDS = re.compile(r"-m(?:no-)?outline")


@dataclass(frozen=True)
class CodeOptions:
    """Options of code generation that are not in the build's command.

    Args:
        attributes: changes of attributes.
        outliner: see `Outliner`.
    """

    attributes: Attributes = ()
    outliner: Outliner = ""

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words for clang, which attributes have none of."""
        return _WORDS[self.outliner]

    def of(self, name: str) -> tuple[str, ...]:
        """Return the changes of a function's attributes."""
        return tuple(change for change, names in self.attributes if name in names)


CLANGS = CodeOptions()
"""What clang does by itself."""


@dataclass(frozen=True)
class CodeGenerator:
    """Makes code of modules by clang, as it would of its own.

    Args:
        compiler: it.
        options: of the build's command, as far as they have a part in it.
        folder: for a file.
    """

    compiler: Compiler
    options: Sequence[str]
    folder: Path

    def __call__(self, bitcode: bytes, chosen: CodeOptions = CLANGS) -> bytes:
        """Make code.

        Raises:
            SearchError: clang makes none.
            PlanishError: LLVM cannot change the attributes.
        """
        if chosen.attributes:
            bitcode = survived(partial(with_attributes, bitcode, chosen.attributes), bytes)
        path = self.folder / "improved.o"
        options = [*self.options, *chosen.words, *CODE_ONLY]
        ended = run([*self.compiler.command, *options, "-o", str(path)], bitcode)
        if ended.code:
            said = ended.messages.decode(errors="replace").strip() or f"exit code {ended.code}"
            raise SearchError(f"clang cannot compile the module that was found: {said.splitlines()[0]}")
        return path.read_bytes()

    def outliners(self, code: bytes, level: str = "-Oz") -> tuple[Outliner, ...]:
        """List clang's own choice of functions for the outliner, and the opposite where there is an outliner.

        Args:
            code: an object or program for the processor.
            level: of the module of which code is made; with "-Os", no function of it is `minsize`.
        """
        if any(map(_OWN_WORDS.match, self.options)):
            return ("",)
        if machine(code) in _RUNS_FOR_SIZE:
            return ("", "always" if level == "-Os" else "never")
        return ("", "always") if machine(code) == _X86_64 else ("",)


def options_of(attributes: Attributes, outliner: str) -> CodeOptions:
    """Return the options that a lock file names.

    Raises:
        SearchError: it names others than planish chooses.
    """
    if outliner not in _WORDS or any(change not in CHANGES for change, _ in attributes):
        raise SearchError("the lock file has options of code generation that are not known")
    return CodeOptions(attributes, outliner)
