"""Bytecode into text, in a process of its own: the reader of MLIR crashes where the bytes are broken."""

from __future__ import annotations

import sys

from planish.core import ProgramError
from planish.isolation import run_tool

MAGIC = b"ML\xefR"
BROKEN = "it is broken"
SECONDS = 120


def text_of(source: bytes, name: str) -> str:
    """Translate MLIR bytecode, or a StableHLO portable artifact, into text with its locations.

    Raises:
        ProgramError: it cannot be read.
    """
    command = [sys.executable, "-c", "from planish.hlo.ir.bytecode import main; main()"]
    try:
        ran = run_tool(command, seconds=SECONDS, given=source)
    except TimeoutError as error:
        raise _unreadable(name, BROKEN) from error
    if ran.code:
        said = ran.message.strip().splitlines()
        # Code 1 is main's own word; any other is a crash, whose last line would tell the user nothing.
        raise _unreadable(name, said[-1] if ran.code == 1 and said else BROKEN)
    return ran.output.decode()


def _unreadable(name: str, reason: str) -> ProgramError:
    return ProgramError(f"{name} cannot be read as bytecode: {reason}", "Write it again.")


def main() -> None:
    """Translate the standard input."""
    from planish.hlo.ir.mlir_context import context, ir, stablehlo

    messages: list[str] = []

    def collect(diagnostic: ir.Diagnostic) -> bool:
        try:
            messages.append(diagnostic.message.splitlines()[0])
        except RuntimeError:
            # The names of a broken file may be no text; an exception must not pass through the reader.
            messages.append(BROKEN)
        return True

    context().attach_diagnostic_handler(collect)
    try:
        module = stablehlo.deserialize_portable_artifact(context(), sys.stdin.buffer.read())
        text = module.operation.get_asm(enable_debug_info=True)
    except (ValueError, RuntimeError):
        sys.exit(messages[0] if messages else BROKEN)
    assert isinstance(text, str)
    sys.stdout.write(text)
