"""Edit `Share`: what is computed twice is computed once; no answer changes."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import ScheduleError
from planish.levels.hlo.edits.edit import GroupRewrite
from planish.levels.hlo.edits.editable import EditableModule
from planish.levels.hlo.edits.op_index import OPEN, holder
from planish.levels.hlo.ir.mlir import UID, ir

_COMMUTATIVE = frozenset(
    f"stablehlo.{name}" for name in ("add", "and", "maximum", "minimum", "multiply", "or", "xor")
)

_Key = tuple[object, ...]


@dataclass(frozen=True)
class Share(GroupRewrite):
    """Replace operations by an earlier one of the same value, in loops also by one before them.

    Two operations are the same where they have one name, one set of attributes and the same operands; of
    sums, products and the like the operands may be in either order. The answer stays, bit by bit. XLA and
    IREE share what they see to be the same themselves: this is of use where they do not, as between a loop
    and what is before it.

    ::

        a = x + y; b = y + x; c = a * b   -- Share(("b",)) -->   a = x + y; c = a * a

    Args:
        ops: operations that are the same as earlier ones.
    """

    exact = True

    def apply(self, module: EditableModule) -> None:
        if not self.ops:
            raise ScheduleError("no operation is named", "Name one or more.")
        known = _twins(module)
        for uid in self.ops:
            module.require_target(uid)
            if uid not in known:
                raise ScheduleError(f"no operation before '{uid}' computes the same")
            module.replace(uid, list(module.op(known[uid]).results))

    @classmethod
    def match(cls, module: EditableModule) -> tuple[str, ...]:
        """Find the operations, but for constants, that compute what an earlier one does."""
        live = module.live()
        return tuple(
            uid
            for uid in _twins(module)
            if uid in live and module.infos[uid].operands and module.is_target(uid)
        )


def _twins(module: EditableModule) -> dict[str, str]:
    """Map operations to the first one that computes the same and that they may use."""
    first: dict[str, dict[_Key, str]] = {}
    twins: dict[str, str] = {}
    _search(module, "", first, twins)
    return twins


def _search(
    module: EditableModule, block: str, first: dict[str, dict[_Key, str]], twins: dict[str, str]
) -> None:
    """Search a block, and those in it, which see what is before them."""
    # A copy, for what a block computes is not seen after it.
    first[block] = dict(first[module.infos[holder(block)].block]) if block else {}
    operations = [op.operation for op in module.block(block).operations]
    for uid, op in zip(module.blocks[block], operations, strict=True):
        info = module.infos[uid]
        if info.is_pure and not info.regions:
            known = first[block].setdefault(_key(module, op, twins), uid)
            if known != uid:
                twins[uid] = known
        elif info.name in OPEN:
            for region in range(info.regions):
                _search(module, f"{uid}^{region}", first, twins)


def _key(module: EditableModule, op: ir.Operation, twins: dict[str, str]) -> _Key:
    """Return a key that is the same for operations that compute the same."""
    names = [module.name(value) for value in op.operands]
    owners = [(owner, index) for owner, _, index in (name.partition("#") for name in names)]
    # By the names of their twins, so that what is made of twins is one, too.
    operands = [(twins.get(owner, owner), index) for owner, index in owners]
    if op.name in _COMMUTATIVE:
        operands.sort()
    attributes = tuple((name, op.attributes[name]) for name in sorted(op.attributes) if name != UID)
    return op.name, tuple(operands), attributes, tuple(value.type for value in op.results)
