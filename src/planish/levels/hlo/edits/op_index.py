"""Index of a function's operations: their order, types and nesting; to ask MLIR for them is slow."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planish.core import ScheduleError
from planish.levels.hlo.ir.mlir import ELEMENTWISE, TensorType, ir, tensor_type, uid_of

Types = tuple[TensorType | None, ...]
"""Types of values; None for what is not a tensor."""

OPEN = frozenset({"stablehlo.while", "stablehlo.case", "stablehlo.if"})
"""Operations inside whose regions edits may happen."""

TERMINATORS = frozenset({"func.return", "stablehlo.return"})


@dataclass(frozen=True, slots=True)
class OpInfo:
    """Facts of an operation, which hardly ever change.

    Args:
        block: the block that it is in: empty for the function's, else "12^1" for the second region of 12.
        regions: how many it has.
    """

    name: str
    operands: Types
    results: Types
    block: str
    regions: int

    @property
    def init_operands(self) -> range:
        """The positions of the operands that are init values of a reduction."""
        return init_operands(self.name, len(self.operands))

    @property
    def is_pure(self) -> bool:
        """True where the operation may be shared and moved."""
        return self.name in PURE


def init_operands(name: str, operands: int) -> range:
    """Return the positions of an operation's operands that are init values of a reduction."""
    if name in ("stablehlo.reduce", "stablehlo.reduce_window"):
        return range(operands // 2, operands)  # as many init values as inputs, after them
    if name == "stablehlo.select_and_scatter":
        return range(2, 3)  # operand, source, init value
    return range(0)


class OpIndex:
    """The operations of a function.

    Attributes:
        infos: what is known of each operation, by id.
        blocks: the ids of each block's operations, in order.
        arguments: the types of each block's arguments.
    """

    def __init__(self) -> None:
        self.infos: dict[str, OpInfo] = {}
        self.blocks: dict[str, list[str]] = {}
        self.arguments: dict[str, Types] = {}

    def info(self, uid: str) -> OpInfo:
        """Return the facts about an operation; raises ScheduleError where it is missing."""
        if uid not in self.infos:
            what = f"there is no operation '{uid}'"
            raise ScheduleError(what, "An edit before this one removed it, or none made it.")
        return self.infos[uid]

    def position(self, uid: str) -> int:
        """Return an operation's position in its block, from 0."""
        return self.blocks[self.info(uid).block].index(uid)

    def ancestor(self, uid: str, block: str) -> str:
        """Return the operation of a block that is, or holds, another; raises ScheduleError where none is."""
        while self.info(uid).block != block:
            uid = holder(self.infos[uid].block)
        return uid

    def visible(self, before: str) -> list[tuple[str, TensorType | None]]:
        """List the values that an operation just there may use, with their types, nearest block first."""
        found: list[tuple[str, TensorType | None]] = []
        while before:
            block = self.info(before).block
            form = f"{block}#" if block else "arg"
            found += ((f"{form}{i}", type_) for i, type_ in enumerate(self.arguments[block]))
            for uid in self.blocks[block][: self.position(before)]:
                found += ((f"{uid}#{i}", type_) for i, type_ in enumerate(self.infos[uid].results))
            before = holder(block)
        return found

    def is_open(self, info: OpInfo) -> bool:
        """Return whether edits may happen in the block that an operation is in."""
        while info.block:
            info = self.infos[holder(info.block)]
            if info.name not in OPEN:
                return False
        return True

    def index_regions(self, owner: ir.Operation, name: str) -> None:
        """Enter the operations of an operation's regions; the name is empty for the function."""
        for number, region in enumerate(owner.regions):
            block, content = f"{name}^{number}" if name else "", region.blocks[0]
            self.arguments[block] = tuple(tensor_type(argument.type) for argument in content.arguments)
            operations = [op.operation for op in content.operations]
            self.blocks[block] = [uid_of(op) for op in operations]
            for op, uid in zip(operations, self.blocks[block], strict=True):
                self._enter(op, uid, block)

    def index_inserted(self, op: ir.Operation, uid: str, before: str) -> None:
        """Enter an operation that stands before another."""
        block = self.info(before).block
        self.blocks[block].insert(self.position(before), uid)
        self._enter(op, uid, block)

    def index_moved(self, uid: str, before: str) -> None:
        """Put an operation before another of its block."""
        order = self.blocks[self.info(uid).block]
        order.remove(uid)
        order.insert(order.index(before), uid)

    def index_retyped(self, uid: str, index: int, type_: TensorType | None) -> None:
        """Set the type of an operand."""
        info = self.infos[uid]
        operands = (*info.operands[:index], type_, *info.operands[index + 1 :])
        self.infos[uid] = replace(info, operands=operands)

    def index_removed(self, uid: str) -> None:
        """Take an operation out, and those inside it."""
        self.blocks[self.info(uid).block].remove(uid)
        self._forget(uid)

    def _enter(self, op: ir.Operation, uid: str, block: str) -> None:
        operands, results = (
            tuple(tensor_type(value.type) for value in values) for values in (op.operands, op.results)
        )
        self.infos[uid] = OpInfo(op.name, operands, results, block, len(op.regions))
        self.index_regions(op, uid)

    def _forget(self, uid: str) -> None:
        for region in range(self.infos.pop(uid).regions):
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
