"""The target of a text of IR: what it says of it, and the lines for what it leaves out.

The reader needs the data layout first: from it come the alignments that a text does not spell out.
"""

from __future__ import annotations

import re

from planish.llvm.backend.capi.machine import Machines

_TRIPLE = re.compile(rb'^target triple = "([^"]*)"', re.MULTILINE)
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")


def target_line(ir: bytes, machines: Machines) -> bytes:
    """Make the one line that goes before a text which lacks its data layout or triple.

    Returns:
        The line with its end; empty for bitcode, and where nothing is lacking.

    Raises:
        TargetError: this LLVM makes no code for the text's triple.
    """
    if ir.startswith(_BITCODE):
        return b""
    has_layout, has_triple = _has(ir, b"target datalayout"), _has(ir, b"target triple")
    if has_layout and has_triple:
        return b""
    written = _TRIPLE.search(ir) if has_triple else None
    machine = machines.of(written[1] if written else b"")
    layout = b"" if has_layout else b'target datalayout = "%b" ' % machine.layout_text
    triple = b"" if has_triple else b'target triple = "%b"' % machine.triple
    return layout + triple + b"\n"


def _has(ir: bytes, words: bytes) -> bool:
    return ir.startswith(words) or b"\n" + words in ir
