"""Which functions' code depends on whether a function is inlined."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping


class CallRegions:
    """The call graph, up and down.

    Args:
        callers: of each definition.
    """

    def __init__(self, callers: Mapping[str, Collection[str]]) -> None:
        self._callers = callers
        self._callees: dict[str, set[str]] = defaultdict(set)
        for callee, names in callers.items():
            for name in names:
                self._callees[name].add(callee)

    def of(self, name: str, kept: Collection[str]) -> frozenset[str]:
        """Name a function and its callers, and the callers of those that are inlined themselves.

        Args:
            name: of the function.
            kept: functions that are not inlined everywhere.
        """
        found, open_ = {name}, [name]
        while open_:
            for caller in self._callers[open_.pop()]:
                if caller not in found:
                    found.add(caller)
                    # A caller that is inlined away lives on in its own callers, which change with it.
                    if caller not in kept:
                        open_.append(caller)
        return frozenset(found)

    def below(self, names: Iterable[str]) -> frozenset[str]:
        """Name what functions call, directly or not: it may be inlined or not as they are."""
        found = set[str]()
        open_ = list(names)
        while open_:
            fresh = self._callees[open_.pop()] - found
            found |= fresh
            open_ += fresh
        return frozenset(found)
