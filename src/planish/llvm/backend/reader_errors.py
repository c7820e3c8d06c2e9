"""What LLVM's reader says, as one clear line."""

from __future__ import annotations

import re

from planish.llvm.backend.protocol import IRError

_PRODUCER = re.compile(rb"\(Producer: 'LLVM(\d+)[^']*' Reader:")
_IDENT = re.compile(rb'!"[^"\n]*\bclang version (\d+)\.')


def unreadable(name: str, ir: bytes, said: str, version: str, lines_before: int) -> IRError:
    """Make the error of IR that cannot be read.

    Args:
        name: what the user calls it.
        ir: the text or bitcode.
        said: LLVM's message; of several lines, the first tells.
        version: this LLVM's: "22.1.8".
        lines_before: how many lines were put before the user's.
    """
    first = said.strip().partition("\n")[0].removeprefix(f"{name}:").strip()
    place = re.fullmatch(r"(\d+):(\d+): (?:error: )?(.*)", first)
    if place:
        message = f"{name}:{int(place[1]) - lines_before}:{place[2]}: {place[3]}"
    else:
        message = f"{name}: {first.removeprefix('error: ') or 'it is no LLVM IR'}"
    return _error(message, _writer(ir, said), version)


def invalid(name: str, ir: bytes, told: str, version: str) -> IRError:
    """Make the error of IR that breaks LLVM's rules.

    Args:
        name: what the user calls it.
        ir: the text or bitcode.
        told: what the verifier objects to: a rule, and mostly in the next line the place.
        version: this LLVM's.
    """
    where = " ".join(line.strip() for line in told.splitlines()[:2])
    return _error(f"{name}: the IR is invalid: {where}", _writer(ir, ""), version)


def _error(message: str, writer: int, version: str) -> IRError:
    # IR of a newer LLVM is mostly unreadable for that alone, so the mend is another library.
    if writer <= int(version.partition(".")[0]):
        return IRError(message)
    return IRError(
        f"{message}; it is of a newer LLVM ({writer}) than this one ({version})",
        f"Install LLVM {writer}, or name its library by PLANISH_LIBLLVM.",
    )


def _writer(ir: bytes, said: str) -> int:
    # Bitcode tells who wrote it, and the reader repeats that; text does by the metadata llvm.ident only.
    told = _PRODUCER.search(said.encode(errors="surrogateescape")) or _IDENT.search(ir)
    return int(told[1]) if told else 0
