"""The code of a region: results in registers, loops that only reduce, and everything else unrolled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial

from planish.loops.codegen.x86.block import REDUCE, Block
from planish.loops.codegen.x86.counted_loops import Counting
from planish.loops.codegen.x86.extremes import EXTREMES, extreme
from planish.loops.codegen.x86.fetching import fetch_ahead
from planish.loops.codegen.x86.horizontal import reduce_lanes
from planish.loops.codegen.x86.isa import Isa
from planish.loops.codegen.x86.items import Items
from planish.loops.codegen.x86.pointers import Pointer, Pointers
from planish.loops.codegen.x86.unrolled_loops import Iterations, Unroller
from planish.loops.codegen.x86.vectors import Element
from planish.loops.ir.annotated import Block as Together
from planish.loops.ir.annotated import Item, Nest, Part, Region, Unrolled
from planish.loops.ir.tree import Loop, LoopTree
from planish.loops.lang.program import IDENTITY

Moved = Sequence[tuple[Pointer, int]]
"""The pointers that a loop moves, with the bytes per iteration."""
Codes = Mapping[str, int]
"""An arithmetic operation to its instruction, for one width of registers."""
Width = Callable[[int], int]
"""The number of a vector register to that of its part of this width."""
Body = Callable[[Moved, int], None]
"""Writes iterations of a loop, one behind the other, given what the loop moves and how many."""


class RegionCode:
    """Writes one region.

    Args:
        region: what is in registers, and how its nodes are executed.
        tree: the whole tree.
        isa: instruction set and element type.
        counting: writes loops, into the code that the region goes into.
        masks: lane count to opmask register, of the whole function.
    """

    def __init__(
        self, region: Region, tree: LoopTree, isa: Isa, counting: Counting, masks: dict[int, int]
    ) -> None:
        self._region = region
        self._isa = isa
        self._counting = counting
        self._asm = counting.asm
        self._pointers: Pointers = counting.pointers
        self._block = Block(self._asm, self._isa, self._pointers, region.free, masks)
        self._registers = {buffer: dict(groups) for buffer, groups in region.registers.items()}
        # Sums in parts leave theirs when they are made whole.
        self._items = Items(region, self._registers, self._block, self._pointers, self._isa)
        self._unroller = Unroller(tree, self._pointers, self._items, self._isa.lanes)

    def write(self) -> None:
        """Load what is held, run the nodes, and store it."""
        self._pointers.hold_strides(self._asm, self._row_strides(), spare=3)
        self._begin()
        for item, made in zip(self._region.items, self._region.made, strict=True):
            self._item(item)
            self._block.flush()
            if made:
                self._combine(made)
        self._end()
        self._pointers.drop_strides()

    def _row_strides(self) -> list[int]:
        """The strides, in bytes, by which unrolled loops make displacements long."""
        # Eight rows of a shorter stride are within a displacement of one byte (of elements, in AVX-512).
        far = 16 * self._isa.itemsize if self._isa.wide else 16
        found: dict[int, None] = {}
        for loop in self._region.unrolled:
            found.update([(s, None) for _, s in self._pointers.moved(loop, loop.id) if s >= far])
        return list(found)

    # Results

    def _homes(self, buffer: str) -> list[Element]:
        """Where a buffer's held vectors are in memory."""
        size, stride = self._isa.itemsize, self._region.stride.get(buffer, 1)
        of = self._pointers.of
        pairs = [(place, of(ref)) for place, ref in self._region.homes[buffer].items()]
        return [
            Element(pointer, offset * size + pointer.shift - pointer.drift, stride, lanes)
            for (offset, lanes), pointer in pairs
        ]

    def _begin(self) -> None:
        """Give held vectors their first values."""
        held, block = self._region, self._block
        for buffer, groups in self._registers.items():
            reduce = held.reduce.get(buffer)
            if reduce is None:
                continue
            # Kept lane by lane, a sum that began with what memory holds would count it in each lane.
            if buffer in held.fresh or buffer in held.lanewise:
                block.fill(
                    [register for registers in groups.values() for register in registers], IDENTITY[reduce]
                )
                continue
            for home, (first, *parts) in zip(self._homes(buffer), groups.values(), strict=True):
                block.transfers.load(first, home)
                if parts:
                    block.fill(parts, IDENTITY[reduce])

    def _combine(self, made: Set[str]) -> None:
        """Make whole the sums that were kept in parts or lane by lane, once their leaves ran."""
        held = self._region
        for buffer, groups in self._registers.items():
            if buffer in made:
                function = held.reduce[buffer]
                for home, place in zip(self._homes(buffer), groups, strict=True):
                    first, *parts = groups[place]
                    for register in parts:
                        self._join(function, first, register, self._isa.forms.arithmetic, self._isa.vector)
                    if parts:
                        groups[place] = (first,)
                    if buffer in held.lanewise:
                        self._sum_lanes(buffer, first, function, home)

    def _join(self, function: str, into: int, register: int, codes: Codes, part: Width) -> None:
        """Reduce two vectors, or parts of them, to one; registers 0 and 1 are not in use here."""
        if function in EXTREMES:
            extreme(self._asm, self._isa, function, into, into, register, spare=1)
        else:
            self._asm.emit(codes[REDUCE[function]], part(into), part(into), part(register))

    def _sum_lanes(self, buffer: str, register: int, function: str, home: Element) -> None:
        """Reduce a vector to one element in all lanes, with what memory holds if it did not begin here."""
        reduce_lanes(self._asm, self._isa, register, REDUCE[function])
        if buffer not in self._region.fresh:
            self._block.transfers.load(0, home)
            self._join(function, register, 0, self._isa.forms.arithmetic_xmm, self._isa.xmm)
        self._asm.emit(self._isa.forms.repeat_lowest, self._isa.vector(register), self._isa.xmm(register))

    def _end(self) -> None:
        """Store held vectors that live on."""
        transfers = self._block.transfers
        for buffer, groups in self._registers.items():
            if buffer in self._region.local:
                continue
            made = [registers[0] for registers in groups.values()]
            pointer = self._common_pointer(buffer)
            if pointer:
                size, start = self._isa.itemsize, pointer.shift - pointer.drift
                transfers.store_full(made, pointer, [offset * size + start for offset, _ in groups])
                continue
            for register, home in zip(made, self._homes(buffer), strict=True):
                transfers.store(register, home)

    def _common_pointer(self, buffer: str) -> Pointer | None:
        """The pointer of all that is held of a buffer, if these are full vectors and a register has it."""
        homes = self._region.homes[buffer]
        if self._region.stride.get(buffer, 1) != 1 or {lanes for _, lanes in homes} != {self._isa.lanes}:
            return None
        refs = {id(ref): ref for ref in homes.values()}
        pointer, *others = [self._pointers.of(ref) for ref in refs.values()]
        return None if others or not pointer.register else pointer

    # Loops

    def _item(self, item: Item) -> None:
        match item:
            case Unrolled():
                for make, lanes, moves, _ in self._listed(item):
                    make(lanes, moves)
            case Nest():
                self._nest(item)
            case Together(items=items):
                for inner in items:
                    self._item(inner)
            case _:
                raise AssertionError(item)

    def _listed(self, item: Unrolled) -> list[Iterations]:
        """List the items of a leaf, or of a nest that is unrolled."""
        node, inside, vector = item
        if isinstance(node, Loop):
            return self._unroller.items(node, inside)
        make = self._items.maker(node, vector)
        lanes = 1 if vector is None else inside[vector.axis]
        if make is None:
            return []
        pointers = [id(pointer) for pointer in self._pointers.of_leaf(node)]
        return [Iterations(make, (lanes,), ((0,),) * len(pointers), pointers)]

    def _nest(self, nest: Nest) -> None:
        loop, pointers = nest.loop, self._pointers
        for part in nest.parts:
            if part.first:
                pointers.shift(loop, loop.id, part.first)
            strip = pointers.inject(loop, part.width) if part.width > 1 and part.passes > 1 else loop
            if part.kind == "counted":
                self._counted(strip, part)
            else:
                self._body(part.body)(pointers.moved(strip, strip.id) if part.passes > 1 else (), part.passes)
            if part.first:
                pointers.shift(loop, loop.id, -part.first)

    def _body(self, item: Item) -> Body:
        """Prepare what writes passes of a loop; where all of one is unrolled, it is listed only once."""
        items = item.items if isinstance(item, Together) else (item,)
        if False in [isinstance(one, Unrolled) for one in items]:
            return partial(_repeat, partial(self._item, item))
        listed: list[Iterations] = []

        def make_all() -> None:
            for make, lanes, moves, _ in listed:
                make(lanes, moves)

        def body(moved: Moved, count: int) -> None:
            if not listed:
                listed.extend([u for one in items if isinstance(one, Unrolled) for u in self._listed(one)])
            if len(listed) == 1 and count > 1:
                make, lanes, moves, _ = listed[0].repeated({id(p): stride for p, stride in moved}, count)
                make(lanes, moves)
            else:
                _repeat(make_all, moved, count)

        return body

    def _counted(self, loop: Loop, part: Part) -> None:
        """A loop that only reduces, several passes at a time; those that are left over are unrolled."""
        # What waits belongs before the loop, where it runs once.
        self._block.flush()
        group, body = self._pointers.inject(loop, part.copies), self._body(part.body)
        moved = self._pointers.moved(loop, loop.id)
        times, rest = divmod(part.passes, part.copies)

        def several() -> None:
            fetch_ahead(self._asm, self._pointers, group, part.fetched)
            body(moved, part.copies)
            # Nothing loaded outlives an iteration: in the next one the pointers stand elsewhere.
            self._block.flush()

        self._counting.repeat(group, times, several)
        if rest:
            # What is left begins here; pointers that went along have drifted by as much.
            self._pointers.shift(loop, group.id, times)
            body(moved, rest)
            self._pointers.shift(loop, group.id, -times)


def _repeat(write: Callable[[], None], moved: Moved, count: int) -> None:
    """Write the same iteration again and again, with static offsets from where its pointers would stand."""
    for _ in range(count):
        write()
        for pointer, stride in moved:
            pointer.shift += stride
    for pointer, stride in moved:
        pointer.shift -= stride * count
