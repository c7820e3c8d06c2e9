"""Options of code generation of whole modules: attributes of functions, the outliner, and options of LLVM."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from planish.cc.clang import CODE_ONLY, Compiler, run
from planish.cc.settings import SearchError
from planish.levels.llvm.bindings.elf import machine
from planish.levels.llvm.modules.function_costs import CHANGES, Attributes, with_attributes
from planish.levels.llvm.modules.transform import survived

ALWAYS, NEVER = "-enable-machine-outliner=always", "-enable-machine-outliner=never"
"""Have the machine outliner run on all functions, or on none; without them, clang decides."""
REPEATED = (ALWAYS, "-machine-outliner-reruns=4")
"""Have it run on all functions, and on what it made again."""
_ARM, _X86_64, _AARCH64, RISCV = 40, 62, 183, 243
_RUNS_FOR_SIZE = {_ARM, _AARCH64, RISCV}
"""Processors for which clang runs the outliner on `minsize` functions."""
_OWN_WORDS = re.compile(r"-m(?:no-)?outline")
SWITCHES = (
    "-disable-machine-licm",
    "-apply-ext-tsp-for-size",
    "-grow-region-complexity-budget=0",
    "-min-jump-table-entries=16",
    "-disable-lsr",
    "-phi-elim-split-all-critical-edges",
    "-disable-machine-cse",
    "-huge-size-for-split=1",
)
"""Options of LLVM that make the code of some modules smaller, those that save most first.

They are about the order of blocks, code that is moved out of loops or kept for later, switches, and where the
register allocator divides the lifetime of a value.
"""
_SINCE = 20
"""The first LLVM that has those of `search_options`."""
_KNOWN = (*REPEATED, NEVER, *SWITCHES)


@dataclass(frozen=True)
class CodeOptions:
    """Options of code generation that are not in the build's command.

    Args:
        attributes: changes of attributes.
        llvm: options of LLVM, as clang takes each after `-mllvm`.
    """

    attributes: Attributes = ()
    llvm: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words for clang, which attributes have none of."""
        return tuple(word for option in self.llvm for word in ("-mllvm", option))

    @property
    def switches(self) -> tuple[str, ...]:
        """Return the options that are about single functions."""
        return tuple(option for option in self.llvm if option in SWITCHES)

    def with_outliner(self, words: Sequence[str]) -> CodeOptions:
        """Return the same with other options for the machine outliner."""
        return replace(self, llvm=(*words, *self.switches))

    def toggled(self, switch: str) -> CodeOptions:
        """Return the same with an option of LLVM, or without it if it is there."""
        rest = tuple(option for option in self.llvm if option != switch)
        return replace(self, llvm=rest if rest != self.llvm else (*rest, switch))

    def of(self, name: str) -> tuple[str, ...]:
        """Return the changes of a function's attributes."""
        return tuple(change for change, names in self.attributes if name in names)


CLANGS = CodeOptions()
"""Options of clang by itself."""


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

    def outliners(self, code: bytes, level: str = "-Oz") -> tuple[tuple[str, ...], ...]:
        """List options for clang's own choice of functions for the outliner, and for the opposite of it.

        Args:
            code: an object or program for the processor, which may have no outliner.
            level: of the module of which code is made; with "-Os", no function of it is `minsize`.
        """
        if any(map(_OWN_WORDS.match, self.options)):
            return ((),)
        if machine(code) in _RUNS_FOR_SIZE:
            return (), (ALWAYS if level == "-Os" else NEVER,)
        return ((), (ALWAYS,)) if machine(code) == _X86_64 else ((),)


def search_options(version: str, code: bytes) -> tuple[str, ...]:
    """Return the options with which a search measures functions: those that most modules have in the end.

    Args:
        version: of LLVM, such as "22.1.8".
        code: an object or program for the processor.
    """
    if int(version.partition(".")[0]) < _SINCE:
        return ()
    return SWITCHES[: 3 if machine(code) == _ARM else 2]


def options_of(attributes: Attributes, llvm: Sequence[str]) -> CodeOptions:
    """Return the options that a lock file names.

    Raises:
        SearchError: it names others than planish chooses.
    """
    if any(option not in _KNOWN for option in llvm) or any(it not in CHANGES for it, _ in attributes):
        raise SearchError("the lock file has options of code generation that are not known")
    return CodeOptions(attributes, tuple(llvm))
