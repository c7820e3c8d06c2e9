"""Edit `Share`: what is computed twice is computed once; no answer changes."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import ScheduleError
from planish.levels.hlo.edits import exclusions
from planish.levels.hlo.edits.draft import Draft
from planish.levels.hlo.edits.edit import GroupRewrite
from planish.levels.hlo.edits.mirror import holder, is_pure
from planish.levels.hlo.ir.mlir import UID, ir

_COMMUTATIVE = frozenset(
    f"stablehlo.{name}" for name in ("add", "and", "maximum", "minimum", "multiply", "or", "xor")
)

_Key = tuple[object, ...]


@dataclass(frozen=True)
class Share(GroupRewrite):
    """Let the users of operations take the same value of an earlier one, in loops also of one before them.

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

    def apply(self, draft: Draft) -> None:
        if not self.ops:
            raise ScheduleError("no operation is named", "Name such as compute what an earlier one does.")
        known = _twins(draft)
        for uid in self.ops:
            exclusions.target(draft, uid)
            if uid not in known:
                raise ScheduleError(f"no operation before '{uid}' computes the same")
            draft.replace(uid, list(draft.op(known[uid]).results))

    @classmethod
    def match(cls, draft: Draft) -> tuple[str, ...]:
        """Find the operations, but for constants, that compute what an earlier one does."""
        live = draft.live()
        return tuple(
            uid
            for uid in _twins(draft)
            if uid in live and draft.mirror.facts[uid].operands and exclusions.is_target(draft, uid)
        )


def _twins(draft: Draft) -> dict[str, str]:
    """Map operations to the first one that computes the same and that they may use."""
    first: dict[str, dict[_Key, str]] = {}
    twins: dict[str, str] = {}
    _search(draft, "", first, twins)
    return twins


def _search(draft: Draft, block: str, first: dict[str, dict[_Key, str]], twins: dict[str, str]) -> None:
    """Search a block, and those in it, which see what is before them."""
    # A copy, for what a block computes is not seen behind it.
    first[block] = dict(first[draft.mirror.facts[holder(block)].block]) if block else {}
    operations = [op.operation for op in draft.block(block).operations]
    for uid, op in zip(draft.mirror.blocks[block], operations, strict=True):
        fact = draft.mirror.facts[uid]
        if is_pure(fact) and not fact.regions:
            known = first[block].setdefault(_key(draft, op, twins), uid)
            if known != uid:
                twins[uid] = known
        elif fact.name in exclusions.OPEN:
            for region in range(fact.regions):
                _search(draft, f"{uid}^{region}", first, twins)


def _key(draft: Draft, op: ir.Operation, twins: dict[str, str]) -> _Key:
    """Return a key that is the same for operations that compute the same."""
    names = [draft.name(value) for value in op.operands]
    owners = [(owner, index) for owner, _, index in (name.partition("#") for name in names)]
    # By the names of their twins, so that what is made of twins is one, too.
    operands = [(twins.get(owner, owner), index) for owner, index in owners]
    if op.name in _COMMUTATIVE:
        operands.sort()
    attributes = tuple((name, op.attributes[name]) for name in sorted(op.attributes) if name != UID)
    return op.name, tuple(operands), attributes, tuple(value.type for value in op.results)
