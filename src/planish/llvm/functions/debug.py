"""Taking debug information out of a text: it drags in the whole source's description, and makes no code."""

from __future__ import annotations

import re

_LOCATION = re.compile(r",? !dbg !(?:\d+|DI\w+\([^\n]*?\))")
_LINE = re.compile(
    r"^[ \t]*(?:#dbg_\w+\(|(?:tail )?call void (?:\([^)\n]*\) )?@llvm\.dbg\.)[^\n]*\n", re.MULTILINE
)
_NODE = re.compile(r"(!\d+ = )(?:distinct )?!DI")


def without_debug(text: str) -> str:
    """Drop debug records, calls of debug intrinsics, and attached locations.

    A node that describes debug information becomes an empty one, for others may name it (a loop's).
    """
    if "!dbg" in text:
        text = _LOCATION.sub("", text)
    if "#dbg_" in text or "@llvm.dbg." in text:
        text = _LINE.sub("", text)
    node = _NODE.match(text)
    return f"{node[1]}!{{}}" if node else text
