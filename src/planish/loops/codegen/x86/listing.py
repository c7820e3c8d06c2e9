"""Machine code as an assembly file: bytes for the assembler, instructions as comments for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iced_x86 import Decoder, FlowControl, Formatter, FormatterSyntax


def assembly(prefix: str, run: Sequence[bytes], prepare: Sequence[bytes]) -> str:
    """Write functions as GNU assembly.

    Args:
        prefix: functions are named PREFIX_run0, ... and PREFIX_prepare0, ...
        run: machine code of the body's functions.
        prepare: machine code of the ahead part's functions.
    """
    named = [(f"{prefix}_run{i}", code) for i, code in enumerate(run)]
    named += [(f"{prefix}_prepare{i}", code) for i, code in enumerate(prepare)]
    parts = ["\t.text"]
    for name, code in named:
        parts += ["\t.p2align 6", f"\t.globl {name}", f"\t.type {name}, @function", f"{name}:"]
        parts += _lines(code)
        parts.append(f"\t.size {name}, .-{name}")
    return "\n".join([*parts, '\t.section .note.GNU-stack,"",@progbits', ""])


def _lines(code: bytes) -> Iterator[str]:
    """One line for each instruction, then the constants."""
    formatter = Formatter(FormatterSyntax.INTEL)
    decoder = Decoder(64, code)
    for instruction in decoder:
        data = code[instruction.ip : instruction.next_ip]
        yield f"\t.byte {','.join(f'0x{b:02x}' for b in data)}\t# {formatter.format(instruction)}"
        # A function has one return, at its end: behind it are no instructions, but padding and constants.
        if instruction.flow_control == FlowControl.RETURN:
            break
    rest = code[decoder.ip :]
    for start in range(0, len(rest), 16):
        yield f"\t.byte {','.join(f'0x{b:02x}' for b in rest[start : start + 16])}"
