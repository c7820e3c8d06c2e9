"""Exclusions: terminators, the regions of reductions, and what reductions start from, which no edit changes.

XLA drops the start of a reduction over one element and reorders the others, so that a changed start or region
means different things to different compilers: such a win would be none.
"""

from __future__ import annotations

from planish.core import ScheduleError
from planish.levels.hlo.edits.draft import Draft
from planish.levels.hlo.edits.mirror import Fact, holder
from planish.levels.hlo.ir.mlir import ir, uid_of, walk

OPEN = frozenset({"stablehlo.while", "stablehlo.case", "stablehlo.if"})
"""Operations inside whose regions edits may happen."""

TERMINATORS = frozenset({"func.return", "stablehlo.return"})

_STARTED = frozenset({"stablehlo.reduce", "stablehlo.reduce_window"})


def starts(name: str, operands: int) -> range:
    """Return the positions of an operation's operands from which a reduction starts."""
    if name in _STARTED:
        return range(operands // 2, operands)  # as many starts as inputs, behind them
    if name == "stablehlo.select_and_scatter":
        return range(2, 3)  # operand, source, start
    return range(0)


def fixed_operations(function: ir.Operation | ir.OpView) -> frozenset[str]:
    """Find the operations that the starts of reductions are computed from."""
    fixed: set[str] = set()
    waiting = [op.operands[i] for op in walk(function) for i in starts(op.name, len(op.operands))]
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, ir.Block) or uid_of(owner) in fixed:
            continue
        fixed.add(uid_of(owner))
        waiting.extend(owner.operands)
    return frozenset(fixed)


def is_open(draft: Draft, fact: Fact) -> bool:
    """Return whether edits may happen in the block that an operation is in."""
    while fact.block:
        fact = draft.mirror.facts[holder(fact.block)]
        if fact.name not in OPEN:
            return False
    return True


def is_target(draft: Draft, uid: str) -> bool:
    """Return whether an operation may be changed."""
    fact = draft.mirror.facts[uid]
    return fact.name not in TERMINATORS and uid not in draft.fixed and is_open(draft, fact)


def targets(draft: Draft, *names: str) -> list[str]:
    """List the operations of some names, else all, that may be changed and that the results need."""
    live = draft.live()
    return [
        uid
        for uid, fact in draft.mirror.facts.items()
        if uid in live and (not names or fact.name in names) and is_target(draft, uid)
    ]


def target(draft: Draft, uid: str) -> Fact:
    """Check that an operation may be changed, and return its facts; else raise ScheduleError."""
    fact = insertion_point(draft, uid)
    if not is_target(draft, uid):
        raise ScheduleError(
            f"operation '{uid}' ({fact.name}) may not be changed", "It ends a block or starts a sum."
        )
    return fact


def insertion_point(draft: Draft, uid: str) -> Fact:
    """Check that something may be put before an operation, and return its facts; else raise ScheduleError."""
    fact = draft.mirror.fact(uid)
    if not is_open(draft, fact):
        raise ScheduleError(
            f"operation '{uid}' ({fact.name}) is inside a reduction", "Edit the reduction itself."
        )
    return fact


def use(draft: Draft, uid: str, index: int) -> Fact:
    """Check that an operand may be replaced, and return the operation's facts; else raise ScheduleError."""
    fact = target(draft, uid)
    if index in starts(fact.name, len(fact.operands)):
        raise ScheduleError(f"operand {index} of operation '{uid}' ({fact.name}) is what it starts from")
    return fact
