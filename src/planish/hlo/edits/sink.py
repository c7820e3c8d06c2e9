"""An exact edit: transposes move down to where they meet their inverses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planish.core import ScheduleError
from planish.hlo.edits import exclusions
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.module_draft import Draft
from planish.hlo.edits.writing import Value, Writer
from planish.hlo.ir import ir, mlir_type, tensor_type, uid_of
from planish.hlo.tiling.axes import integers, shape_of, type_of
from planish.hlo.transposing import MOVED_PAST, Order, Turned, composed, inverse, turned
from planish.hlo.transposing.turned_values import source_type

TRANSPOSE = "stablehlo.transpose"


@dataclass(frozen=True)
class Sink(Edit):
    """Do what follows a transpose on its source, and transpose the results, until that cancels out.

    Transposes move down through element-wise operations, reductions, windows, pads, slices, concatenations
    and products, join others, and go where two undo each other. What needs the old order (a convolution, a
    result of the function) gets one transpose. The answer stays, to rounding: a product may sum in another
    order.

    ::

        y = transpose(relu(transpose(x)))   -- Sink(("0",)) -->   y = relu(x)

    Args:
        ops: transposes of the function that begin to move.
    """

    ops: tuple[str, ...]

    def apply(self, draft: Draft) -> None:
        for uid in self.ops:
            if exclusions.target(draft, uid).name != TRANSPOSE or draft.mirror.facts[uid].block:
                raise ScheduleError(f"operation '{uid}' is no transpose of the function", "Name transposes.")
        if not _Sinking(draft, frozenset(self.ops), self.mark).done():
            raise ScheduleError("no transpose can move down", "What follows these needs the order.")


def sinkable(draft: Draft) -> tuple[str, ...]:
    """List the transposes that the results need and that may move past a user.

    Products and reshapes alone are no reason: compilers take transposes into products themselves.
    """
    live = draft.live()
    return tuple(
        uid
        for uid in draft.mirror.blocks[""]
        if uid in live and draft.mirror.facts[uid].name == TRANSPOSE and _moves(draft, uid)
    )


def _moves(draft: Draft, uid: str) -> bool:
    facts = (draft.mirror.facts[user] for user, _ in draft.users(uid)[0] if exclusions.is_target(draft, user))
    return any(not fact.block and (fact.name == TRANSPOSE or fact.name in MOVED_PAST) for fact in facts)


def _order(draft: Draft, uid: str) -> Order:
    return tuple(integers(draft.op(uid), "permutation"))


class _Sinking:
    """One walk down a function.

    Args:
        draft: is changed.
        roots: transposes that begin to move.
        mark: ids of new operations begin with it.
    """

    def __init__(self, draft: Draft, roots: frozenset[str], mark: str) -> None:
        self._draft, self._roots, self._mark = draft, roots, mark
        self._known: dict[Value, tuple[Value, Order]] = {}
        """Values, with what they are transposes of."""
        self._absorbed: dict[str, Sequence[Value]] = {}
        """Operations that are done on sources, with their new results."""
        self._number = 0

    def done(self) -> bool:
        """Move all, and tell whether anything moved."""
        for uid in list(self._draft.mirror.blocks[""]):
            if exclusions.is_target(self._draft, uid):
                self._visit(uid)
        self._restore()
        return bool(self._absorbed)

    def _visit(self, uid: str) -> None:
        op = self._draft.op(uid)
        found = [self._known.get(operand) for operand in op.operands]
        if op.name == TRANSPOSE:
            self._transpose(uid, op.operands[0], found[0])
        elif any(found) and all(tensor_type(value.type) for value in (*op.operands, *op.results)):
            plan = turned(op, [one and one[1] for one in found])
            if plan is not None:
                self._absorb(uid, plan, [one and one[0] for one in found])

    def _transpose(self, uid: str, operand: Value, known: tuple[Value, Order] | None) -> None:
        """Take a transpose together with the one before it."""
        if known is None and uid not in self._roots:
            return
        source, first = known or (operand, tuple(range(len(shape_of(operand)))))
        order = composed(first, _order(self._draft, uid))
        if known is not None:
            self._absorbed[uid] = [source]
        self._give(uid, [source], order)

    def _absorb(self, uid: str, plan: Turned, sources: Sequence[Value | None]) -> None:
        """Do an operation on the sources."""
        op, write = self._draft.op(uid), self._writer(uid)
        operands = [
            source if source is not None else _fitting(write, operand, plan.others)
            for operand, source in zip(op.operands, sources, strict=True)
        ]
        types = [source_type(type_of(result), plan.order) for result in op.results]
        results = write.again(op, operands, types, plan.attributes)
        self._absorbed[uid] = results
        self._give(uid, results, plan.order)

    def _give(self, uid: str, sources: Sequence[Value], order: Order) -> None:
        """Note what the results are transposes of; where they are the same, their users take these."""
        for result, source in zip(self._draft.op(uid).results, sources, strict=True):
            if order == tuple(sorted(order)):
                _replace(self._draft, result, source)
            else:
                self._known[result] = source, order

    def _restore(self) -> None:
        """Transpose what is needed in the old order, and take out what nothing needs any more."""
        # Backwards, since what is used cannot be erased, and users come later.
        for uid in reversed(list(self._absorbed)):
            for result in self._draft.op(uid).results:
                if any(True for _ in result.uses):
                    source, order = self._known[result]
                    write = self._writer(uid)
                    _replace(
                        self._draft,
                        result,
                        write("transpose", type_of(result), [source], {"permutation": order}),
                    )
            self._draft.erase(uid)
        for uid in self._roots - set(self._absorbed):
            if not any(self._draft.users(uid)):
                self._draft.erase(uid)

    def _writer(self, uid: str) -> Writer:
        self._number += 1
        return Writer(self._draft, uid, f"{self._mark}.{self._number}")


def _fitting(write: Writer, value: Value, order: Order) -> Value:
    """Turn a value that is no transpose, so that it fits sources; scalars stay."""
    if not order or not shape_of(value):
        return value
    made, type_ = ir.OpResult(value).owner.operation, source_type(type_of(value), order)
    if made.name == "stablehlo.broadcast_in_dim":
        to = [order[axis] for axis in integers(made, "broadcast_dimensions")]
        return write("broadcast_in_dim", type_, [made.operands[0]], {"broadcast_dimensions": to})
    constant = made.attributes["value"]
    if isinstance(constant, ir.DenseElementsAttr) and constant.is_splat:
        splat = ir.DenseElementsAttr.get_splat(mlir_type(type_), constant.get_splat_value())
        return write("constant", type_, [], {"value": splat})
    return write("transpose", type_, [value], {"permutation": inverse(order)})


def _replace(draft: Draft, value: Value, by: Value) -> None:
    for use in list(value.uses):
        draft.set_operand(uid_of(use.owner), use.operand_number, by)
