"""What a module computes: its canonical hash, and which operations its results need."""

from __future__ import annotations

from functools import cache

from jaxlib.mlir import passmanager

from planish.core import content_hash
from planish.hlo.ir.mlir_context import context, ir
from planish.hlo.ir.printing import printed
from planish.hlo.ir.uids import functions, strip_uids, uid_of, walk


def canonical_hash(root: ir.Operation | ir.OpView) -> str:
    """Name what a module computes: without common subexpressions, dead code and ids, in order of use."""
    copy = root.operation.clone().operation
    strip_uids(copy)  # else equal operations would differ
    _passes("cse,trivial-dce").run(copy)
    for _, function in functions(copy):
        # SSA fixes no order, so modules that differ by moved operations alone have one name.
        _order_by_use(function.regions[0].blocks[0])
    return content_hash(printed(copy))


def live_uids(root: ir.Operation | ir.OpView, function: str) -> frozenset[str]:
    """List the ids of a function's operations that its results need."""
    copy = root.operation.clone().operation
    # Without cse: that would take ids of equal operations away, which are all alive.
    _passes("trivial-dce").run(copy)
    return frozenset(uid_of(op) for op in walk(dict(functions(copy))[function])[1:])


@cache
def _passes(names: str) -> passmanager.PassManager:
    passes = passmanager.PassManager.parse(f"builtin.module(func.func({names}))", context())
    # The module was verified when it was edited, and these passes keep it valid.
    passes.enable_verifier(False)
    return passes


def _order_by_use(block: ir.Block) -> None:
    """Put the operations into the order in which those without users, and then the last one, need them."""
    operations = [op.operation for op in block.operations]
    end, here, placed = operations[-1], set(operations), set[ir.Operation]()
    # What is unused and still here has effects.
    unused = [op for op in operations[:-1] if not any(True for result in op.results for _ in result.uses)]
    # A stack and no recursion: chains of operations are longer than Python's own stack is deep.
    stack = [(op, False) for op in (end, *reversed(unused))]
    while stack:
        op, ready = stack.pop()
        if op in placed:
            continue
        if ready:
            placed.add(op)
            if op != end:
                op.move_before(end)
            continue
        stack.append((op, True))
        stack.extend((needed, False) for needed in reversed(_needed(op)) if needed in here)


def _needed(op: ir.Operation) -> list[ir.Operation]:
    """List what made the operands of an operation, and of those inside it."""
    users = walk(op) if len(op.regions) else [op]
    owners = [value.owner for user in users for value in user.operands]
    return [owner.operation for owner in owners if not isinstance(owner, ir.Block)]
