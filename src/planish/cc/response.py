"""A command line's words as clang reads them: response files (`@file`), and `-Wp,`."""

from __future__ import annotations

import os

_DEEPEST = 20
_SPACES = " \t\n\r\v\f\0"


class ResponseError(Exception):
    """A response file that cannot be read: clang has its own words for that."""


def expand(words: list[str], depth: int = 0) -> list[str]:
    """Put the words of response files in their place; a file that is not there stays a word.

    Raises:
        ResponseError: one cannot be read, or they name each other.
    """
    if not any(word.startswith("@") for word in words):
        return words
    if depth == _DEEPEST:
        raise ResponseError("response files name each other")
    found: list[str] = []
    for word in words:
        if word.startswith("@") and os.path.isfile(word[1:]):
            found += expand(split(_read(word[1:])), depth + 1)
        else:
            found.append(word)
    return found


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ResponseError(str(error)) from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "surrogateescape")
    return os.fsdecode(data.removeprefix(b"\xef\xbb\xbf"))


def split(text: str) -> list[str]:
    """Split a response file as GNU tools do: quotes and backslashes as in a shell, nothing else."""
    words: list[str] = []
    word: list[str] | None = None
    quote = ""
    letters = iter(text)
    for letter in letters:
        if not quote and letter in _SPACES:
            if word is not None:
                words.append("".join(word))
            word = None
            continue
        word = [] if word is None else word
        if letter == "\\" and quote != "'":
            word.append(next(letters, ""))
        elif letter == quote:
            quote = ""
        elif not quote and letter in "'\"":
            quote = letter
        else:
            word.append(letter)
    return words if word is None else [*words, "".join(word)]


def translated(words: list[str]) -> list[str]:
    """Spell out `-Wp,-MD,FILE` as clang does: Linux, BusyBox and U-Boot compile everything with it."""
    found: list[str] = []
    for word in words:
        parts = word.split(",")
        if len(parts) == 3 and parts[0] == "-Wp" and parts[1] in ("-MD", "-MMD"):
            found += [parts[1], "-MF", parts[2]]
        else:
            found.append(word)
    return found
