"""Accesses to memory in LLVM's textual IR.

Addresses, loads and stores are each written outside all loops that they do not depend on.

Elements narrower than the arithmetic are moved as integers, and widened or rounded in registers. A bfloat16
is the upper half of a float32. It is rounded to the nearest, ties to even, by adding what carries into that
half; NaN stays NaN, and is quiet. Of integers the lowest bits are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from planish.levels.loops.codegen.llvm.ir_writer import Lines, Val, Writer
from planish.levels.loops.ir.tree import Buffer, LoopId, Ref
from planish.levels.loops.lang.program import BFLOAT16X2, DTYPES, INDICES, QINT8

# Narrow elements

_LEAST, _ALMOST_HALF, _QUIET = 1, 0x7FFF, 0x00400000


def of_lanes(element: str, lanes: int) -> str:
    """Return the name of the type of a vector of elements."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def widen(writer: Writer, dtype: str, bits: str, lanes: int, at: Lines | None = None) -> str:
    """Write the type of the arithmetic from the bits of a narrow one."""
    short, integer, wide = of_lanes(f"i{8 * DTYPES[dtype]}", lanes), writer.integer(lanes), writer.type(lanes)
    if dtype == "int8":
        return writer.define(f"sext {short} {bits} to {wide}", at)
    if dtype == QINT8:
        return writer.define(f"sitofp {short} {bits} to {wide}", at)
    if dtype == "float16":
        half = of_lanes("half", lanes)
        return writer.define(
            f"fpext {half} {writer.define(f'bitcast {short} {bits} to {half}', at)} to {wide}", at
        )
    upper = writer.define(f"zext {short} {bits} to {integer}", at)
    moved = writer.define(f"shl {integer} {upper}, {writer.splat(16, lanes)}", at)
    return writer.define(f"bitcast {integer} {moved} to {wide}", at)


def narrow(writer: Writer, dtype: str, value: str, lanes: int) -> str:
    """Write the bits of a narrow type from the type of the arithmetic."""
    w, integer, wide = writer, writer.integer(lanes), writer.type(lanes)
    short = of_lanes(f"i{8 * DTYPES[dtype]}", lanes)
    if dtype == "int8":
        return w.define(f"trunc {wide} {value} to {short}")
    if dtype == QINT8:
        return w.define(f"fptosi {wide} {value} to {short}")
    if dtype == "float16":
        half = of_lanes("half", lanes)
        return w.define(f"bitcast {half} {w.define(f'fptrunc {wide} {value} to {half}')} to {short}")
    bits = w.define(f"bitcast {wide} {value} to {integer}")
    # 0x7FFF and the lowest bit that is kept: it carries above a half, and at a half where that bit is odd.
    odd = w.define(f"and {integer} {_upper(w, bits, lanes)}, {w.splat(_LEAST, lanes)}")
    carry = w.define(f"add {integer} {odd}, {w.splat(_ALMOST_HALF, lanes)}")
    rounded = w.define(f"add {integer} {bits}, {carry}")
    quiet = w.define(f"or {integer} {bits}, {w.splat(_QUIET, lanes)}")
    nan = w.define(f"fcmp uno {wide} {value}, {value}")
    chosen = w.define(f"select {of_lanes('i1', lanes)} {nan}, {integer} {quiet}, {integer} {rounded}")
    return w.define(f"trunc {integer} {_upper(w, chosen, lanes)} to {short}")


def _upper(writer: Writer, bits: str, lanes: int) -> str:
    return writer.define(f"lshr {writer.integer(lanes)} {bits}, {writer.splat(16, lanes)}")


# Memory


class Cell(NamedTuple):
    """Elements of a buffer that are loaded or stored at once: a vector or a scalar.

    Args:
        buffer: its name.
        offset: of the first element, from a pointer.
        stride: elements between lanes; 0 for a scalar.
        lanes: of the vector, a power of 2.
        active: lanes that count.
    """

    buffer: str
    offset: int
    stride: int = 0
    lanes: int = 1
    active: int = 1


class Loaded(NamedTuple):
    """Value of a load: a cell seen from a pointer, in a number of lanes."""

    pointer: str
    cell: Cell
    lanes: int


class Element(NamedTuple):
    """An element as it lies in memory.

    Args:
        dtype: one of `planish.levels.loops.lang.program.DTYPES`.
        type: LLVM's name of it.
        bytes: its size.
    """

    dtype: str
    type: str
    bytes: int

    def suffix(self, lanes: int) -> str:
        """Name vectors of it as in the names of intrinsic functions."""
        kind = "i" if self.type.startswith("i") else "f"
        return f"{kind}{8 * self.bytes}" if lanes == 1 else f"v{lanes}{kind}{8 * self.bytes}"


@dataclass
class Live:
    """A loop of the machine code, around the code that is being written.

    Args:
        id: the tree's loop.
        counter: its iteration number, the position of an iteration's first copy of the body.
        writes: buffers that its body writes.
        before: text just before the loop.
        head: text at the start of its body.
        loads: values loaded in its body and outside all others, the oldest first.
    """

    id: LoopId
    counter: str
    writes: frozenset[str]
    before: Lines = field(default_factory=list["str | Lines"])
    head: Lines = field(default_factory=list["str | Lines"])
    loads: dict[Loaded, str] = field(default_factory=dict[Loaded, str])


class Memory:
    """Reads and writes of one function.

    Args:
        buffers: name to what it is.
        base: writes the address of a buffer, given where.
        most: how many loaded values are kept for use again.
        masks: whether the processor loads and stores parts of a vector as cheaply as whole ones.
    """

    def __init__(
        self,
        writer: Writer,
        buffers: Mapping[str, Buffer],
        base: Callable[[str, Lines], str],
        most: int,
        *,
        masks: bool,
    ) -> None:
        self.writer = writer
        self._masks = masks
        self._pairs = {name for name, b in buffers.items() if b.dtype == BFLOAT16X2}
        # The bits of a pair are moved as those of one number.
        types = {name: writer.dtype if name in self._pairs else b.dtype for name, b in buffers.items()}
        # Narrow ones lie in memory as integers.
        self._elements = {
            name: Element(
                dtype, writer.element if dtype == writer.dtype else f"i{8 * DTYPES[dtype]}", DTYPES[dtype]
            )
            for name, dtype in types.items()
        }
        self.most = most
        self.lives = [Live(("", 0), "", frozenset())]
        """The function itself, then the loops from the outermost inward."""
        self._base = base
        self._addresses: dict[str, str] = {}
        self._moved: dict[tuple[str, str, int], str] = {}
        writer.lines.append(self.lives[0].head)

    def pointer(self, ref: Ref) -> str:
        """Write the address of a reference as far as run-time loops move it."""
        name, element = self._addresses.get(ref.buffer), self._elements[ref.buffer]
        if name is None:
            name = self._addresses[ref.buffer] = self._base(ref.buffer, self.lives[0].head)
        for live in self.lives[1:]:
            stride = ref.stride.get(live.id, 0)
            if stride:
                key = (name, live.counter, stride)
                if key not in self._moved:
                    text = f"getelementptr [{stride} x {element.type}], ptr {name}, i64 {live.counter}"
                    self._moved[key] = self.writer.define(text, live.head)
                name = self._moved[key]
        return name

    def load(self, ref: Ref, cell: Cell, lanes: int) -> Val:
        """Load a cell; a scalar is repeated in all lanes."""
        pointer = self.pointer(ref)
        level = len(self.lives) - 1
        while level and self.lives[level].id not in ref.stride and ref.buffer not in self.lives[level].writes:
            level -= 1
        at = None if level == len(self.lives) - 1 else self.lives[level + 1].before
        known = self.lives[level].loads
        key = Loaded(pointer, cell, lanes)
        # Taken out and put back, so that the oldest is the one that was needed longest ago.
        name = known.pop(key, None) or self.fetch(pointer, cell, lanes, at)
        known[key] = name
        # More would be alive than there are registers, and be spilled.
        if len(known) > self.most:
            del known[next(iter(known))]
        return Val(name, lanes)

    def is_integer_index(self, ref: Ref) -> bool:
        """Return whether a reference is to indices of integers, in arithmetic of another type."""
        dtype = self._elements[ref.buffer].dtype
        return dtype in INDICES and dtype != self.writer.dtype

    def is_pair(self, ref: Ref) -> bool:
        """Return whether an element is two numbers of bfloat16."""
        return ref.buffer in self._pairs

    def load_at_stride(self, ref: Ref, cell: Cell, lanes: int, index: str, stride: int) -> Val:
        """Load a cell at an index, in strides, from its address; a scalar is repeated."""
        element = self._elements[ref.buffer]
        text = f"getelementptr [{stride} x {element.type}], ptr {self.pointer(ref)}, i64 {index}"
        return Val(self.fetch(self.writer.define(text), cell, lanes), lanes)

    def fetch(self, pointer: str, cell: Cell, lanes: int, at: Lines | None = None) -> str:
        """Write the load of a cell from a buffer's pointer; of an index of integers, in 64 bits."""
        element, w = self._elements[cell.buffer], self.writer
        address, size = self._address(pointer, cell, at), element.bytes
        vector = of_lanes(element.type, cell.lanes if cell.stride else 1)
        if cell.stride == 0 or (cell.stride == 1 and cell.active == cell.lanes):
            # Without an alignment LLVM takes a whole vector's, and tiles may begin at any element.
            loaded = w.define(f"load {vector}, ptr {address}, align {size}", at)
        elif cell.stride == 1 and not self._masks:
            loaded = self._load_pieces(element, address, cell, at)
        else:
            name = f"llvm.masked.load.{element.suffix(cell.lanes)}.p0"
            source = ("ptr", address)
            if cell.stride > 1:
                name = f"llvm.masked.gather.{element.suffix(cell.lanes)}.v{cell.lanes}p0"
                source = self._spread(address, cell, at)
            rest = mask_of(cell.lanes, cell.active), (vector, "zeroinitializer")
            loaded = w.call(vector, name, [source, ("i32", str(size)), *rest], at)
        if element.dtype in INDICES and element.dtype != w.dtype:
            return loaded if size == 8 else w.define(f"sext {element.type} {loaded} to i64", at)
        if element.dtype != w.dtype:
            loaded = widen(w, element.dtype, loaded, cell.lanes if cell.stride else 1, at)
        return loaded if cell.stride else w.widened(Val(loaded, 1), lanes, at)

    def put(self, pointer: str, cell: Cell, value: Val) -> None:
        """Write the store of a cell to a buffer's pointer; what was loaded of the buffer is forgotten."""
        w, element = self.writer, self._elements[cell.buffer]
        self.forget(frozenset((cell.buffer,)))
        address = self._address(pointer, cell, None)
        vector, size = of_lanes(element.type, cell.lanes), element.bytes
        name = w.widened(value, cell.lanes)
        if element.dtype != w.dtype:
            name = narrow(w, element.dtype, name, cell.lanes)
        if cell.stride <= 1 and cell.active == cell.lanes:
            w.lines.append(f"  store {vector} {name}, ptr {address}, align {size}")
            return
        if cell.stride == 1 and not self._masks:
            self._store_pieces(element, address, cell, name)
            return
        mask = mask_of(cell.lanes, cell.active)
        arguments = [(vector, name), ("ptr", address), ("i32", str(size)), mask]
        if cell.stride == 1:
            w.call("void", f"llvm.masked.store.{element.suffix(cell.lanes)}.p0", arguments)
            return
        arguments[1] = self._spread(address, cell, None)
        w.call("void", f"llvm.masked.scatter.{element.suffix(cell.lanes)}.v{cell.lanes}p0", arguments)

    def _load_pieces(self, element: Element, address: str, cell: Cell, at: Lines | None) -> str:
        """Write the load of a vector's active lanes by whole vectors of fewer; the other lanes are open."""
        w, vector, loaded = self.writer, of_lanes(element.type, cell.lanes), "poison"
        for start, lanes in pieces_of(cell.active):
            where = (
                w.define(f"getelementptr {element.type}, ptr {address}, i64 {start}", at)
                if start
                else address
            )
            piece = w.define(f"load <{lanes} x {element.type}>, ptr {where}, align {element.bytes}", at)
            spread = ", ".join(
                f"i32 {i - start}" if start <= i < start + lanes else "i32 poison" for i in range(cell.lanes)
            )
            kind = f"<{lanes} x {element.type}>"
            widened = w.define(
                f"shufflevector {kind} {piece}, {kind} poison, <{cell.lanes} x i32> <{spread}>", at
            )
            if not start:
                loaded = widened
                continue
            picked = ", ".join(f"i32 {i if i < start else i + cell.lanes}" for i in range(cell.lanes))
            text = f"shufflevector {vector} {loaded}, {vector} {widened}, <{cell.lanes} x i32> <{picked}>"
            loaded = w.define(text, at)
        return loaded

    def _store_pieces(self, element: Element, address: str, cell: Cell, value: str) -> None:
        """Write the store of a vector's active lanes by whole vectors of fewer."""
        w, vector = self.writer, of_lanes(element.type, cell.lanes)
        for start, lanes in pieces_of(cell.active):
            where = (
                w.define(f"getelementptr {element.type}, ptr {address}, i64 {start}") if start else address
            )
            picked = ", ".join(f"i32 {i}" for i in range(start, start + lanes))
            piece = w.define(f"shufflevector {vector} {value}, {vector} poison, <{lanes} x i32> <{picked}>")
            w.lines.append(f"  store <{lanes} x {element.type}> {piece}, ptr {where}, align {element.bytes}")

    def forget(self, buffers: frozenset[str]) -> None:
        """Drop the loaded values of buffers that are about to change."""
        for live in self.lives:
            for key in [k for k in live.loads if k.cell.buffer in buffers]:
                del live.loads[key]

    def _address(self, pointer: str, cell: Cell, at: Lines | None) -> str:
        if cell.offset == 0:
            return pointer
        element = self._elements[cell.buffer].type
        return self.writer.define(f"getelementptr {element}, ptr {pointer}, i64 {cell.offset}", at)

    def _spread(self, address: str, cell: Cell, at: Lines | None) -> tuple[str, str]:
        """Write the addresses of a cell's lanes."""
        element = self._elements[cell.buffer].type
        offsets = ", ".join(f"i64 {i * cell.stride}" for i in range(cell.lanes))
        text = f"getelementptr {element}, ptr {address}, <{cell.lanes} x i64> <{offsets}>"
        return f"<{cell.lanes} x ptr>", self.writer.define(text, at)


def mask_of(lanes: int, active: int) -> tuple[str, str]:
    """Return the type and the value of a mask of the first lanes."""
    return f"<{lanes} x i1>", f"<{', '.join(f'i1 {int(i < active)}' for i in range(lanes))}>"


def pieces_of(active: int) -> list[tuple[int, int]]:
    """Cut a number of lanes into powers of 2, the largest first: the first lane of each, and how many."""
    bits = [1 << bit for bit in reversed(range(active.bit_length())) if active >> bit & 1]
    return list(zip(accumulate([0, *bits]), bits, strict=False))
