"""The objects among the words of a link command, those in archives too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from planish.cc.arguments import Invocation
from planish.cc.object_cache import digest

_ARCHIVE, _HEAD = b"!<arch>\n", 60
_INDICES = ("/", "//", "/SYM64/", "__.SYMDEF")
_BSD = "#1/"


@dataclass(frozen=True)
class LinkPart:
    """An object.

    Args:
        word: the place of the word that names it, or its archive.
        name: its content, by `digest`.
        in_archive: whether the word names an archive.
        code: its content.
    """

    word: int
    name: str
    in_archive: bool
    code: bytes = field(repr=False)


def link_parts(words: Sequence[str]) -> list[LinkPart]:
    """List the objects that a command names, without its program."""
    found: list[LinkPart] = []
    for place in sorted(Invocation(list(words)).linked):
        path = Path(words[place])
        data = path.read_bytes() if path.is_file() else b""
        if data.startswith(_ARCHIVE):
            found += [LinkPart(place, digest(code), True, code) for code in _members(data)]
        elif data.startswith(b"\x7fELF"):
            found.append(LinkPart(place, digest(data), False, data))
    return found


def exchanged(words: Sequence[str], others: Mapping[LinkPart, str]) -> list[str]:
    """Put other words in the place of objects; what stands in an archive comes before the archive.

    The linker takes from an archive only what it lacks by then.
    """
    before: dict[int, list[str]] = {}
    for part, word in others.items():
        before.setdefault(part.word, []).append(word)
    gone = {part.word for part in others if not part.in_archive}
    return [
        each
        for place, word in enumerate(words)
        for each in (*before.get(place, ()), *(() if place in gone else (word,)))
    ]


def without_output(words: Sequence[str]) -> list[str]:
    """Leave out what -o names."""
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and not word.startswith("-o"):
            kept.append(word)
        skip = word == "-o" and not skip
    return kept


def _members(data: bytes) -> Iterator[bytes]:
    place = len(_ARCHIVE)
    while place + _HEAD <= len(data):
        name, size = data[place : place + 16].decode("latin-1").rstrip(), int(data[place + 48 : place + 58])
        # Members begin at even places.
        start, place = place + _HEAD, place + _HEAD + size + size % 2
        long = (
            int(name.removeprefix(_BSD)) if name.startswith(_BSD) else 0
        )  # the name stands before the content
        # A slash with a number is no index: it tells where a long name stands.
        if not name.startswith(_INDICES) or name[1:].isdigit():
            yield data[start + long : start + size]
