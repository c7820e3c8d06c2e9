"""Normal form of a function's text (thesis, section 4.2.2), and a function's identity by its content.

The normal form has no more than what the function's code is. Its identity is a hash that is the same whatever
the function and its parts are called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from planish.core.hashing import content_hash
from planish.levels.llvm.ir.split import COMDAT, VISIBILITIES, global_head, without_debug, without_home
from planish.levels.llvm.ir.syntax import NAME, QUOTED, ModuleStatement, reachable, references, statements

# Without these an optimisation may change what the program does, or code cannot be made for it.
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
        defines: whether it stands at a definition, where the processor's features and the functions that
            are no builtins matter too.

    Returns:
        Each with a space before it, to stand where the group's number stood.
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
_ALIGN = re.compile(
    rf'^((?:%{NAME} = )?(?:load|store|alloca)\b(?! atomic)(?:[^"\n]|{QUOTED})*), align \d+',
    re.MULTILINE | re.ASCII,
)


def normalise(text: str, *, alignment: bool = True, noundef: bool = True) -> str:
    """Reduce a module, as `split_module` gives it, to its code.

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
    return result if alignment else _ALIGN.sub(r"\1", result)


def _statement(statement: ModuleStatement, calls: Mapping[str, str], definitions: Mapping[str, str]) -> str:
    """Normalise one statement; empty when it goes."""
    text = statement.text
    if statement.kind == "define":
        header, _, body = text.partition("\n")
        return f"{_head(header, definitions)}\n{_body(body, calls)}"
    if statement.kind == "declare":
        return "" if _UNCALLED.search(text) else _head(text, calls)
    if statement.kind == "global":
        return _global(text)
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


def _global(text: str) -> str:
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
        text: a normalised module of one function (with several, all count, in their order).

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
        # The first block may have a label or none; it is named where a phi refers to it.
        return f"{_name(f'%{label}', known, given, local)}:" if found.start() else ""

    # No label stands in the header.
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
