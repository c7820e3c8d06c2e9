"""Inputs of one compilation: files, the folders where it looks for them, and names that it may look for."""

from __future__ import annotations

import os
import re

from planish.cc.arguments import grouped
from planish.cc.clang import Unit, read_file, run

_ALONE, _WITH_VALUE = ("-MD", "-MMD", "-MP", "-MV", "-w"), ("-MF", "-MT", "-MQ")
_PREPROCESS = (
    *("-fsyntax-only", "-Xclang", "-Eonly", "-MD", "-MF", "-", "-MV", "-MT", "x", "-v", "-Qunused-arguments"),
    *("-Wno-everything", "-Werror=date-time"),
)
_CHANGING = re.compile(rb"__(?:TIME|DATE|TIMESTAMP)__")
_ASKS = re.compile(rb"__has_(?:include|include_next|embed)\b")
_HARMLESS = re.compile(rb"(?:ifdef|ifndef|defined *\(?) *__has_(?:include|include_next|embed)\b")
_LITERAL = re.compile(rb"has_(?:include|include_next|embed)\s*\(\s*[<\"]([^>\"\n]+)[>\"]")
_LATEST_NS = 10_000_000
"""Times of files are those of the kernel's last tick, so what is so old may have been written just now."""
OF_SYSTEM = (b"/usr/", b"/lib/")
TOOLCHAINS = b"/usr/lib/gcc"


class Reading:
    """The files that one compilation reads.

    Attributes:
        files: paths of all files that were read.
        asked: names of which a file asks whether there is such a header.
        folders: where headers are looked for, also those that do not exist.
        toolchains: folders in which clang looks for installations of GCC.
        is_stable: whether the same files have the same result again, as far as is known.
        is_unchanged: whether no file was changed since the compilation began.
    """

    __slots__ = ("_before_ns", "asked", "files", "folders", "is_stable", "is_unchanged", "toolchains")

    def __init__(self, unit: Unit, began_ns: int) -> None:
        """Ask clang what it reads for a unit, whose compilation began at a time."""
        ended = run([*unit.compiler.command, *_options(unit), *_PREPROCESS])
        self.files = _listed(ended.written)
        self._before_ns = began_ns - _LATEST_NS
        self.folders, self.toolchains = _searched(ended.messages)
        self.folders |= {os.path.dirname(name) or b"." for name in self.files} | {b"."}
        self.folders = {name.removeprefix(b"./") or b"." for name in self.folders}
        self.asked = set[bytes]()
        self.is_unchanged = bool(self.files) and all(map(self.is_older, self.files))
        self.is_stable = self.is_unchanged and not ended.code and all(map(self._is_stable, self.files))

    def is_older(self, path: bytes) -> bool:
        """Return whether a file or folder is as it was before the compilation began."""
        try:
            found = os.stat(path)
        except OSError:
            return False
        # A file that was moved here may keep the time of its content; that of its entry is new.
        return max(found.st_mtime_ns, found.st_ctime_ns) < self._before_ns

    def _is_stable(self, path: bytes) -> bool:
        """Read which headers a file asks for; False where its text says something else each time."""
        text = read_file(path)
        if text is None or _CHANGING.search(text):
            return False
        names = _LITERAL.findall(text)
        self.asked.update(names)
        # A name that a macro makes is not known. Headers of the system have macros for the question itself.
        others = len(_ASKS.findall(text)) - len(_HARMLESS.findall(text)) - len(names)
        return others <= 0 or path.startswith(OF_SYSTEM)


def _options(unit: Unit) -> list[str]:
    """Leave out of a unit's options what is about dependencies, and `-w`, which would hide dates."""
    return [
        word
        for _, group in grouped(unit.options)
        if group[0] not in _ALONE and not group[0].startswith(_WITH_VALUE)
        for word in group
    ]


def _listed(rule: bytes) -> list[bytes]:
    """Read a rule as NMake has it: names with spaces are quoted, and nothing else is changed."""
    found: list[bytes] = []
    for index, part in enumerate(rule.partition(b":")[2].replace(b"\\\n", b" ").split(b'"')):
        found += [part] if index % 2 else part.split()
    return found


def _searched(messages: bytes) -> tuple[set[bytes], set[bytes]]:
    """Read from what `-v` says in which folders headers, and installations of GCC, are looked for."""
    folders, toolchains = set[bytes](), {TOOLCHAINS}
    listing = False
    for line in messages.splitlines():
        missing = line.partition(b'ignoring nonexistent directory "')[2]
        found = line.partition(b"Found candidate GCC installation: ")[2]
        if missing:
            folders.add(missing.rstrip(b'"'))
        elif found:
            toolchains.add(os.path.dirname(found))
        elif line.startswith(b"#include "):
            listing = True
        elif line.startswith(b"End of search list"):
            listing = False
        elif listing:
            folders.add(line.strip())
    return folders, toolchains
