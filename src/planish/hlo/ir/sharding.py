"""How a module is spread over devices, which planish does not ask: it runs on one."""

from __future__ import annotations

from planish.hlo.ir.mlir_context import ir
from planish.hlo.ir.uids import walk

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
