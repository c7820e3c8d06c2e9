"""Edits of which operations there are, and where: copies, deletions, moves and swaps."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import ScheduleError
from planish.hlo.edits import exclusions
from planish.hlo.edits.edit import Edit, Repair, repair, replace_uses
from planish.hlo.edits.module_draft import Draft, Source
from planish.hlo.edits.resize import Resize


@dataclass(frozen=True)
class CopyOp(Edit):
    """Copy an operation to another place, and let an operation use the copy.

    ::

        a = f(x); b = g(y); c = h(b)   -- CopyOp("a", "c", ((0, "b#0", ()),), "c", 0) -->
        a = f(x); b = g(y); d = f(b); c = h(d)

    Args:
        op: what is copied.
        before: the operation that the copy is put before.
        operands: what the copy uses instead of the original's operands.
        user: the operation that uses the copy's first result; empty for none.
        index: which of its operands.
        resize: how the result is resized for it.
    """

    op: str
    before: str
    operands: tuple[Repair, ...] = ()
    user: str = ""
    index: int = 0
    resize: Resize = ()

    def apply(self, draft: Draft) -> None:
        fact = exclusions.target(draft, self.op)
        exclusions.place(draft, self.before)
        draft.copy(self.op, self.mark, self.before)
        repair(draft, self.mark, fact.name, self.operands, self.mark)
        if self.user:
            exclusions.use(draft, self.user, self.index)
            block = draft.mirror.fact(self.before).block
            # The user may be inside another operation of the block: the value must be there before that one.
            value = draft.resized(
                (f"{self.mark}#0", self.resize), draft.mirror.ancestor(self.user, block), f"{self.mark}.u"
            )
            draft.set_operand(self.user, self.index, value)


@dataclass(frozen=True)
class DeleteOp(Edit):
    """Delete an operation; other values take the places of its results.

    ::

        a = f(x); b = g(a)   -- DeleteOp("a", (("arg0", ()),)) -->   b = g(x)

    Args:
        op: what is deleted.
        values: for each result, what its users take instead, and how it is resized.
    """

    op: str
    values: tuple[Source, ...]

    def apply(self, draft: Draft) -> None:
        exclusions.target(draft, self.op)
        replace_uses(draft, self.op, self.values, draft.users(self.op), self.mark)
        draft.erase(self.op)


@dataclass(frozen=True)
class MoveOp(Edit):
    """Put an operation elsewhere in its block.

    ::

        a = f(x); b = g(a)   -- MoveOp("b", "a", ((0, "arg0", ()),)) -->   b = g(x); a = f(x)

    Args:
        op: what is moved.
        before: the operation that it is put before.
        operands: what it uses instead of values that come later than its new place.
        values: for each result, what users before its new place take instead; may be left out when moving up.
    """

    op: str
    before: str
    operands: tuple[Repair, ...] = ()
    values: tuple[Source, ...] = ()

    def apply(self, draft: Draft) -> None:
        fact = exclusions.target(draft, self.op)
        if exclusions.place(draft, self.before).block != fact.block:
            raise ScheduleError(
                f"cannot move operation '{self.op}' before '{self.before}'", "Both are of one block."
            )
        replace_uses(draft, self.op, self.values, self._broken(draft, fact.block), self.mark)
        draft.move(self.op, self.before)
        repair(draft, self.op, fact.name, self.operands, self.mark)

    def _broken(self, draft: Draft, block: str) -> list[list[tuple[str, int]]]:
        """List the uses that stand before the new place."""
        limit = draft.mirror.position(self.before)
        return [
            [(uid, i) for uid, i in users if draft.mirror.position(draft.mirror.ancestor(uid, block)) < limit]
            for users in draft.users(self.op)
        ]


@dataclass(frozen=True)
class SwapOps(Edit):
    """Exchange two operations of a block: each stands in the other's place and has the other's users.

    ::

        a = f(x); b = g(a); c = h(b)   -- SwapOps("a", "b", ((0, "arg0", ()),)) -->
        b = g(x); a = f(x); c = h(a)

    Args:
        a: the earlier one, with one result.
        b: the later one, with one result.
        operands: what `b` uses instead of values that come later than its new place.
        to_a: how the result of `b` is resized for the users of `a`.
        to_b: how the result of `a` is resized for the users of `b`.
    """

    a: str
    b: str
    operands: tuple[Repair, ...] = ()
    to_a: Resize = ()
    to_b: Resize = ()

    def apply(self, draft: Draft) -> None:
        a, b = exclusions.target(draft, self.a), exclusions.target(draft, self.b)
        if a.block != b.block or draft.mirror.position(self.a) >= draft.mirror.position(self.b):
            raise ScheduleError(f"cannot swap operations '{self.a}' and '{self.b}'", "The first comes first.")
        if len(a.results) != 1 or len(b.results) != 1:
            raise ScheduleError("only operations with one result are swapped")
        order = draft.mirror.blocks[a.block]
        after_a, after_b = (order[order.index(uid) + 1] for uid in (self.a, self.b))
        # b's own use of a is repaired with its operands, for it comes before a from here on.
        of_a = [(uid, i) for uid, i in draft.users(self.a)[0] if uid != self.b]
        of_b = draft.users(self.b)[0]
        draft.move(self.b, self.a)
        repair(draft, self.b, b.name, self.operands, self.mark)
        draft.move(self.a, after_b)
        # Where b came just after a, that place is a's own now, for b has moved before it.
        as_a = draft.resized(
            (f"{self.b}#0", self.to_a), self.a if after_a == self.b else after_a, f"{self.mark}.a"
        )
        as_b = draft.resized((f"{self.a}#0", self.to_b), after_b, f"{self.mark}.b")
        for value, users in ((as_a, of_a), (as_b, of_b)):
            for uid, index in users:
                draft.set_operand(uid, index, value)
