"""Attributes that say what a program is optimized for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set

from planish.levels.llvm.ir.syntax import NAME, QUOTED, closing

_DEFINITION = re.compile(rf'^define (?:[^"@\n]|{QUOTED})*@{NAME}(?=\()', re.MULTILINE | re.ASCII)
_QUALIFIERS = re.compile(r"(?: (?:local_)?unnamed_addr\b)?(?: addrspace\(\d+\))?")
_GROUP = re.compile(r"^attributes (#\d+) = \{(.*)\}", re.MULTILINE)
# A number of a group, a word, or quoted text, which is none.
_TOKEN = re.compile(rf"{QUOTED}| (#\d+|[a-z]+)\b")
# LLVM writes quotes within texts as \22, so this matches attributes alone.
_AIM = re.compile(r'"(target-cpu|tune-cpu|target-features)"="[^"]*"')
_SIZE = ("minsize", "optsize")
_UNOPTIMIZED = frozenset(("optnone", "optdebug"))


def for_size(text: str) -> str:
    """Ask for small code: every definition becomes `minsize optsize`, as clang's -Oz has it.

    `default<Oz>` alone optimizes less for size. What clang's -O0 adds goes: `optnone`, which forbids
    optimization, and the `noinline` that comes with it.

    Returns:
        The module; given again, it comes back as it is. Declarations and calls keep their attributes.
    """
    return _with_attributes(text, _SIZE)


def without_optnone(text: str) -> str:
    """Allow optimization: every definition loses `optnone`, and the `noinline` that comes with it.

    Returns:
        The module; given again, it comes back as it is. Declarations and calls keep their attributes.
    """
    return _with_attributes(text, ())


def for_processor(text: str, aim: Mapping[str, str]) -> str:
    """Make every definition for another processor.

    Args:
        text: a module, of any size.
        aim: `target-cpu`, and what else clang says of the processor, as `target-features`.

    Returns:
        The module; definitions also lose `optnone`, as in `without_optnone`.
    """
    whole = {"tune-cpu": aim["target-cpu"], "target-features": "", **aim}
    # A group's attribute wins over the function's own: those that exist are changed where they are.
    changed = _AIM.sub(lambda found: f'"{found[1]}"="{whole[found[1]]}"', text)
    return _with_attributes(changed, [f'"{name}"="{value}"' for name, value in whole.items()])


def _with_attributes(text: str, wanted: Sequence[str]) -> str:
    groups = _Groups(text)
    pieces: list[str] = []
    at = 0
    for found in _DEFINITION.finditer(text):
        following = _QUALIFIERS.match(text, closing(text, found.end()))
        begin = following.end() if following else found.end()
        end = text.find("\n", begin)
        pieces += [text[at:begin], _changed(text[begin:end], groups, wanted)]
        at = end
    return "".join([*pieces, text[at:], *groups.added])


def _changed(tail: str, groups: _Groups, wanted: Sequence[str]) -> str:
    """Change the text between a definition's arguments and its body."""
    words = _words(tail)
    names = words | {name for word in words for name in groups.names(word)}
    missing = [name for name in wanted if name not in names]
    spare = names & _UNOPTIMIZED
    if "optnone" in spare:
        spare |= {"noinline"}
    if not missing and not spare:
        return tail
    return "".join(f" {name}" for name in missing) + _TOKEN.sub(
        lambda found: _without(found, groups, spare), tail
    )


def _without(found: re.Match[str], groups: _Groups, spare: Set[str]) -> str:
    word: str = found[1] or ""
    if word in spare:
        return ""
    if not spare & groups.names(word):
        return found[0]
    less = groups.less(word, spare)
    return f" {less}" if less else ""


def _words(text: str) -> set[str]:
    return {found for found in _TOKEN.findall(text) if found}


class _Groups:
    """A module's attribute groups, and those that are added to it."""

    def __init__(self, text: str) -> None:
        self._listed: dict[str, str] = dict(_GROUP.findall(text))
        self._names = {group: _words(listed) for group, listed in self._listed.items()}
        self._less: dict[tuple[str, frozenset[str]], str] = {}
        self._next = 1 + max((int(group[1:]) for group in self._listed), default=-1)
        self.added: list[str] = []

    def names(self, group: str) -> set[str]:
        """Return the attributes of a group; none of a word that is not a group."""
        return self._names.get(group, set())

    def less(self, group: str, spare: Set[str]) -> str:
        """Return the group that has all but some attributes, added where it is new; "" where none is left."""
        key = group, frozenset(spare)
        if key not in self._less:
            listed = _TOKEN.sub(lambda found: "" if found[1] in spare else found[0], self._listed[group])
            self._less[key] = self._add(listed) if listed.strip() else ""
        return self._less[key]

    def _add(self, listed: str) -> str:
        name = f"#{self._next}"
        self._next += 1
        self.added.append(f"attributes {name} = {{{listed}}}\n")
        return name
