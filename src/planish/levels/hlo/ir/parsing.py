"""Parsing of StableHLO: text or bytecode to a verified module.

What cannot be evolved is refused with its line and column. Bytecode is translated in a process of its own,
since the reader of MLIR crashes on broken bytes. Sharding is dropped: planish runs a module on one device.
"""

from __future__ import annotations

import re
import sys

from planish.core import ProgramError
from planish.levels.hlo.ir.mlir import context, ir, stablehlo, tensor_type, walk
from planish.sandbox.tool import run_tool

MAGIC = b"ML\xefR"
BROKEN = "it is broken"
SECONDS = 120


def text_of(source: bytes, name: str) -> str:
    """Translate MLIR bytecode, or a StableHLO portable artifact, into text with its locations.

    Raises:
        ProgramError: it cannot be read.
    """
    command = [sys.executable, "-c", "from planish.levels.hlo.ir.parsing import main; main()"]
    try:
        ran = run_tool(command, seconds=SECONDS, given=source)
    except TimeoutError as error:
        raise _unreadable(name, BROKEN) from error
    if ran.code:
        said = ran.message.strip().splitlines()
        # Code 1 is main's own word; any other is a crash, whose last line would not help the user.
        raise _unreadable(name, said[-1] if ran.code == 1 and said else BROKEN)
    return ran.output.decode()


def _unreadable(name: str, reason: str) -> ProgramError:
    return ProgramError(f"{name} cannot be read as bytecode: {reason}", "Write it again.")


def main() -> None:
    """Translate the standard input."""
    messages: list[str] = []

    def collect(diagnostic: ir.Diagnostic) -> bool:
        try:
            messages.append(diagnostic.message.splitlines()[0])
        except RuntimeError:
            # The names of a broken file may not be text; an exception must not pass through the reader.
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


_PASSED_ON = ("sdy.sharding_constraint", "sdy.reshard")
"""Operations whose result is their operand."""


def drop_sharding(root: ir.Operation) -> None:
    """Take the meshes, constraints and attributes of Shardy out of a module; its answers stay."""
    for op in list(walk(root)):
        if op.name in _PASSED_ON:
            op.results[0].replace_all_uses_with(op.operands[0])
        if op.name in _PASSED_ON or op.name == "sdy.mesh":
            op.erase()
            continue
        for name in [name for name in op.attributes if name.startswith("sdy.")]:
            del op.attributes[name]


DIALECTS = ("builtin", "func", "stablehlo", "chlo")

_LOCATION = re.compile(r'"[^"]*":(\d+):(\d+)')
_ADVICE = ". If this is intended, please"
"""Begins advice for users of MLIR's own tools, which is cut off."""
_UNKNOWN = re.compile(r"Dialect `(\w+)' not found|unregistered dialect|custom op '([\w.]+)' is unknown")


def parse(source: str | bytes, name: str = "the module") -> ir.Module:
    """Read a StableHLO module of text, MLIR bytecode or a portable artifact, and verify it.

    How it is spread over devices is left out. The name is what messages call it.

    Raises:
        ProgramError: it is malformed, uses another dialect, or has a dynamic shape; the message says where.
    """
    module = _read(source, name)
    # Before the check, which knows no operations of Shardy.
    drop_sharding(module.operation)
    for op in walk(module.operation):
        _check(op, name)
    return module


def first_line(error: ir.MLIRError) -> str:
    """Return the text of a diagnostic, without its location, and without advice."""
    found = error.error_diagnostics
    text = found[0].message if found else str(error)
    return text.splitlines()[0].strip().partition(_ADVICE)[0]


def line_and_column(location: ir.Location) -> str:
    """Return ", line 3, column 5" of a location in a text; nothing where there is none."""
    found = _LOCATION.search(str(location))
    return f", line {found[1]}, column {found[2]}" if found and found[1] != "0" else ""


def _read(source: str | bytes, name: str) -> ir.Module:
    text = source if isinstance(source, str) else _decoded(source, name)
    try:
        return ir.Module.parse(text, context())
    except ir.MLIRError as error:
        message = first_line(error)
        where = line_and_column(error.error_diagnostics[0].location) if error.error_diagnostics else ""
        known = f"Known dialects: {', '.join(DIALECTS)}."
        hint = known if _UNKNOWN.search(message) else "Give a StableHLO module."
        raise ProgramError(f"{name}{where}: {message}", hint) from error


def _decoded(source: bytes, name: str) -> str:
    if source.startswith(MAGIC):
        return text_of(source, name)
    try:
        return source.decode()
    except UnicodeDecodeError as error:
        what = f"{name} is neither text nor MLIR bytecode"
        raise ProgramError(what, "Give StableHLO as UTF-8 text, or as bytecode.") from error


def _check(op: ir.Operation, name: str) -> None:
    where = f"{name}{line_and_column(op.location)}"
    dialect = op.name.partition(".")[0]
    if dialect not in DIALECTS:
        what = f"{where}: '{op.name}' is of the dialect '{dialect}'"
        raise ProgramError(what, f"Known dialects: {', '.join(DIALECTS)}.")
    if op.name == "stablehlo.rng":
        what = f"{where}: 'stablehlo.rng' makes the answers random, so candidates cannot be compared"
        raise ProgramError(what, "Make the numbers an input, or use 'stablehlo.rng_bit_generator'.")
    types = [value.type for value in op.results]
    types += [value.type for region in op.regions for block in region.blocks for value in block.arguments]
    for type_ in types:
        if isinstance(type_, ir.ShapedType) and tensor_type(type_) is None:
            raise ProgramError(f"{where}: {type_} has a dynamic shape", "Export it with fixed sizes.")
