"""Edit `Hoist`: what is the same in every step of a loop is computed before it; no answer changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from planish.core import ScheduleError
from planish.levels.hlo.edits import exclusions
from planish.levels.hlo.edits.draft import Draft, Writer
from planish.levels.hlo.edits.edit import GroupRewrite
from planish.levels.hlo.edits.mirror import FORMS, holder, is_pure
from planish.levels.hlo.ir.mlir import Value, ir, type_of, uid_of, walk

LOOP = "stablehlo.while"


@dataclass(frozen=True)
class Hoist(GroupRewrite):
    """Compute operations of a loop before it, with what they need of the loop.

    They depend on what comes from outside, on constants, and on what the loop carries without changing it, as
    the weights of a recurrent network. The answer stays, bit by bit.

    ::

        while ...: h = h @ transpose(w)   -- Hoist(("4",)) -->   t = transpose(w); while ...: h = h @ t

    Args:
        ops: operations of loops.
    """

    exact = True

    def apply(self, draft: Draft) -> None:
        if not self.ops:
            raise ScheduleError("no operation is named", "Name operations of loops.")
        for number, uid in enumerate(self.ops):
            block = exclusions.target(draft, uid).block
            if not block or draft.mirror.facts[holder(block)].name != LOOP:
                raise ScheduleError(f"operation '{uid}' is in no loop")
            if uid not in _same_in_each_step(draft, holder(block)):
                raise ScheduleError(f"operation '{uid}' differs from step to step, or does more than compute")
            outside = _Outside(draft, holder(block), f"{self.mark}.{number}")
            draft.replace(uid, outside.results(draft.op(uid)))

    @classmethod
    def match(cls, draft: Draft) -> tuple[str, ...]:
        """Find what may be computed before its loop, and is worth it.

        That is what depends on more than constants, is more than a form of its operand, and is used by what
        differs from step to step. Of loops in loops it comes out by one.
        """
        live = draft.live()
        loops = [uid for uid, fact in draft.mirror.facts.items() if fact.name == LOOP and uid in live]
        return tuple(
            uid
            for loop in loops
            if exclusions.is_target(draft, loop)
            for uid in _worth(draft, loop)
            if uid in live
        )


def same_in_each_step(draft: Draft, value: Value, block: str) -> bool:
    """Return whether a value is the same in each step of a block's loop; outside of loops it is."""
    loop = holder(block) if block else ""
    if not loop or draft.mirror.facts[loop].name != LOOP:
        return True
    name = draft.name(value)
    if isinstance(value.owner, ir.Block):
        return not name.startswith(f"{loop}^") or name in _carried(draft, loop)
    owner = uid_of(value.owner)
    return holder(draft.mirror.facts[owner].block) != loop or owner in _same_in_each_step(draft, loop)


def _worth(draft: Draft, loop: str) -> Iterator[str]:
    same = _same_in_each_step(draft, loop)
    computed = [uid for uid, varies in same.items() if varies and draft.mirror.facts[uid].name not in FORMS]
    for uid in computed:
        if any(user not in computed for users in draft.users(uid) for user, _ in users):
            yield uid


def _same_in_each_step(draft: Draft, loop: str) -> dict[str, bool]:
    """List the operations of a loop that give the same in each step; true where that is no constant."""
    kept = set(_carried(draft, loop))
    found: dict[str, bool] = {}

    def varies(value: Value) -> bool | None:
        """Return whether a value is more than a constant; None where it differs from step to step."""
        if isinstance(value.owner, ir.Block):
            name = draft.name(value)
            inside = "^" in name and holder(name.rpartition("#")[0]) == loop
            return None if inside and name not in kept else True
        owner = uid_of(value.owner)
        if holder(draft.mirror.facts[owner].block) == loop:
            return found.get(owner)
        return draft.mirror.facts[owner].name != "stablehlo.constant"

    for region in range(2):
        for uid in draft.mirror.blocks[f"{loop}^{region}"]:
            needs = [varies(value) for value in _needed(draft.op(uid))]
            if is_pure(draft.mirror.facts[uid]) and None not in needs:
                found[uid] = any(needs)
    return found


def _needed(op: ir.Operation) -> list[Value]:
    """List what an operation needs, of what its regions use that which is not made in them."""
    inner = set(walk(op))
    values = [value for each in walk(op) for value in each.operands]
    return [value for value in values if _owner(value) not in inner]


def _owner(value: Value) -> ir.Operation:
    owner = value.owner
    return owner.owner.operation if isinstance(owner, ir.Block) else owner.operation


def _carried(draft: Draft, loop: str) -> dict[str, int]:
    """Name what a loop carries unchanged, in both regions, with which of its operands that is."""
    body = f"{loop}^1"
    given_back = [draft.name(value) for value in draft.op(draft.mirror.blocks[body][-1]).operands]
    positions = [position for position, name in enumerate(given_back) if name == f"{body}#{position}"]
    return {f"{loop}^{region}#{position}": position for region in range(2) for position in positions}


@dataclass
class _Outside:
    """Writes before a loop what is in it."""

    draft: Draft
    loop: str
    mark: str
    written: dict[str, list[Value]] = field(default_factory=dict[str, list[Value]])

    def results(self, op: ir.Operation) -> list[Value]:
        """Write an operation with what it needs, once."""
        uid = uid_of(op)
        if uid not in self.written:
            operands = [self._value(value) for value in op.operands]
            write = Writer(self.draft, self.loop, f"{self.mark}.{len(self.written)}")
            self.written[uid] = write.again(op, operands, [type_of(value) for value in op.results])
        return self.written[uid]

    def _value(self, value: Value) -> Value:
        if isinstance(value.owner, ir.Block):
            position = _carried(self.draft, self.loop).get(self.draft.name(value))
            return value if position is None else self.draft.op(self.loop).operands[position]
        owner = value.owner.operation
        if holder(self.draft.mirror.facts[uid_of(owner)].block) != self.loop:
            return value
        return self.results(owner)[ir.OpResult(value).result_number]
