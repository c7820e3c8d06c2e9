"""Edit `Hoist`: what is the same in every step of a loop is computed before it; no answer changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from planish.core import ScheduleError
from planish.levels.hlo.edits.edit import GroupRewrite
from planish.levels.hlo.edits.editable import EditableModule, OpBuilder
from planish.levels.hlo.edits.op_index import FORMS, holder
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

    def rewrite(self, module: EditableModule, uid: str, id_prefix: str) -> None:
        loop = holder(module.infos[uid].block)
        if not loop or module.infos[loop].name != LOOP:
            raise ScheduleError(f"operation '{uid}' is in no loop")
        if uid not in _same_in_each_step(module, loop):
            raise ScheduleError(f"operation '{uid}' differs from step to step, or does more than compute")
        module.replace(uid, _Outside(module, loop, id_prefix).results(module.op(uid)))

    @classmethod
    def match(cls, module: EditableModule) -> tuple[str, ...]:
        """Find what may be computed before its loop, and is worth it.

        That is what depends on more than constants, is more than a form of its operand, and is used by what
        differs from step to step. Of loops in loops it comes out by one.
        """
        live = module.live()
        loops = [uid for uid, info in module.infos.items() if info.name == LOOP and uid in live]
        return tuple(
            uid for loop in loops if module.is_target(loop) for uid in _worth(module, loop) if uid in live
        )


def same_in_each_step(module: EditableModule, value: Value, block: str) -> bool:
    """Return whether a value is the same in each step of a block's loop; outside of loops it is."""
    loop = holder(block)
    if not loop or module.infos[loop].name != LOOP:
        return True
    name = module.name(value)
    if isinstance(value.owner, ir.Block):
        return not name.startswith(f"{loop}^") or name in _carried(module, loop)
    owner = uid_of(value.owner)
    return holder(module.infos[owner].block) != loop or owner in _same_in_each_step(module, loop)


def _worth(module: EditableModule, loop: str) -> Iterator[str]:
    same = _same_in_each_step(module, loop)
    computed = [uid for uid, varies in same.items() if varies and module.infos[uid].name not in FORMS]
    for uid in computed:
        if any(user not in computed for users in module.users(uid) for user, _ in users):
            yield uid


def _same_in_each_step(module: EditableModule, loop: str) -> dict[str, bool]:
    """List the operations of a loop that give the same in each step; true where that is not a constant."""
    kept = set(_carried(module, loop))
    found: dict[str, bool] = {}

    def varies(value: Value) -> bool | None:
        """Return whether a value is more than a constant; None where it differs from step to step."""
        if isinstance(value.owner, ir.Block):
            name = module.name(value)
            inside = "^" in name and holder(name.rpartition("#")[0]) == loop
            return None if inside and name not in kept else True
        owner = uid_of(value.owner)
        if holder(module.infos[owner].block) == loop:
            return found.get(owner)
        return module.infos[owner].name != "stablehlo.constant"

    for region in range(2):
        for uid in module.blocks[f"{loop}^{region}"]:
            needs = [varies(value) for value in _needed(module.op(uid))]
            if module.infos[uid].is_pure and None not in needs:
                found[uid] = any(needs)
    return found


def _needed(op: ir.Operation) -> list[Value]:
    """List the operands of an operation, and the values that its regions use but do not define."""

    def owner(value: Value) -> ir.Operation:
        made = value.owner
        return made.owner.operation if isinstance(made, ir.Block) else made.operation

    inner = set(walk(op))
    return [value for each in walk(op) for value in each.operands if owner(value) not in inner]


def _carried(module: EditableModule, loop: str) -> dict[str, int]:
    """Name what a loop carries unchanged, in both regions, with which of its operands that is."""
    body = f"{loop}^1"
    given_back = [module.name(value) for value in module.op(module.blocks[body][-1]).operands]
    positions = [position for position, name in enumerate(given_back) if name == f"{body}#{position}"]
    return {f"{loop}^{region}#{position}": position for region in range(2) for position in positions}


@dataclass
class _Outside:
    """Writes before a loop what is in it."""

    module: EditableModule
    loop: str
    id_prefix: str
    written: dict[str, list[Value]] = field(default_factory=dict[str, list[Value]])

    def results(self, op: ir.Operation) -> list[Value]:
        """Write an operation with what it needs, once."""
        uid = uid_of(op)
        if uid not in self.written:
            operands = [self._value(value) for value in op.operands]
            build = OpBuilder(self.module, self.loop, f"{self.id_prefix}.{len(self.written)}")
            self.written[uid] = build.again(op, operands, [type_of(value) for value in op.results])
        return self.written[uid]

    def _value(self, value: Value) -> Value:
        if isinstance(value.owner, ir.Block):
            position = _carried(self.module, self.loop).get(self.module.name(value))
            return value if position is None else self.module.op(self.loop).operands[position]
        owner = value.owner.operation
        if holder(self.module.infos[uid_of(owner)].block) != self.loop:
            return value
        return self.results(owner)[ir.OpResult(value).result_number]
