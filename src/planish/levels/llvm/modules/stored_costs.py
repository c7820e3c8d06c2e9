"""Costs of functions that earlier searches measured, in a file that searches on other modules read.

Code is made of a function by its text and by what that refers to: types, attributes, metadata, and the
declarations of other functions and of variables. A function of another module for which all these are equal
costs the same, so a program that is linked again after a change makes code of the changed functions only.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

_ROW = struct.Struct("<16sI")
_LARGEST = 2 << 20
"""Bytes of a file that is begun anew."""
_NAME = r'(?:"[^"]*"|[-\w$.]+)'
_ITEMS = re.compile(
    rf"^(?:([@%!#]{_NAME}) = .*|attributes (#\d+) = .*|(?:declare|define) [^@]*(@{_NAME})\(.*)$", re.MULTILINE
)
"""The lines of a module that functions refer to."""
_USED = re.compile(rf"(?<!!dbg )[@%!#]{_NAME}")
_HEAD = 400
"""Characters of a line, such as a long table's, in which references are looked for."""
_FLAG = re.compile(r'^!\d+ = (!\{i32 \d+, !".*)$|^target .*$', re.MULTILINE)
_NUMBERS = re.compile(r"([#!])\d+")


def plain_text(text: str) -> str:
    """Leave out of a function's text the numbers that follow from what else is in its module."""
    return _NUMBERS.sub(r"\1", text)


def exact_names(module: str, bodies: Mapping[str, str]) -> dict[str, bytes]:
    """Name functions by their text and by all that it refers to.

    Args:
        module: the text of the module.
        bodies: texts of some of its functions, by name.
    """
    items = {next(filter(None, found.groups())): found[0] for found in _ITEMS.finditer(module)}
    return {name: _exact_name(f"{name} {body}", items) for name, body in bodies.items()}


def _exact_name(text: str, items: Mapping[str, str]) -> bytes:
    waiting, found = _USED.findall(text), dict[str, str]()
    while waiting:
        name = waiting.pop()
        # Debug information makes no code, and names places in sources.
        if name in found or (line := items.get(name)) is None or "!DI" in line[:_HEAD]:
            continue
        found[name] = plain_text(line)
        waiting += (each for each in _USED.findall(line[:_HEAD]) if not each.startswith("@"))
    parts = (plain_text(text), *sorted(found.values()))
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).digest()[:16]


def context_name(module: str) -> str:
    """Name what a module's text says of all of its functions: target, layout and flags."""
    lines = sorted(found[1] or found[0] for found in _FLAG.finditer(module))
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()[:16]


class StoredCosts:
    """A file of costs, which processes may add to at the same time.

    A row that was cut off moves those after it, which then have names that no function has. Where the file
    cannot be written, nothing is kept.

    Args:
        path: of the file, in a folder that exists.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = dict(self._rows())

    def _rows(self) -> Iterator[tuple[bytes, int]]:
        try:
            data = self._path.read_bytes()
            if len(data) > _LARGEST:
                self._path.unlink()
        except OSError:
            return
        yield from _ROW.iter_unpack(data[: len(data) // _ROW.size * _ROW.size])

    def get(self, name: bytes) -> int | None:
        """Return the cost of a function; None where it is not known."""
        return self._known.get(name)

    def add(self, costs: Mapping[bytes, int]) -> None:
        """Add the costs of functions of which code was made."""
        fresh = {name: cost for name, cost in costs.items() if self._known.get(name) != cost}
        rows = b"".join(_ROW.pack(name, cost) for name, cost in fresh.items())
        self._known.update(fresh)
        try:
            with self._path.open("ab", buffering=0) as file:
                file.write(rows)
        except OSError:
            pass  # full, or another user's
