"""The target of a text of IR, and the line for what the text leaves out of it.

The reader needs the data layout first: from it come the alignments that a text does not spell out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_TRIPLE = re.compile(rb'^target triple = "([^"]*)"', re.MULTILINE)
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")


def is_bitcode(ir: bytes) -> bool:
    """Whether it begins as bitcode does."""
    return ir.startswith(_BITCODE)


def processor(triple: bytes) -> bytes:
    """Name the processor that code is made for by default, as clang has it: `x86-64`, else `generic`."""
    return b"x86-64" if triple.startswith((b"x86_64", b"amd64")) else b"generic"


def target_line(ir: bytes, target: Callable[[bytes], tuple[bytes, bytes]]) -> bytes:
    """Make the one line that goes before a text which lacks its data layout or triple.

    Args:
        ir: text or bitcode.
        target: gives the triple and data layout of a triple, an empty one being this host's.

    Returns:
        The line with its end; empty for bitcode, and where nothing is lacking.
    """
    has_layout, has_triple = _has(ir, b"target datalayout"), _has(ir, b"target triple")
    if is_bitcode(ir) or (has_layout and has_triple):
        return b""
    written = _TRIPLE.search(ir) if has_triple else None
    triple, layout = target(written[1] if written else b"")
    lines = [b'target datalayout = "%b"' % layout] * (not has_layout)
    lines += [b'target triple = "%b"' % triple] * (not has_triple)
    # One line, however much is lacking, so that the line numbers of errors are off by one at most.
    return b" ".join(lines) + b"\n"


def _has(ir: bytes, words: bytes) -> bool:
    return ir.startswith(words) or b"\n" + words in ir
