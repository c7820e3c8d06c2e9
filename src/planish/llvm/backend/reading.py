"""What LLVM's reader says, as one clear line."""

from __future__ import annotations

import re

from planish.llvm.backend.protocol import IRError

_PRODUCER = re.compile(rb"\(Producer: 'LLVM(\d+)[^']*' Reader:")
_IDENT = re.compile(rb'!"[^"\n]*\bclang version (\d+)\.')


def ir_error(name: str, ir: bytes, said: str, version: str, lines_before: int) -> IRError:
    """Make the error of IR that cannot be read.

    Args:
        name: what the user calls it.
        ir: the text or bitcode.
        said: LLVM's message; of several lines, the first tells.
        version: this LLVM's: "22.1.8".
        lines_before: how many lines were put before the user's.
    """
    message = f"{name}:{_what(name, said, lines_before)}"
    writer = _writer(ir, said)
    if writer > int(version.partition(".")[0]):
        return IRError(
            f"{message}; it is of a newer LLVM ({writer}) than this one ({version})",
            f"Install LLVM {writer}, or name its library by PLANISH_LIBLLVM.",
        )
    return IRError(message)


def _what(name: str, said: str, lines_before: int) -> str:
    first = said.strip().partition("\n")[0].removeprefix(f"{name}:").strip()
    place = re.fullmatch(r"(\d+):(\d+): (?:error: )?(.*)", first)
    if place:
        return f"{int(place[1]) - lines_before}:{place[2]}: {place[3]}"
    return " " + (first.removeprefix("error: ") or "it is no LLVM IR")


def _writer(ir: bytes, said: str) -> int:
    # Bitcode tells who wrote it, and the reader repeats that; text does by the metadata llvm.ident only.
    told = _PRODUCER.search(said.encode()) or _IDENT.search(ir)
    return int(told[1]) if told else 0
