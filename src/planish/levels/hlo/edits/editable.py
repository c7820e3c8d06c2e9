"""Modules while they are edited, and a builder of new operations.

A value is named by text: "arg3" is the function's fourth argument, "12#0" the first result of operation 12,
"12^1#0" the first argument of its second region.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from planish.core import ScheduleError
from planish.levels.hlo.edits.op_index import TERMINATORS, OpIndex, OpInfo, holder, init_operands
from planish.levels.hlo.edits.resize import Resize, build_resize, check_resize
from planish.levels.hlo.ir.mlir import (
    TensorType,
    Value,
    context,
    functions,
    ir,
    maker,
    mlir_type,
    printed,
    set_uid,
    tensor_type,
    uid_of,
    walk,
)
from planish.levels.hlo.ir.normal import live_uids
from planish.levels.hlo.ir.parsing import first_line

Source = tuple[str, Resize]
"""A value by name, and how it is resized."""


@dataclass(frozen=True)
class Tiles:
    """Division of a batch into tiles.

    Args:
        examples: of one tile; the last one has what is left.
        loop: whether the tiles are a loop, instead of being written out one after the other.
    """

    examples: int
    loop: bool = False


@dataclass(frozen=True)
class Subsampling:
    """Subsampling of the spatial dimensions of a value's images, from their middle.

    Args:
        stride: 1: those in the middle; 2: each second one.
        mean: whether each is the mean of the square that begins with it and ends before the next.
    """

    pixels: int
    stride: int
    mean: bool = False

    @property
    def window(self) -> int:
        """Extent of the pixels that one is computed from."""
        return self.stride if self.mean else 1

    @property
    def receptive_extent(self) -> int:
        """Extent of the pixels that all are computed from."""
        return (self.pixels - 1) * self.stride + self.window


class EditableModule(OpIndex):
    """A copy of a module that edits change, with an index that the methods here keep up to date.

    No edit changes terminators, the regions of reductions and their init values: XLA drops the init value of
    a reduction over one element and reorders the others, so that a changed init value or region means
    different things to different compilers.

    Operations and values that it returns live as long as it does.

    Args:
        root: the module, its operations numbered; it is not changed.
        function: the name of the function that is edited.

    Attributes:
        body: the block of the function that is edited.
        frozen: operations that no edit changes: init values of reductions are computed from them.
        channels: of products and convolutions, by id: the number that they sum over alone. This, the
            subsamplings and the tiles wait until all edits are made: see `planish.levels.hlo.edits.deferred`.
        subsamplings: values, by name, whose images are subsampled.
        tiles: in which the batch is computed; None: as a whole.
        identity: what the module computes, once it is known; see
            `planish.levels.hlo.edits.deferred.identity_of`.
    """

    def __init__(self, root: ir.Operation, function: str) -> None:
        super().__init__()
        self._set_root(root, function)
        self.index_regions(self.body.owner.operation, "")
        self.frozen = _frozen_operations(self.body.owner.operation)
        self.tiles: Tiles | None = None
        self.subsamplings: dict[str, Subsampling] = {}
        self.channels: dict[str, int] = {}

    def _set_root(self, root: ir.Operation, function: str) -> None:
        self.root, self.function = root.clone().operation, function
        self.body = dict(functions(self.root))[function].regions[0].blocks[0]
        self._live: frozenset[str] | None = None
        self.identity = ""

    def clone(self) -> EditableModule:
        """Copy the module."""
        clone = copy(self)
        clone._set_root(self.root, self.function)
        clone.infos, clone.arguments = dict(self.infos), dict(self.arguments)
        clone.blocks = {block: list(order) for block, order in self.blocks.items()}
        clone.subsamplings, clone.channels = dict(self.subsamplings), dict(self.channels)
        return clone

    def text(self) -> str:
        """Print the module with the ids of its operations; it must be verified."""
        return printed(self.root)

    def live(self) -> frozenset[str]:
        """List the operations that the function's results need."""
        if self._live is None:
            self._live = live_uids(self.root, self.function)
        return self._live

    def is_target(self, uid: str) -> bool:
        """Return whether an operation may be changed."""
        info = self.infos[uid]
        return info.name not in TERMINATORS and uid not in self.frozen and self.is_open(info)

    def targets(self, *names: str) -> list[str]:
        """List the operations of some names, else all, that may be changed and that the results need."""
        live = self.live()
        return [
            uid
            for uid, info in self.infos.items()
            if uid in live and (not names or info.name in names) and self.is_target(uid)
        ]

    def require_target(self, uid: str) -> OpInfo:
        """Return an operation's facts; raises ScheduleError where it may not be changed."""
        info = self.require_open(uid)
        if not self.is_target(uid):
            raise ScheduleError(
                f"operation '{uid}' ({info.name}) may not be changed",
                "It is a terminator, or computes the init value of a reduction.",
            )
        return info

    def require_open(self, uid: str) -> OpInfo:
        """Return an operation's facts; raises ScheduleError where nothing may be put before it."""
        info = self.info(uid)
        if not self.is_open(info):
            what = f"operation '{uid}' ({info.name}) is inside a reduction"
            raise ScheduleError(what, "Edit the reduction itself.")
        return info

    def require_operand(self, uid: str, index: int) -> None:
        """Raise ScheduleError where an operand of an operation may not be replaced."""
        info = self.require_target(uid)
        if index in info.init_operands:
            raise ScheduleError(f"operand {index} of operation '{uid}' ({info.name}) is its init value")

    def op(self, uid: str) -> ir.Operation:
        """Find an operation; raises ScheduleError where it is missing."""
        # By position and not from a table: to list all operations of a clone takes longer than an edit does.
        block = self.block(self.info(uid).block)
        return block.operations[self.position(uid)].operation

    def value(self, name: str) -> ir.Value[Any]:
        """Find a value by name; raises ScheduleError where it is missing."""
        owner, _, index = name.rpartition("#")
        if name.startswith("arg"):
            values: Sequence[ir.Value[Any]] = self.body.arguments
            index = name.removeprefix("arg")
        elif "^" in owner:
            values = self.block(owner).arguments
        else:
            values = self.op(owner).results
        if not index.isdecimal() or int(index) >= len(values):
            raise ScheduleError(f"there is no value '{name}'")
        return values[int(index)]

    def name(self, value: ir.Value[Any]) -> str:
        """Return a value's name; the inverse of `value`."""
        owner = value.owner
        if not isinstance(owner, ir.Block):
            return f"{uid_of(owner)}#{ir.OpResult(value).result_number}"
        number, outer = ir.BlockArgument(value).arg_number, owner.owner
        if outer.operation.name == "func.func":
            return f"arg{number}"
        region = [region.blocks[0] for region in outer.regions].index(owner)
        return f"{uid_of(outer)}^{region}#{number}"

    def users(self, uid: str) -> list[list[tuple[str, int]]]:
        """List the users of each result of an operation, with the operand that it is; latest first."""
        results = self.op(uid).results
        return [[(uid_of(use.owner), use.operand_number) for use in result.uses] for result in results]

    def resized(self, source: Source, before: str, id_prefix: str) -> ir.Value[Any]:
        """Return a value, resized by new operations.

        Raises:
            ScheduleError: there is no such value, or it cannot be resized so.
        """
        name, resize = source
        value, count = self.value(name), 0

        def created(op: ir.Operation) -> None:
            nonlocal count
            self.insert(op, f"{id_prefix}.{count}", before)
            count += 1

        with ir.InsertionPoint(self.op(before)), ir.Location.unknown(self.root.context):
            for step in resize:
                type_ = tensor_type(value.type)
                check_resize(type_, step)
                value = build_resize(value, step, created)
        return value

    def copy(self, uid: str, new: str, before: str) -> None:
        """Copy an operation to just before another; ids of those inside begin with the copy's."""
        with ir.InsertionPoint(self.op(before)):
            clone = self.op(uid).clone().operation
        for op in walk(clone)[1:]:
            set_uid(op, f"{new}.{uid_of(op)}")
        self.insert(clone, new, before)

    def erase(self, uid: str) -> None:
        """Remove an operation; raises ScheduleError where its results are used."""
        # To erase what is used would crash the process.
        op = self.op(uid)
        if any(self.users(uid)) or _is_used_outside(op):
            raise ScheduleError(f"cannot delete operation '{uid}': its results are used")
        op.erase()
        self.index_removed(uid)
        self._live = None

    def replace(self, uid: str, values: Sequence[ir.Value[Any]]) -> None:
        """Remove an operation whose users take other values, one for each of its results."""
        for users, value in zip(self.users(uid), values, strict=True):
            for user, index in users:
                self.set_operand(user, index, value)
        self.erase(uid)

    def move(self, uid: str, before: str) -> None:
        """Put an operation before another of the same block."""
        block, other = self.info(uid).block, self.info(before).block
        if block != other or uid == before:
            what = f"cannot move operation '{uid}' before '{before}'"
            raise ScheduleError(what, "Name two operations of a block.")
        self.op(uid).move_before(self.op(before))
        self.index_moved(uid, before)

    def set_operand(self, uid: str, index: int, value: ir.Value[Any]) -> None:
        """Replace an operand of an operation.

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
        """Replace an operand by a value of another type, where the operation takes several."""
        self.op(uid).operands[index] = value
        self.index_retyped(uid, index, tensor_type(value.type))
        self._live = None

    def insert(self, op: ir.Operation, uid: str, before: str) -> None:
        """Set the id of a new operation, which stands before another already."""
        if uid in self.infos:
            raise ScheduleError(f"there is an operation '{uid}' already", "A patch has each edit once.")
        set_uid(op, uid)
        self.index_inserted(op, uid, before)
        self._live = None

    def block(self, block: str) -> ir.Block:
        """Find a block by name, as `OpInfo` names it; raises ScheduleError where it is missing."""
        if not block:
            return self.body
        uid, region = holder(block), block.rpartition("^")[2]
        regions = self.op(uid).regions
        if not region.isdecimal() or int(region) >= len(regions):
            raise ScheduleError(f"operation '{uid}' has no region '{region}'")
        return regions[int(region)].blocks[0]


def _is_used_outside(op: ir.Operation) -> bool:
    """Return whether something outside of an operation uses a value that is defined in its regions."""
    inner = walk(op)
    blocks = [block for each in inner for region in each.regions for block in region.blocks]
    values = [value for each in inner[1:] for value in each.results]
    values += [argument for block in blocks for argument in block.arguments]
    return any(use.owner.operation not in inner for value in values for use in value.uses)


def _frozen_operations(function: ir.Operation) -> frozenset[str]:
    """Find the operations that the init values of reductions are computed from."""
    frozen: set[str] = set()
    waiting = [op.operands[i] for op in walk(function) for i in init_operands(op.name, len(op.operands))]
    while waiting:
        op = maker(waiting.pop())
        if op is not None and uid_of(op) not in frozen:
            frozen.add(uid_of(op))
            waiting.extend(op.operands)
    return frozenset(frozen)


def verify(root: ir.Operation) -> None:
    """Verify a module; raises ScheduleError where it is not valid."""
    try:
        root.verify()
    except ir.MLIRError as error:
        raise ScheduleError(f"the edited module is not valid: {first_line(error)}") from error


Given = str | Sequence[int] | ir.Attribute
"""An attribute as MLIR writes it, as 64-bit integers, or as it is."""


class OpBuilder:
    """Puts operations before another one."""

    def __init__(self, module: EditableModule, before: str, id_prefix: str) -> None:
        self._module, self._before, self._id_prefix, self._count = module, before, id_prefix, 0

    def __call__(
        self, name: str, type_: TensorType, operands: Sequence[Value], attributes: Mapping[str, Given] = {}
    ) -> Value:
        """Write an operation, and return its one result."""
        parsed = {key: _attribute(value) for key, value in attributes.items()}
        with ir.InsertionPoint(self._module.op(self._before)), ir.Location.unknown(context()):
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
        """Write an operation once more, and return its results.

        Args:
            attributes: that the copy has instead of the operation's.
        """
        with ir.InsertionPoint(self._module.op(self._before)):
            copy = op.clone().operation
        for position, operand in enumerate(operands):
            copy.operands[position] = operand
        for result, type_ in zip(copy.results, types, strict=True):
            result.set_type(mlir_type(type_))
        for key, value in attributes.items():
            copy.attributes[key] = _attribute(value)
        for inner in walk(copy)[1:]:
            set_uid(inner, f"{self._id_prefix}.{self._count}.{uid_of(inner)}")
        self._insert(copy)
        return list(copy.results)

    def reduce_max(self, value: Value, axes: Sequence[int], type_: TensorType) -> tuple[Value, Value]:
        """Write a reduction by maximum of numbers of 0 or more; return its result and its init value."""
        scalar = TensorType((), type_.element)
        init = self("constant", scalar, [], {"value": f"dense<0.0> : {scalar}"})
        number, unknown = mlir_type(scalar), ir.Location.unknown(context())
        with ir.InsertionPoint(self._module.op(self._before)), unknown:
            dimensions = {"dimensions": _attribute(axes)}
            op = ir.Operation.create(
                "stablehlo.reduce", [mlir_type(type_)], [value, init], dimensions, regions=1
            )
            block = op.regions[0].blocks.append(number, number, arg_locs=[unknown, unknown])
            with ir.InsertionPoint(block):
                inner = ir.Operation.create("stablehlo.maximum", [number], list(block.arguments))
                end = ir.Operation.create("stablehlo.return", [], [inner.results[0]])
        for position, each in enumerate((inner, end)):
            set_uid(each, f"{self._id_prefix}.{self._count}.{position}")
        self._insert(op)
        return op.results[0], init

    def _insert(self, op: ir.Operation) -> None:
        self._module.insert(op, f"{self._id_prefix}.{self._count}", self._before)
        self._count += 1


def _attribute(value: Given) -> ir.Attribute:
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, str):
        return ir.Attribute.parse(value, context())
    return ir.DenseI64ArrayAttr.get(list(value), context())
