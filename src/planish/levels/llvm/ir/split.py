"""Splitting a module into modules of one function each.

Of other functions and of globals their declarations are kept; debug information is left out, which would drag
in the whole source's description.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from planish.levels.llvm.backend.protocol import IRError
from planish.levels.llvm.ir.syntax import (
    NAME,
    PRINT_FIRST,
    QUOTED,
    Kind,
    ModuleStatement,
    closing,
    items,
    reachable,
    references,
    statements,
    type_end,
)

_LOCATION = re.compile(r",? !dbg !(?:\d+|DI\w+\([^\n]*?\))")
_LINE = re.compile(
    r"^[ \t]*(?:#dbg_\w+\(|(?:tail )?call void (?:\([^)\n]*\) )?@llvm\.dbg\.)[^\n]*\n", re.MULTILINE
)
_NODE = re.compile(r"(!\d+ = )(?:distinct )?!DI")


def without_debug(text: str) -> str:
    """Drop debug records, calls of debug intrinsics, and attached locations.

    A node that describes debug information becomes an empty one, for others may name it (a loop's).
    """
    if "!dbg" in text:
        text = _LOCATION.sub("", text)
    if "#dbg_" in text or "@llvm.dbg." in text:
        text = _LINE.sub("", text)
    node = _NODE.match(text)
    return f"{node[1]}!{{}}" if node else text


LINKAGES = (
    "private|internal|available_externally|linkonce|weak|common|appending|extern_weak|linkonce_odr|weak_odr"
    "|external"
)
VISIBILITIES = "dso_local|dso_preemptable|default|hidden|protected|dllimport|dllexport"
COMDAT = rf" comdat(?:\(\$(?:{QUOTED}|[^)]*)\))?(?= )"
# A strong constant of at most so many characters keeps its value. Optimisations read it (strlen of a text,
# an element of a small table), as they do when the whole module is compiled; longer tables would only
# swell the text that a model reads.
CONSTANT_CHARS = 256

_DEFINE = re.compile(rf"define (?:(?:{LINKAGES}|{VISIBILITIES}) )*")
_GROUPS = re.compile(r'"[^"]*"|( #\d+)')
_PARAMETER = re.compile(rf"(.*\S) %{NAME}", re.ASCII | re.DOTALL)
_GLOBAL = re.compile(rf"(@{NAME}) = ((?:[a-z_]+(?:\(\w+\))? )*)(global|constant|alias|ifunc) ", re.ASCII)
_LINKAGE = re.compile(rf"\b(?:{LINKAGES}) ")
_REPLACEABLE = frozenset(("linkonce", "weak", "common"))  # by a symbol of another module
_ALIGN = re.compile(r', (align \d+)[^\]})>"]*$')
_TAKEN = re.compile(rf"\bblockaddress\((@{NAME}),", re.ASCII)


def taken(text: str) -> set[str]:
    """List the functions the addresses of whose blocks a text takes."""
    return set(_TAKEN.findall(text)) if "blockaddress(" in text else set()


def declaration(statement: ModuleStatement, owner: str) -> str:
    """Write what a function needs to know of another one, or of a global.

    A definition becomes a declaration, an alias one of its type. A global becomes external, with its type;
    it keeps its value if it is a short constant that no other module can replace, or holds the addresses
    of the owner's blocks (a computed goto's table).

    Args:
        statement: a `define`, `declare` or global.
        owner: the name of the function that is kept, with its sigil.
    """
    if statement.kind == "define":
        return _declare(statement)
    if statement.kind == "declare":
        return statement.text
    return _global(statement.text, owner)


def global_head(text: str) -> tuple[re.Match[str], int]:
    """Read the head of a global's statement.

    Returns:
        Its name, the words of its linkage and place, and `global`, `constant`, `alias` or `ifunc`, as the
        groups of a match; and the position behind its type.

    Raises:
        IRError: it is no global.
    """
    found = _GLOBAL.match(text)
    if not found:
        raise IRError(f"this is no global: '{text[:60]}'", PRINT_FIRST)
    return found, type_end(text, found.end())


def _declare(statement: ModuleStatement) -> str:
    header = statement.text.partition("\n")[0]
    opening = header.index(f"{statement.name}(") + len(statement.name)
    end = closing(header, opening)
    returns = _DEFINE.sub("", header[:opening], count=1)
    types = ", ".join(map(_unnamed, items(header[opening + 1 : end - 1])))
    groups = "".join(_GROUPS.findall(header, end))
    return f"declare {returns}({types}){groups}"


def _unnamed(parameter: str) -> str:
    named = _PARAMETER.fullmatch(parameter)
    return named[1] if named else parameter


def _global(text: str, owner: str) -> str:
    head, end = global_head(text)
    name, words, kind = head.groups()
    type_ = text[head.end() : end]
    if kind in ("alias", "ifunc") and " (" in type_:
        returns, _, arguments = type_.partition(" (")
        return f"declare {returns} {name}({arguments}"
    if "external " in words or "extern_weak " in words or _keeps_value(text, end, words, kind, owner):
        return without_home(text, end)
    align = _ALIGN.search(text, end)
    noun = "global" if kind == "alias" else kind
    words = _LINKAGE.sub("", words).replace("local_unnamed_addr ", "").replace("unnamed_addr ", "")
    return f"{name} = external {words}{noun} {type_}{', ' + align[1] if align else ''}"


def _keeps_value(text: str, end: int, words: str, kind: str, owner: str) -> bool:
    if blocks := taken(text):
        return blocks == {owner}
    return kind == "constant" and len(text) - end <= CONSTANT_CHARS and not _REPLACEABLE & set(words.split())


def without_home(text: str, end: int) -> str:
    """Drop a global's section, comdat, partition and metadata; its value and alignment stay.

    Args:
        text: the global's statement.
        end: the position behind its type.
    """
    value, *rest = list(items(text[end:])) or [""]
    aligned = [item for item in rest if item.startswith("align ")]
    return ", ".join([f"{text[:end]} {value}".rstrip(), *aligned])


_ORDER: tuple[Kind, ...] = ("type", "global", "declare", "define", "attributes", "metadata")
_DEFINE_LINKAGE = re.compile(rf"^define (?:{LINKAGES}) ")
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
    the module's size. The thesis (section 4.3.2) works on single functions too, and does not say how it
    gets them.

    Args:
        text: a module as LLVM prints it.
        skipped: receives how many functions cannot stand alone, by reason.

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
        """Return why a function cannot stand alone; empty when it can."""
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
    header = _COMDAT.sub(lambda found: found[1] or "", _DEFINE_LINKAGE.sub("define ", header))
    return f"{header}\n{body}"
