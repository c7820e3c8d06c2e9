"""Writing new operations into a draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planish.hlo.edits.module_draft import Draft
from planish.hlo.ir import TensorType, context, ir, mlir_type, set_uid, uid_of, walk

Value = ir.Value[Any]
Given = str | Sequence[int] | ir.Attribute
"""An attribute as MLIR writes it, as 64-bit integers, or as it is."""


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
        attributes: Mapping[str, Given] = {},
    ) -> Value:
        """Write an operation, and give its one result.

        Args:
            name: without the dialect.
            type_: of the result.
            operands: its operands.
            attributes: its attributes.
        """
        parsed = {key: _attribute(value) for key, value in attributes.items()}
        with ir.InsertionPoint(self._draft.op(self._before)), ir.Location.unknown(context()):
            op = ir.Operation.create(f"stablehlo.{name}", [mlir_type(type_)], list(operands), parsed)
        self._insert(op)
        return op.results[0]

    def again(
        self,
        op: ir.Operation,
        operands: Sequence[Value],
        types: Sequence[TensorType],
        attributes: Mapping[str, Given] = {},
    ) -> list[Value]:
        """Write an operation once more, and give its results.

        Args:
            op: what is copied, with its regions.
            operands: what the copy reads.
            types: of its results.
            attributes: that the copy has instead of the operation's.
        """
        with ir.InsertionPoint(self._draft.op(self._before)):
            copy = op.clone().operation
        for place, operand in enumerate(operands):
            copy.operands[place] = operand
        for result, type_ in zip(copy.results, types, strict=True):
            result.set_type(mlir_type(type_))
        for key, value in attributes.items():
            copy.attributes[key] = _attribute(value)
        for inner in walk(copy)[1:]:
            set_uid(inner, f"{self._mark}.{self._count}.{uid_of(inner)}")
        self._insert(copy)
        return list(copy.results)

    def largest(self, value: Value, axes: Sequence[int], type_: TensorType) -> tuple[Value, Value]:
        """Write a reduction by the largest number, over numbers of 0 or more, and give it and its start.

        Args:
            value: what is reduced.
            axes: over which dimensions.
            type_: of the result.
        """
        scalar = TensorType((), type_.element)
        start = self("constant", scalar, [], {"value": f"dense<0.0> : {scalar}"})
        number, unknown = mlir_type(scalar), ir.Location.unknown(context())
        with ir.InsertionPoint(self._draft.op(self._before)), unknown:
            dimensions = {"dimensions": _attribute(axes)}
            op = ir.Operation.create(
                "stablehlo.reduce", [mlir_type(type_)], [value, start], dimensions, regions=1
            )
            block = op.regions[0].blocks.append(number, number, arg_locs=[unknown, unknown])
            with ir.InsertionPoint(block):
                inner = ir.Operation.create("stablehlo.maximum", [number], list(block.arguments))
                end = ir.Operation.create("stablehlo.return", [], [inner.results[0]])
        for place, each in enumerate((inner, end)):
            set_uid(each, f"{self._mark}.{self._count}.{place}")
        self._insert(op)
        return op.results[0], start

    def _insert(self, op: ir.Operation) -> None:
        self._draft.insert(op, f"{self._mark}.{self._count}", self._before)
        self._count += 1


def _attribute(value: Given) -> ir.Attribute:
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, str):
        return ir.Attribute.parse(value, context())
    return ir.DenseI64ArrayAttr.get(list(value), context())
