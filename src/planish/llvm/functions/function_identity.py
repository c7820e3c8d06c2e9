"""A function's name by its content, whatever it and its parts are called."""

from __future__ import annotations

import re
from collections.abc import Iterator

from planish.core.canonical import content_hash
from planish.llvm.functions.ir_syntax import NAME, QUOTED, reachable, references
from planish.llvm.functions.statements import ModuleStatement, statements

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
    """Tell whether the name itself matters: that of something outside the module."""
    if token[0] != "@":
        return False
    there = known.get(token)
    return (
        there is None
        or there.kind == "declare"
        or " = external " in there.text
        or "= extern_weak " in there.text
    )
