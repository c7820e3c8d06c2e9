"""From text or bytecode to a module: what cannot be evolved is refused with its line and column."""

from __future__ import annotations

import re

from planish.core import ProgramError
from planish.hlo.ir.bytecode import MAGIC, text_of
from planish.hlo.ir.mlir_context import context, ir
from planish.hlo.ir.sharding import drop_sharding
from planish.hlo.ir.types import tensor_type
from planish.hlo.ir.uids import walk

DIALECTS = ("builtin", "func", "stablehlo", "chlo")

_PLACE = re.compile(r'"[^"]*":(\d+):(\d+)')
_ADVICE = ". If this is intended, please"
"""What follows it is for those who run MLIR's own tools."""
_UNKNOWN = re.compile(r"Dialect `(\w+)' not found|unregistered dialect|custom op '([\w.]+)' is unknown")


def parse(source: str | bytes, name: str = "the module") -> ir.Module:
    """Read a StableHLO module and verify it; how it is spread over devices is left out.

    Args:
        source: text, MLIR bytecode, or a StableHLO portable artifact.
        name: what messages call it, such as the file's path.

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
    """Give what a diagnostic says, without its place, and without advice."""
    found = error.error_diagnostics
    text = found[0].message if found else str(error)
    return text.splitlines()[0].strip().partition(_ADVICE)[0]


def place(location: ir.Location) -> str:
    """Give ", line 3, column 5" of a location in a text; nothing where there is none."""
    found = _PLACE.search(str(location))
    return f", line {found[1]}, column {found[2]}" if found and found[1] != "0" else ""


def _read(source: str | bytes, name: str) -> ir.Module:
    try:
        return ir.Module.parse(source if isinstance(source, str) else _decoded(source, name), context())
    except ir.MLIRError as error:
        raise _malformed(error, name) from error


def _decoded(source: bytes, name: str) -> str:
    if source.startswith(MAGIC):
        return text_of(source, name)
    try:
        return source.decode()
    except UnicodeDecodeError as error:
        raise ProgramError(
            f"{name} is neither text nor MLIR bytecode", "Give StableHLO as UTF-8 text, or as bytecode."
        ) from error


def _malformed(error: ir.MLIRError, name: str) -> ProgramError:
    message = first_line(error)
    where = place(error.error_diagnostics[0].location) if error.error_diagnostics else ""
    if _UNKNOWN.search(message):
        return ProgramError(f"{name}{where}: {message}", f"Known dialects: {', '.join(DIALECTS)}.")
    return ProgramError(f"{name}{where}: {message}", "Give a StableHLO module.")


def _check(op: ir.Operation, name: str) -> None:
    where = f"{name}{place(op.location)}"
    dialect = op.name.partition(".")[0]
    if dialect not in DIALECTS:
        raise ProgramError(
            f"{where}: '{op.name}' is of the dialect '{dialect}'", f"Known dialects: {', '.join(DIALECTS)}."
        )
    types = [value.type for value in op.results]
    types += [value.type for region in op.regions for block in region.blocks for value in block.arguments]
    for type_ in types:
        if isinstance(type_, ir.ShapedType) and tensor_type(type_) is None:
            raise ProgramError(f"{where}: {type_} has a dynamic shape", "Export it with fixed sizes.")
