"""Mirror of a function in Python: the order, the types and the nesting of its operations.

To ask the module itself is slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from planish.core import ScheduleError
from planish.levels.hlo.ir.mlir import ELEMENTWISE, TensorType, ir, tensor_type, uid_of

Types = tuple[TensorType | None, ...]
"""Types of values; None for what is no tensor."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Facts of an operation, which hardly ever change.

    Args:
        name: as "stablehlo.add".
        operands: their types.
        results: their types.
        block: the block that it is in: empty for the function's, else "12^1" for the second region of 12.
        regions: how many it has.
    """

    name: str
    operands: Types
    results: Types
    block: str
    regions: int


@dataclass
class Mirror:
    """The operations of a function, with what is known of them.

    Args:
        facts: by id.
        blocks: the ids of each block's operations, in order.
        arguments: the types of each block's arguments.
    """

    facts: dict[str, Fact] = field(default_factory=dict[str, Fact])
    blocks: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    arguments: dict[str, Types] = field(default_factory=dict[str, Types])

    def copy(self) -> Mirror:
        """Copy it."""
        blocks = {block: list(order) for block, order in self.blocks.items()}
        return Mirror(dict(self.facts), blocks, dict(self.arguments))

    def fact(self, uid: str) -> Fact:
        """Return an operation's facts; raises ScheduleError where it is missing."""
        if uid not in self.facts:
            raise ScheduleError(
                f"there is no operation '{uid}'", "An edit before this one removed it, or none made it."
            )
        return self.facts[uid]

    def position(self, uid: str) -> int:
        """Return an operation's position in its block, from 0."""
        return self.blocks[self.fact(uid).block].index(uid)

    def ancestor(self, uid: str, block: str) -> str:
        """Return the operation of a block that is, or holds, another; raises ScheduleError where none is."""
        while self.fact(uid).block != block:
            uid = holder(self.facts[uid].block)
        return uid

    def visible(self, before: str) -> Iterator[tuple[str, TensorType | None]]:
        """List the values that an operation just there may use, with their types, nearest block first."""
        while before:
            block = self.fact(before).block
            form = f"{block}#" if block else "arg"
            yield from ((f"{form}{i}", type_) for i, type_ in enumerate(self.arguments[block]))
            for uid in self.blocks[block][: self.position(before)]:
                yield from ((f"{uid}#{i}", type_) for i, type_ in enumerate(self.facts[uid].results))
            before = holder(block)

    def learn(self, owner: ir.Operation, name: str) -> None:
        """Take in the operations of an operation's regions; the name is empty for the function."""
        for number, region in enumerate(owner.regions):
            block = f"{name}^{number}" if name else ""
            content = region.blocks[0]
            self.arguments[block] = tuple(tensor_type(argument.type) for argument in content.arguments)
            operations = [op.operation for op in content.operations]
            self.blocks[block] = [uid_of(op) for op in operations]
            for op, uid in zip(operations, self.blocks[block], strict=True):
                self._know(op, uid, block)

    def insert(self, op: ir.Operation, uid: str, before: str) -> None:
        """Take in an operation that stands before another."""
        block = self.fact(before).block
        self.blocks[block].insert(self.position(before), uid)
        self._know(op, uid, block)

    def move(self, uid: str, before: str) -> None:
        """Put an operation before another of its block."""
        order = self.blocks[self.fact(uid).block]
        order.remove(uid)
        order.insert(order.index(before), uid)

    def retype(self, uid: str, index: int, type_: TensorType | None) -> None:
        """Take in that an operand is of another type."""
        fact = self.facts[uid]
        operands = (*fact.operands[:index], type_, *fact.operands[index + 1 :])
        self.facts[uid] = replace(fact, operands=operands)

    def remove(self, uid: str) -> None:
        """Take an operation out, and those inside it."""
        self.blocks[self.fact(uid).block].remove(uid)
        self._forget(uid)

    def _know(self, op: ir.Operation, uid: str, block: str) -> None:
        operands = tuple(tensor_type(value.type) for value in op.operands)
        results = tuple(tensor_type(value.type) for value in op.results)
        self.facts[uid] = Fact(op.name, operands, results, block, len(op.regions))
        self.learn(op, uid)

    def _forget(self, uid: str) -> None:
        for region in range(self.facts.pop(uid).regions):
            for inner in self.blocks.pop(f"{uid}^{region}"):
                self._forget(inner)
            del self.arguments[f"{uid}^{region}"]


def holder(block: str) -> str:
    """Return the operation whose region a block is; empty for the function's."""
    return block.rpartition("^")[0]


_MORE = (
    *("bitcast_convert", "broadcast_in_dim", "cholesky", "concatenate", "constant", "convolution"),
    *("dot_general", "dynamic_slice", "dynamic_update_slice", "fft", "gather", "iota", "pad", "reduce"),
    *("reduce_window", "reshape", "reverse", "scatter", "select_and_scatter", "slice", "sort", "transpose"),
    "triangular_solve",
)
PURE = ELEMENTWISE | {f"stablehlo.{name}" for name in _MORE}
"""Operations that give the same of the same operands, and end; not loops, calls, or random numbers."""

FORMS = frozenset(
    f"stablehlo.{name}" for name in ("broadcast_in_dim", "constant", "iota", "reshape", "slice", "convert")
)
"""Operations that cost next to nothing, for compilers make them where they are used."""


def is_pure(fact: Fact) -> bool:
    """Return whether an operation may be shared and moved."""
    return fact.name in PURE
