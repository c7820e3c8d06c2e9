"""What stays of a function or a global when another function is all that is kept: its declaration."""

from __future__ import annotations

import re

from planish.llvm.backend.protocol import IRError
from planish.llvm.functions.ir_syntax import NAME, PRINT_FIRST, QUOTED, closing, items, type_end
from planish.llvm.functions.statements import ModuleStatement

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
    place = _LINKAGE.sub("", words).replace("local_unnamed_addr ", "").replace("unnamed_addr ", "")
    return f"{name} = external {place}{noun} {type_}{', ' + align[1] if align else ''}"


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
