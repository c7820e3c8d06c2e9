"""Writing new operations into a draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planish.hlo.edits.module_draft import Draft
from planish.hlo.ir import TensorType, context, ir, mlir_type

Value = ir.Value[Any]


class Writer:
    """Puts operations before another one.

    Args:
        draft: where.
        before: the id of the operation that they are put before.
        mark: their ids begin with it.
    """

    def __init__(self, draft: Draft, before: str, mark: str) -> None:
        self._draft, self._before, self._mark, self._count = draft, before, mark, 0

    def __call__(
        self,
        name: str,
        type_: TensorType,
        operands: Sequence[Value],
        attributes: Mapping[str, str | Sequence[int]] = {},
    ) -> Value:
        """Write an operation, and give its one result.

        Args:
            name: without the dialect.
            type_: of the result.
            operands: its operands.
            attributes: as MLIR writes them, or 64-bit integers.
        """
        parsed = {key: _attribute(value) for key, value in attributes.items()}
        with ir.InsertionPoint(self._draft.op(self._before)), ir.Location.unknown(context()):
            op = ir.Operation.create(f"stablehlo.{name}", [mlir_type(type_)], list(operands), parsed)
        self._draft.insert(op, f"{self._mark}.{self._count}", self._before)
        self._count += 1
        return op.results[0]


def _attribute(value: str | Sequence[int]) -> ir.Attribute:
    if isinstance(value, str):
        return ir.Attribute.parse(value, context())
    return ir.DenseI64ArrayAttr.get(list(value), context())
