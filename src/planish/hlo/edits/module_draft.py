"""A module while it is edited.

A value is named by text: "arg3" is the function's fourth argument, "12#0" the first result of operation 12,
"12^1#0" the first argument of its second region.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planish.core import ScheduleError
from planish.hlo.edits.mirror import Mirror, holder
from planish.hlo.edits.resize import Resize, build_resize, check_resize
from planish.hlo.ir import (
    UID,
    canonical_hash,
    first_line,
    functions,
    ir,
    live_uids,
    printed,
    set_uid,
    tensor_type,
    uid_of,
    walk,
)
from planish.hlo.shrinking import Smaller, shrunk
from planish.hlo.tiling import Tiles, batch_of, tiled
from planish.hlo.width import channels_of, kept_channels

Source = tuple[str, Resize]
"""A value by name, and how it is resized."""


class Draft:
    """A copy of a module that edits change, with a mirror that only the methods here keep in step.

    Operations and values that it gives live as long as the draft does.

    Args:
        root: the module, its operations numbered; it is not changed.
        function: the name of the function that is edited.
        fixed: operations that edits leave alone.

    Attributes:
        tiles: in which the batch is computed, once all is edited; None: as a whole.
        channels: products and convolutions that sum over so many channels alone, once all is edited.
        smaller: values, by name, whose pictures keep a part of their pixels, once all is edited.
    """

    def __init__(self, root: ir.Operation, function: str, fixed: frozenset[str]) -> None:
        self._take(root, function, fixed, Mirror())
        self.mirror.learn(self._body.owner.operation, "")

    def clone(self) -> Draft:
        """Copy the draft."""
        copy = Draft.__new__(Draft)
        copy._take(self.root, self.function, self.fixed, self.mirror.copy())
        copy.tiles, copy.smaller, copy.channels = self.tiles, dict(self.smaller), dict(self.channels)
        return copy

    def _take(self, root: ir.Operation, function: str, fixed: frozenset[str], mirror: Mirror) -> None:
        self.root = root.clone().operation
        self.function, self.fixed, self.mirror = function, fixed, mirror
        self._body = dict(functions(self.root))[function].regions[0].blocks[0]
        self._live: frozenset[str] | None = None
        self._identity = ""
        self.tiles: Tiles | None = None
        self.smaller: dict[str, Smaller] = {}
        self.channels: dict[str, int] = {}

    def verify(self) -> None:
        """Raise ScheduleError where the module is not valid, or cannot be tiled or cut as it should be."""
        self._identity = ""
        _verify(self.root)
        if self.tiles or self.smaller or self.channels:
            _verify(self.finished())

    def finished(self) -> ir.Operation:
        """Give the module that is run, not to be changed: the draft's own, or a new one."""
        root = self._reduced()
        return tiled(root, self.function, self.tiles) if self.tiles else root

    def _reduced(self) -> ir.Operation:
        """Give the module with the channels and pixels that are left of it."""
        if not self.channels and not self.smaller:
            return self.root
        copy = self.clone()
        # All operations and values are found before anything is put between them.
        kept = [(channels_of(copy.op(uid)), keep) for uid, keep in sorted(self.channels.items())]
        found = [(copy.value(name), smaller) for name, smaller in sorted(self.smaller.items())]
        kept_channels(copy._body, kept)
        for value, smaller in found:
            shrunk(copy._body, value, smaller)
        for number, op in enumerate(walk(copy._body.owner.operation)[1:]):
            set_uid(op, f"{uid_of(op)}.{number}" if UID in op.attributes else f"new.{number}")
        _verify(copy.root)
        return copy.root

    def identity(self) -> str:
        """Name what the verified module computes, and in what tiles."""
        if not self._identity:
            tiles = f" in {self.tiles}" if self.tiles else ""
            self._identity = canonical_hash(self._reduced()) + tiles
        return self._identity

    def batch(self) -> int:
        """Count the examples of the function's batch; raises ScheduleError where it mixes them."""
        return batch_of(self._body).size

    def text(self) -> str:
        """Print the module with the ids of its operations; it must be verified."""
        return printed(self.root)

    def live(self) -> frozenset[str]:
        """List the operations that the function's results need."""
        if self._live is None:
            self._live = live_uids(self.root, self.function)
        return self._live

    def op(self, uid: str) -> ir.Operation:
        """Find an operation; raises ScheduleError where it is missing."""
        # By place and not from a table: to list all operations of a clone takes longer than an edit does.
        block = self.block(self.mirror.fact(uid).block)
        return block.operations[self.mirror.position(uid)].operation

    def value(self, name: str) -> ir.Value[Any]:
        """Find a value by name; raises ScheduleError where it is missing."""
        owner, _, index = name.rpartition("#")
        if name.startswith("arg"):
            values: Sequence[ir.Value[Any]] = self._body.arguments
            index = name.removeprefix("arg")
        elif "^" in owner:
            values = self.block(owner).arguments
        else:
            values = self.op(owner).results
        if not index.isdecimal() or int(index) >= len(values):
            raise ScheduleError(f"there is no value '{name}'")
        return values[int(index)]

    def name(self, value: ir.Value[Any]) -> str:
        """Give a value's name; the inverse of `value`."""
        owner = value.owner
        if not isinstance(owner, ir.Block):
            return f"{uid_of(owner)}#{ir.OpResult(value).result_number}"
        number, outer = ir.BlockArgument(value).arg_number, owner.owner
        if outer.operation.name == "func.func":
            return f"arg{number}"
        region = [region.blocks[0] for region in outer.regions].index(owner)
        return f"{uid_of(outer)}^{region}#{number}"

    def users(self, uid: str) -> list[list[tuple[str, int]]]:
        """List for each result of an operation who uses it, and as which operand; latest first."""
        results = self.op(uid).results
        return [[(uid_of(use.owner), use.operand_number) for use in result.uses] for result in results]

    def resized(self, source: Source, before: str, mark: str) -> ir.Value[Any]:
        """Give a value, resized by new operations.

        Args:
            source: which value, and how it is resized.
            before: the operation that the new ones are put before.
            mark: their ids begin with it.

        Raises:
            ScheduleError: there is no such value, or it cannot be resized so.
        """
        name, resize = source
        value, count = self.value(name), 0

        def created(op: ir.Operation) -> None:
            nonlocal count
            self.insert(op, f"{mark}.{count}", before)
            count += 1

        with ir.InsertionPoint(self.op(before)), ir.Location.unknown(self.root.context):
            for step in resize:
                type_ = tensor_type(value.type)
                check_resize(type_, step)
                value = build_resize(value, step, created)
        return value

    def copy(self, uid: str, new: str, before: str) -> None:
        """Copy an operation to the place before another; ids of those inside begin with the copy's."""
        with ir.InsertionPoint(self.op(before)):
            clone = self.op(uid).clone().operation
        for op in walk(clone)[1:]:
            set_uid(op, f"{new}.{uid_of(op)}")
        self.insert(clone, new, before)

    def erase(self, uid: str) -> None:
        """Remove an operation; raises ScheduleError where its results are used."""
        # To erase what is used would crash the process.
        if any(self.users(uid)):
            raise ScheduleError(f"cannot delete operation '{uid}': its results are used")
        self.op(uid).erase()
        self.mirror.remove(uid)
        self._live = None

    def move(self, uid: str, before: str) -> None:
        """Put an operation before another of the same block."""
        block, other = self.mirror.fact(uid).block, self.mirror.fact(before).block
        if block != other or uid == before:
            raise ScheduleError(
                f"cannot move operation '{uid}' before '{before}'", "Name two operations of a block."
            )
        self.op(uid).move_before(self.op(before))
        self.mirror.move(uid, before)

    def set_operand(self, uid: str, index: int, value: ir.Value[Any]) -> None:
        """Let an operation use another value.

        Raises:
            ScheduleError: there is no such operand, or it is of another type.
        """
        operands = self.op(uid).operands
        # An index out of range would crash the process.
        if not 0 <= index < len(operands):
            raise ScheduleError(f"operation '{uid}' has no operand {index}", f"It has {len(operands)}.")
        if operands[index].type != value.type:
            raise ScheduleError(f"operand {index} of '{uid}' is {operands[index].type}, not {value.type}")
        operands[index] = value
        self._live = None

    def retype_operand(self, uid: str, index: int, value: ir.Value[Any]) -> None:
        """Let an operation use a value of another type, where the operation takes several."""
        self.op(uid).operands[index] = value
        self.mirror.retype(uid, index, tensor_type(value.type))
        self._live = None

    def insert(self, op: ir.Operation, uid: str, before: str) -> None:
        """Give a new operation, which stands before another already, its id."""
        if uid in self.mirror.facts:
            raise ScheduleError(f"there is an operation '{uid}' already", "A patch has each edit once.")
        set_uid(op, uid)
        self.mirror.insert(op, uid, before)
        self._live = None

    def block(self, block: str) -> ir.Block:
        """Find a block by name, as the mirror names it; raises ScheduleError where it is missing."""
        if not block:
            return self._body
        uid, region = holder(block), block.rpartition("^")[2]
        regions = self.op(uid).regions
        if not region.isdecimal() or int(region) >= len(regions):
            raise ScheduleError(f"operation '{uid}' has no region '{region}'")
        return regions[int(region)].blocks[0]


def _verify(root: ir.Operation) -> None:
    try:
        root.verify()
    except ir.MLIRError as error:
        raise ScheduleError(f"the edited module is not valid: {first_line(error)}") from error
