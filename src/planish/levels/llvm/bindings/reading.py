"""Reading IR: the target that the text leaves out, and the errors of LLVM's reader and verifier.

The reader needs the data layout first: from it come the alignments that a text does not spell out. So a text
without one gets a line before it, and errors count lines as the user does.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from planish.levels.llvm.bindings.protocol import IRError

_TRIPLE = re.compile(rb'^target triple = "([^"]*)"', re.MULTILINE)
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")


def is_bitcode(ir: bytes) -> bool:
    """Return whether it begins as bitcode does."""
    return ir.startswith(_BITCODE)


def processor(triple: bytes) -> bytes:
    """Name the processor that code is made for by default, as clang has it: `x86-64`, else `generic`."""
    return b"x86-64" if triple.startswith((b"x86_64", b"amd64")) else b"generic"


def target_line(ir: bytes, target: Callable[[bytes], tuple[bytes, bytes]]) -> bytes:
    """Make the one line that goes before a text which lacks its data layout or triple.

    Args:
        ir: text or bitcode.
        target: returns the triple and data layout of a triple, an empty one being this host's.

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


_PRODUCER = re.compile(rb"\(Producer: 'LLVM(\d+)[^']*' Reader:")
_IDENT = re.compile(rb'!"[^"\n]*\bclang version (\d+)\.')


def unreadable(name: str, ir: bytes, said: str, version: str, lines_before: int) -> IRError:
    """Make the error of IR that cannot be read.

    Args:
        name: what the user calls it.
        ir: the text or bitcode.
        said: LLVM's message; of several lines, the first one counts.
        version: this LLVM's: "22.1.8".
        lines_before: how many lines were put before the user's.
    """
    first = said.strip().partition("\n")[0].removeprefix(f"{name}:").strip()
    location = re.fullmatch(r"(\d+):(\d+): (?:error: )?(.*)", first)
    if location:
        message = f"{name}:{int(location[1]) - lines_before}:{location[2]}: {location[3]}"
    else:
        message = f"{name}: {first.removeprefix('error: ') or 'not valid LLVM IR'}"
    return _error(message, _writer(ir, said), version)


def invalid(name: str, ir: bytes, violation: str, version: str) -> IRError:
    """Make the error of IR that breaks LLVM's rules.

    Args:
        name: what the user calls it.
        ir: the text or bitcode.
        violation: the verifier's message: a rule, and mostly in the next line where it is broken.
        version: this LLVM's.
    """
    where = " ".join(line.strip() for line in violation.splitlines()[:2])
    return _error(f"{name}: the IR is invalid: {where}", _writer(ir, ""), version)


def _error(message: str, writer: int, version: str) -> IRError:
    # IR of a newer LLVM is mostly unreadable for that alone, so another library is what helps.
    if writer <= int(version.partition(".")[0]):
        return IRError(message)
    return IRError(
        f"{message}; it is of a newer LLVM ({writer}) than this one ({version})",
        f"Install LLVM {writer}, or name its library by PLANISH_LIBLLVM.",
    )


def _writer(ir: bytes, said: str) -> int:
    # Bitcode names its producer, and the reader repeats that; text does by the metadata llvm.ident only.
    producer = _PRODUCER.search(said.encode(errors="surrogateescape")) or _IDENT.search(ir)
    return int(producer[1]) if producer else 0
