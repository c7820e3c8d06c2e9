"""Functions of a module: split into modules of their own, their normal form, and their identity by content.

A module of one function has declarations of other functions and of globals, and no debug information, which
would bring the description of the whole source. The normal form (thesis, section 4.2.2) has the function's
code and no more. The identity is a hash that is the same whatever the function and its parts are called.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from planish.core.hashing import content_hash
from planish.levels.llvm.bindings.protocol import IRError
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
# A strong constant up to this length keeps its value. Optimizations read it (strlen of a text,
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
        Its name, the words of its linkage and section, and `global`, `constant`, `alias` or `ifunc`, as the
        groups of a match; and the position after its type.

    Raises:
        IRError: it is not a global.
    """
    found = _GLOBAL.match(text)
    if not found:
        raise IRError(f"expected a global, got '{text[:60]}'", PRINT_FIRST)
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
        end: the position after its type.
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


# Without these an optimization may change what the program does, or code cannot be made for it.
_BINDING = frozenset(
    {
        *("builtin", "convergent", "naked", "nobuiltin", "noduplicate", "null_pointer_is_valid"),
        *("presplitcoroutine", "returns_twice", "strictfp"),
    }
)
_BINDING_TEXT = re.compile(r'"no-builtins?(?:-\w+)?"')
# What every x86-64 processor has; functions that use more (vector intrinsics) name it, and need it.
_COMMON = frozenset(("+cmov", "+cx8", "+fxsr", "+mmx", "+sse", "+sse2", "+x87"))
_FEATURES = re.compile(r'"target-features"="([^"]*)"')
_ATTRIBUTE = re.compile(rf"{QUOTED}(?:={QUOTED})?|[\w()]+", re.ASCII)


def binding(group: str, defines: bool) -> str:
    """Return the attributes of a group that must stay when the group goes.

    Args:
        group: the statement `attributes #N = { ... }`.
        defines: whether it belongs to a definition, where the processor's features and the functions that
            are not builtins matter too.

    Returns:
        Each with a space before it, to replace the group's number.
    """
    _, _, listed = group.partition("{")
    kept = [found for found in _ATTRIBUTE.findall(listed) if found in _BINDING or (defines and _binds(found))]
    return "".join(f" {attribute}" for attribute in kept)


def _binds(attribute: str) -> bool:
    features = _FEATURES.fullmatch(attribute)
    if features:
        return bool(set(features[1].split(",")) - _COMMON)
    return bool(_BINDING_TEXT.match(attribute))


_LINKED = "private|internal|available_externally|linkonce_odr|weak_odr|linkonce|weak|common"
_HEAD = re.compile(
    rf"(define|declare)((?: extern_weak)?)(?: (?:external|{_LINKED}|{VISIBILITIES})\b)*", re.ASCII
)
_GLOBAL_WORDS = re.compile(rf"\b(?:{_LINKED}|{VISIBILITIES}|unnamed_addr|local_unnamed_addr) ")
# Quoted text is matched first, and kept.
_PLACED = re.compile(rf"({QUOTED})| (?:local_)?unnamed_addr\b| (?:section|partition) {QUOTED}|{COMDAT}")
_ATTACHED = re.compile(
    rf"({QUOTED})|[ \t]*;[^\n]*|,? ![A-Za-z_][-\w.$]* !(?:\d+|\{{[^\n]*?\}})|( #\d+)", re.ASCII
)
_SCOPE = re.compile(
    r"^[ \t]*(?:tail )?call void @llvm\.experimental\.noalias\.scope\.decl\([^\n]*\n", re.MULTILINE
)
_UNCALLED = re.compile(r"@llvm\.(?:dbg\.|experimental\.noalias\.scope\.decl)")
_SPACE = re.compile(r"\s*\n\s*")
_NOUNDEF = re.compile(rf"({QUOTED})| noundef\b")
# Atomic accesses need theirs.
_ALIGNED = re.compile(
    rf'^((?:%{NAME} = )?(?:load|store|alloca)\b(?! atomic)(?:[^"\n]|{QUOTED})*), align \d+',
    re.MULTILINE | re.ASCII,
)


def normalize(text: str, *, alignment: bool = True, noundef: bool = True) -> str:
    """Reduce a module, as `split_module` returns it, to its code.

    Comments, metadata, debug records, attribute groups, linkage, visibility, comdats, sections, the
    source's name, indentation and blank lines go. Unlike in the thesis, a few attributes without which
    the code would mean something else stay, written out (see `attached`), as do those of parameters and
    results, and metadata that an instruction has as an operand. The result is a fixed point.

    Args:
        text: the module as LLVM prints it.
        alignment: keep the alignment of loads, stores and allocas. Without it their type's own is taken,
            which is more than packed structures promise.
        noundef: keep `noundef` of parameters and results.

    Returns:
        A module that parses.

    Raises:
        IRError: the text is laid out otherwise.
    """
    read = list(statements(text))
    groups = {s.name: s.text for s in read if s.kind == "attributes"}
    calls = {f" {name}": binding(group, defines=False) for name, group in groups.items()}
    definitions = {f" {name}": binding(group, defines=True) for name, group in groups.items()}
    kept = [line for s in read if (line := _statement(s, calls, definitions))]
    result = "\n".join([*kept, *_operands(read, kept), ""])
    if not noundef:
        result = _NOUNDEF.sub(_quoted, result)
    return result if alignment else _ALIGNED.sub(r"\1", result)


def _statement(statement: ModuleStatement, calls: Mapping[str, str], definitions: Mapping[str, str]) -> str:
    """Normalize one statement; empty when it goes."""
    text = statement.text
    if statement.kind == "define":
        header, _, body = text.partition("\n")
        return f"{_head(header, definitions)}\n{_body(body, calls)}"
    if statement.kind == "declare":
        return "" if _UNCALLED.search(text) else _head(text, calls)
    if statement.kind == "global":
        return _normal_global(text)
    keeps = statement.kind in ("type", "target") or text.startswith("module asm")
    return _attached(text, {}) if keeps else ""


def _head(text: str, groups: Mapping[str, str]) -> str:
    text = _attached(without_debug(text), groups)
    return _PLACED.sub(_quoted, _HEAD.sub(r"\1\2", text, count=1))


def _body(text: str, groups: Mapping[str, str]) -> str:
    text = without_debug(text)
    if "noalias.scope.decl" in text:
        text = _SCOPE.sub("", text)
    return _SPACE.sub("\n", _attached(text, groups)).strip()


def _normal_global(text: str) -> str:
    text = _attached(text, {})
    found, end = global_head(text)
    words = _GLOBAL_WORDS.sub("", found[2])
    whole = text if found[3] in ("alias", "ifunc") else without_home(text, end)
    return f"{found[1]} = {words}{whole[found.end(2) :]}"


def _attached(text: str, groups: Mapping[str, str]) -> str:
    """Drop comments and attached metadata; write attribute groups out."""
    return _ATTACHED.sub(lambda found: found[1] or groups.get(found[2], ""), text)


def _operands(read: list[ModuleStatement], kept: list[str]) -> list[str]:
    """List the metadata that instructions still have as operands."""
    if not any("metadata !" in text for text in kept):
        return []
    nodes = {s.name: s.text for s in read if s.kind == "metadata"}
    needed = reachable(
        (name for text in kept for name in references(text)),
        lambda name: references(nodes[name]) if name in nodes else None,
    )
    return [nodes[name] for name in needed]


def _quoted(found: re.Match[str]) -> str:
    return found[1] or ""


_TOKEN = re.compile(rf"^(?P<label>{NAME}):|[@%]{NAME}|[#!]\d+|{QUOTED}", re.MULTILINE | re.ASCII)


def identity(text: str) -> str:
    """Name a function by its content: duplicates get one name, wherever they come from.

    The names of the function itself, of struct types, of local values and blocks, and of globals with a
    value count for nothing, nor do the numbers of attribute groups and metadata, and the order of the
    other statements. Names of other functions and of external globals count: LLVM knows many. So does the
    data layout, but not the triple: two compilers for one machine call it by different vendors.

    Args:
        text: a normalized module of one function (with several, all count, in their order).

    Returns:
        A content hash: 32 hexadecimal digits.

    Raises:
        IRError: the text is not laid out as LLVM prints it.
    """
    return content_hash("\n".join(_canonical(list(statements(text)))))


def _canonical(read: list[ModuleStatement]) -> Iterator[str]:
    """Write the statements that matter with canonical names, in the order of first use."""
    known = {s.name: s for s in read if s.name and s.kind != "define"}
    defined = [s for s in read if s.kind == "define"]
    given = {s.name: f"@={i}" for i, s in enumerate(defined)}
    yield from (s.text for s in read if s.text.startswith(("target datalayout", "module asm")))
    for function in defined:
        yield _function(function.text, known, given)
    used = (name for function in defined for name in references(function.text))
    for name in reachable(used, lambda name: references(known[name].text) if name in known else None):
        yield _TOKEN.sub(lambda found: _name(found[0], known, given, given), known[name].text)


def _function(text: str, known: dict[str, ModuleStatement], given: dict[str, str]) -> str:
    """Rename in a definition, whose local names are its own."""
    local: dict[str, str] = {}
    header, _, body = text.partition("\n")

    def renamed(found: re.Match[str]) -> str:
        label = found["label"]
        if label is None:
            return _name(found[0], known, given, local)
        # The first block may have a label or none; it is named where a phi names it.
        return f"{_name(f'%{label}', known, given, local)}:" if found.start() else ""

    # The header has no label.
    return f"{_TOKEN.sub(renamed, ' ' + header)}\n{_TOKEN.sub(renamed, body).lstrip()}"


def _name(token: str, known: dict[str, ModuleStatement], given: dict[str, str], local: dict[str, str]) -> str:
    if token[0] == '"':
        return token
    if token[0] == "%" and token not in known:
        return local.setdefault(token, f"%{len(local)}")
    if token not in given:
        given[token] = token if _counts(token, known) else f"{token[0]}={len(given)}"
    return given[token]


def _counts(token: str, known: dict[str, ModuleStatement]) -> bool:
    """Return whether the name itself matters: that of something outside the module."""
    if token[0] != "@":
        return False
    there = known.get(token)
    return (
        there is None
        or there.kind == "declare"
        or " = external " in there.text
        or "= extern_weak " in there.text
    )
