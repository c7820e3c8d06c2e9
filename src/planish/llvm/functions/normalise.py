"""The normal form of a function's text (thesis, section 4.2.2): no more than what its code is."""

from __future__ import annotations

import re
from collections.abc import Mapping

from planish.llvm.functions.attached import binding
from planish.llvm.functions.debug import without_debug
from planish.llvm.functions.declare import COMDAT, VISIBILITIES, global_head, without_home
from planish.llvm.functions.ir_syntax import NAME, QUOTED, reachable, references
from planish.llvm.functions.statements import ModuleStatement, statements

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
