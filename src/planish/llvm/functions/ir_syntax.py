"""The few rules of LLVM IR's text on which everything here stands: names, quotes, brackets, types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from planish.llvm.backend.protocol import IRError

PRINT_FIRST = "Print the module first: opt -S -o printed.ll FILE"

QUOTED = r'"[^"]*"'  # a quote inside is written \22
NAME = rf"(?:{QUOTED}|[-\w.$]+)"

# Quoted text, and comments, are matched so that nothing inside them is taken for a name.
_REFERENCE = re.compile(rf"[@%]{NAME}|[#!]\d+|{QUOTED}|;[^\n]*", re.ASCII)
_DELIMITER = re.compile(rf"{QUOTED}|[(\[{{<]|[)\]}}>]|,")
_WORD_TYPE = re.compile(rf"%{NAME}|\w+", re.ASCII)
_POINTER_SPACE = re.compile(r" addrspace\(\d+\)")


def references(text: str) -> list[str]:
    """List what a text refers to, each once, in the order of first use.

    Returns:
        Names with their sigils (`@f`, `%struct.x`, `#0`, `!3`), those of local values among them.
    """
    return [found for found in dict.fromkeys(_REFERENCE.findall(text)) if found[0] in "@%#!"]


def reachable(names: Iterable[str], needs: Callable[[str], Iterable[str] | None]) -> list[str]:
    """List what is reached from some names, each once, nearest first.

    Args:
        names: where to begin; they are reached themselves, where they are known.
        needs: gives the names that one refers to; None when it is unknown.
    """
    waiting = list(names)
    seen: set[str] = set()
    reached: list[str] = []
    for name in waiting:  # grows as it is walked
        if name in seen:
            continue
        seen.add(name)
        needed = needs(name)
        if needed is not None:
            reached.append(name)
            waiting += needed
    return reached


def closing(text: str, start: int) -> int:
    """Find the end of a bracketed text.

    Args:
        text: any IR.
        start: where an opening bracket stands.

    Returns:
        The position behind the bracket that closes it.

    Raises:
        IRError: nothing closes it.
    """
    depth = 0
    for found in _DELIMITER.finditer(text, start):
        depth += _depth(found[0])
        if not depth:
            return found.end()
    raise IRError(f"nothing closes the bracket of '{text[start : start + 60]}'", PRINT_FIRST)


def items(text: str) -> Iterator[str]:
    """Split at the commas that stand in no brackets and no quotes; spaces around the items go."""
    depth = start = 0
    for found in _DELIMITER.finditer(text):
        if found[0] == "," and not depth:
            yield text[start : found.start()].strip()
            start = found.end()
        depth += _depth(found[0])
    if last := text[start:].strip():
        yield last


def type_end(text: str, start: int) -> int:
    """Find the position behind the type that begins at `start`; a function type counts with its arguments.

    Raises:
        IRError: no type begins there.
    """
    if text.startswith(("[", "{", "<"), start):
        end = closing(text, start)
    elif word := _WORD_TYPE.match(text, start):
        end = word.end()
        if text.startswith("(", end):  # target("name", ...)
            end = closing(text, end)
    else:
        raise IRError(f"no type begins '{text[start : start + 60]}'", PRINT_FIRST)
    if space := _POINTER_SPACE.match(text, end):
        end = space.end()
    return closing(text, end + 1) if text.startswith(" (", end) else end


def _depth(delimiter: str) -> int:
    if delimiter in "([{<":
        return 1
    return -1 if delimiter in ")]}>" else 0
