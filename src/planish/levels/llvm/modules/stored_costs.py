"""Costs of functions that earlier searches measured, in a disk cache that searches on other modules read.

Code is made of a function by its text and by what that refers to: types, attributes, metadata, and the
declarations of other functions and of variables. A function of another module for which all these are equal
costs the same, so a program that is linked again after a change makes code of the changed functions only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from itertools import islice
from typing import cast

from planish.core.disk_cache import DiskCache

_SHARE = 0.1
"""Share of an entry that is new when it is written again."""
_MOST = 50_000
"""Functions of an entry."""
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


def exact_names(module: str, bodies: Mapping[str, str]) -> dict[str, str]:
    """Name functions by their text and by all that it refers to.

    Args:
        module: the text of the module.
        bodies: texts of some of its functions, by name.
    """
    items = {next(filter(None, found.groups())): found[0] for found in _ITEMS.finditer(module)}
    return {name: _exact_name(f"{name} {body}", items) for name, body in bodies.items()}


def _exact_name(text: str, items: Mapping[str, str]) -> str:
    waiting, found = _USED.findall(text), dict[str, str]()
    while waiting:
        name = waiting.pop()
        # Debug information makes no code, and names places in sources.
        if name in found or (line := items.get(name)) is None or "!DI" in line[:_HEAD]:
            continue
        found[name] = plain_text(line)
        waiting += (each for each in _USED.findall(line[:_HEAD]) if not each.startswith("@"))
    parts = (plain_text(text), *sorted(found.values()))
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:32]


def context_name(module: str) -> str:
    """Name what a module's text says of all of its functions: target, layout and flags."""
    lines = sorted(found[1] or found[0] for found in _FLAG.finditer(module))
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()[:16]


class StoredCosts:
    """An entry of a disk cache with costs of functions.

    Of what several processes add at the same time, some may be lost: it is measured again.

    Args:
        cache: where it is.
        key: of the entry.
    """

    def __init__(self, cache: DiskCache, key: str) -> None:
        self._cache, self._key = cache, key
        self._known = self._read()
        self._n_fresh = 0

    def _read(self) -> dict[str, int]:
        found = self._cache.get_json(self._key)
        return cast("dict[str, int]", found) if isinstance(found, dict) else {}

    def get(self, name: str) -> int | None:
        """Return the cost of a function; None where it is not known."""
        return self._known.get(name)

    def add(self, costs: Mapping[str, int]) -> None:
        """Add the costs of functions of which code was made; they are stored when they are many."""
        self._known.update(costs)
        self._n_fresh += len(costs)
        if self._n_fresh >= _SHARE * len(self._known):
            # What was added last is at the end.
            known = {**self._read(), **self._known}
            self._known = dict(islice(known.items(), max(0, len(known) - _MOST), None))
            self._cache.put_json(self._key, self._known)
            self._n_fresh = 0
