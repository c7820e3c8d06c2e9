"""Passes that break some modules: lists that hold them would be evaluated for nothing."""

from __future__ import annotations

from collections.abc import Iterable

MERGES = "mergereturn"
"""It gives a function one return, and so puts code between a `musttail` call and its own: that is invalid.

Of the passes of the catalogue it is the only one."""
_CALL = " musttail call "


def within(passes: Iterable[str], ir: str) -> tuple[str, ...]:
    """Leave out what is known to break a module.

    Args:
        passes: as the catalogue writes them.
        ir: the module as LLVM prints it.
    """
    return tuple(text for text in passes if text != MERGES or _CALL not in ir)
