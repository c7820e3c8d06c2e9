"""Stable ids of operations: a discardable attribute, which clones, texts and compilers keep."""

from __future__ import annotations

from collections.abc import Iterator

from planish.hlo.ir.mlir_context import ir

UID = "planish.uid"


def uid_of(op: ir.Operation | ir.OpView) -> str:
    """Give an operation's id."""
    attribute = op.attributes[UID]
    assert isinstance(attribute, ir.StringAttr)
    return attribute.value


def set_uid(op: ir.Operation | ir.OpView, uid: str) -> None:
    """Give an operation its id."""
    op.attributes[UID] = ir.StringAttr.get(uid, op.context)


def walk(root: ir.Operation | ir.OpView) -> list[ir.Operation]:
    """List an operation and all those inside it, each before its own."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def functions(module: ir.Operation | ir.OpView) -> Iterator[tuple[str, ir.Operation]]:
    """List the functions of a module with their names."""
    for op in module.regions[0].blocks[0].operations:
        if op.operation.name == "func.func":
            name = op.attributes["sym_name"]
            assert isinstance(name, ir.StringAttr)
            yield name.value, op.operation


def number(function: ir.Operation | ir.OpView) -> None:
    """Give each operation inside a function an id: "0", "1", ... in the order of the text."""
    for index, op in enumerate(walk(function)[1:]):
        set_uid(op, str(index))


def strip_uids(root: ir.Operation | ir.OpView) -> None:
    """Take all ids away."""
    for op in walk(root):
        if UID in op.attributes:
            del op.attributes[UID]
