"""Splitting a module into modules of one function each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from planish.llvm.functions.debug import without_debug
from planish.llvm.functions.declare import COMDAT, LINKAGES, declaration, taken
from planish.llvm.functions.ir_syntax import QUOTED, reachable, references
from planish.llvm.functions.statements import Kind, ModuleStatement, statements

_ORDER: tuple[Kind, ...] = ("type", "global", "declare", "define", "attributes", "metadata")
_LINKAGE = re.compile(rf"^define (?:{LINKAGES}) ")
_COMDAT = re.compile(rf"({QUOTED})|{COMDAT}")


@dataclass(frozen=True, slots=True)
class SplitFunction:
    """One function as a program.

    Args:
        name: as the source module calls it, without `@` and quotes.
        text: a module with this definition alone, and what it refers to.
    """

    name: str
    text: str


def split_module(text: str, skipped: Counter[str] | None = None) -> Iterator[SplitFunction]:
    """Split a module into modules of one function each, in the order of the definitions.

    Each holds one definition, made external, and what it refers to, in the order of first use: struct
    types and what they are made of, the other functions as declarations, globals as external ones (short
    constants keep their values: see `declare.CONSTANT_CHARS`), attribute groups, metadata, data layout and
    triple. Debug information, comdats, named metadata and module asm are left out. The time is linear in
    the module's size. The thesis (section 4.3.2) works on single functions too, and does not tell how it
    gets them.

    Args:
        text: a module as LLVM prints it.
        skipped: is told how many functions cannot stand alone, by reason.

    Raises:
        IRError: the text is laid out otherwise.
    """
    module = _Module(text)
    for function in module.functions:
        if reason := module.bound(function):
            if skipped is not None:
                skipped[reason] += 1
            continue
        yield SplitFunction(function.name[1:].strip('"'), module.alone(function))


@dataclass(slots=True)
class _Part:
    """A statement as other functions see it."""

    kind: Kind
    text: str
    needs: list[str]


@dataclass(slots=True)
class _Module:
    """A module's statements by name; how others see one is worked out when it is first needed."""

    text: str
    functions: list[ModuleStatement] = field(init=False, default_factory=list[ModuleStatement])
    header: list[str] = field(init=False, default_factory=list[str])
    named: dict[str, ModuleStatement] = field(init=False, default_factory=dict[str, ModuleStatement])
    parts: dict[str, _Part] = field(init=False, default_factory=dict[str, _Part])

    def __post_init__(self) -> None:
        for statement in statements(self.text):
            if statement.kind == "target":
                self.header.append(statement.text)
            elif statement.kind == "define":
                self.functions.append(statement)
            if statement.name and statement.kind != "other":
                self.named[statement.name] = statement

    def bound(self, function: ModuleStatement) -> str:
        """Tell why a function cannot stand alone; empty when it can."""
        others = taken(function.text) - {function.name}
        return "it takes the address of another function's block" if others else ""

    def alone(self, function: ModuleStatement) -> str:
        """Write the module that holds one function."""
        own = without_debug(_at_home(function.text))
        reached = self._reach(function.name, own)
        lines = [*self.header, ""]
        for kind in _ORDER:
            texts = [part.text for part in reached if part.kind == kind]
            lines += [own] if kind == "define" else texts
            if texts or kind == "define":
                lines.append("")
        return "\n".join(lines)

    def _reach(self, owner: str, text: str) -> list[_Part]:
        """List what a text refers to, and what that refers to, nearest first."""
        parts: dict[str, _Part] = {}

        def needs(name: str) -> list[str] | None:
            if name == owner or name not in self.named:
                return None
            parts[name] = self._part(name, owner)
            return parts[name].needs

        return [parts[name] for name in reachable(references(text), needs)]

    def _part(self, name: str, owner: str) -> _Part:
        if name in self.parts:
            return self.parts[name]
        statement = self.named[name]
        part = _part(statement, owner)
        if statement.kind != "global" or not taken(statement.text):  # else its form depends on the owner
            self.parts[name] = part
        return part


def _part(statement: ModuleStatement, owner: str) -> _Part:
    text = statement.text
    if statement.kind in ("define", "declare", "global"):
        text = declaration(statement, owner)
    text = without_debug(text)
    # A definition, and an alias of a function, are declared.
    kind: Kind = "declare" if text.startswith("declare ") else statement.kind
    return _Part(kind, text, references(text))


def _at_home(text: str) -> str:
    """Make a definition external, and part of no comdat."""
    header, _, body = text.partition("\n")
    header = _COMDAT.sub(lambda found: found[1] or "", _LINKAGE.sub("define ", header))
    return f"{header}\n{body}"
