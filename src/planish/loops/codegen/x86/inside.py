"""The code of a region: results in registers, loops that only reduce, and everything else unrolled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from planish.loops.codegen.x86.block import REDUCE, Block
from planish.loops.codegen.x86.counting import Counting
from planish.loops.codegen.x86.extremes import EXTREMES, extreme
from planish.loops.codegen.x86.fetching import fetch_ahead
from planish.loops.codegen.x86.horizontal import reduce_lanes
from planish.loops.codegen.x86.isa import Isa
from planish.loops.codegen.x86.items import Items
from planish.loops.codegen.x86.paths import Inside, instances
from planish.loops.codegen.x86.pointers import Pointer, Pointers
from planish.loops.codegen.x86.region import Analyser, Region
from planish.loops.codegen.x86.scope import UNROLLED_MAX
from planish.loops.codegen.x86.unrolling import Unrolled, Unroller
from planish.loops.codegen.x86.vectors import Element
from planish.loops.ir.extent import remaining
from planish.loops.ir.tree import Leaf, Loop, LoopTree, Node
from planish.loops.lang.program import IDENTITY

LOOP_WORK = 32
"""A loop that only reduces, around less work than this many operations, is unrolled up to it."""
UNROLL_WORK = 64
"""Such a loop is unrolled altogether if that gives no more operations than this."""

FETCHED_FROM = 1 << 15
"""A buffer of fewer bytes stays in the first cache: its lines are not asked for."""

Moved = Sequence[tuple[Pointer, int]]
"""The pointers that a loop moves, with the bytes per iteration."""
Codes = Mapping[str, int]
"""An arithmetic operation to its instruction, for one width of registers."""
Part = Callable[[int], int]
"""The number of a vector register to that of its part of this width."""
Body = Callable[[Moved, int], None]
"""Writes iterations of a loop, one behind the other, given what the loop moves and how many."""


class RegionCode:
    """Writes one region.

    Args:
        region: the plan of its registers.
        analyser: knows what a loop does.
        counting: writes loops, into the code that the region goes into.
        masks: lane count to opmask register, of the whole function.
    """

    def __init__(self, region: Region, analyser: Analyser, counting: Counting, masks: dict[int, int]) -> None:
        self._region = region
        self._held = region.held
        self._analyser = analyser
        self._tree: LoopTree = analyser.tree
        self._isa: Isa = analyser.isa
        self._counting = counting
        self._asm = counting.asm
        self._pointers: Pointers = counting.pointers
        self._block = Block(self._asm, self._isa, self._pointers, region.free, masks)
        self._items = Items(region, self._block, self._pointers, self._isa)
        self._unroller = Unroller(self._tree, self._pointers, self._items, self._isa.lanes)
        self._copies = region.copies
        self._large = analyser.buffers_from(FETCHED_FROM)

    def write(self, nodes: tuple[Node, ...], inside: Inside) -> None:
        """Load what is held, run the nodes, and store it."""
        self._pointers.hold_strides(self._asm, self._row_strides(nodes), spare=3)
        self._begin()
        for node in nodes:
            found = self._analyser.leaves(node)
            if False in [self._items.is_start(leaf) for leaf in found]:
                self._node(node, inside, None)
                self._block.flush()
                self._combine(found)
        self._end()
        self._pointers.drop_strides()

    def _row_strides(self, nodes: tuple[Node, ...]) -> list[int]:
        """The strides, in bytes, by which unrolled loops make displacements long."""
        far = 16 * self._isa.itemsize if self._isa.wide else 16
        found: dict[int, None] = {}
        for loop in self._analyser.unrolled(nodes):
            found.update([(s, None) for _, s in self._pointers.moved(loop, loop.id) if s >= far])
        return list(found)

    # Results

    def _homes(self, buffer: str) -> list[Element]:
        """Where a buffer's held vectors are in memory."""
        size, stride = self._isa.itemsize, self._held.stride.get(buffer, 1)
        of = self._pointers.of
        pairs = [(place, of(ref)) for place, ref in self._region.homes[buffer].items()]
        return [
            Element(pointer, offset * size + pointer.shift - pointer.drift, stride, lanes)
            for (offset, lanes), pointer in pairs
        ]

    def _begin(self) -> None:
        """Give held vectors their first values."""
        held, block = self._held, self._block
        for buffer, groups in self._region.registers.items():
            reduce = held.reduce.get(buffer)
            if reduce is None:
                continue
            if buffer in held.fresh or buffer in held.lanewise:
                block.fill(
                    [register for registers in groups.values() for register in registers], IDENTITY[reduce]
                )
                continue
            for home, (first, *parts) in zip(self._homes(buffer), groups.values(), strict=True):
                block.transfers.load(first, home)
                if parts:
                    block.fill(parts, IDENTITY[reduce])

    def _combine(self, found: list[Leaf]) -> None:
        """Make whole the sums that were kept in parts or lane by lane, once their leaves ran."""
        held = self._held
        if self._copies == 1 and not held.lanewise:
            return
        made = {leaf.target.buffer for leaf in found if leaf.reduce}
        for buffer, groups in self._region.registers.items():
            if buffer in made:
                function = held.reduce[buffer]
                for home, registers in zip(self._homes(buffer), groups.values(), strict=True):
                    first, *parts = registers
                    for register in parts:
                        self._join(function, first, register, self._isa.forms.arithmetic, self._isa.vector)
                    del registers[1:]
                    if buffer in held.lanewise:
                        self._sum_lanes(buffer, first, function, home)

    def _join(self, function: str, into: int, register: int, codes: Codes, part: Part) -> None:
        """Reduce two vectors, or parts of them, to one; registers 0 and 1 are not in use here."""
        if function in EXTREMES:
            extreme(self._asm, self._isa, function, into, into, register, spare=1)
        else:
            self._asm.emit(codes[REDUCE[function]], part(into), part(into), part(register))

    def _sum_lanes(self, buffer: str, register: int, function: str, home: Element) -> None:
        """Reduce a vector to one element in all lanes, with what memory holds if it did not begin here."""
        reduce_lanes(self._asm, self._isa, register, REDUCE[function])
        if buffer not in self._held.fresh:
            self._block.transfers.load(0, home)
            self._join(function, register, 0, self._isa.forms.arithmetic_xmm, self._isa.xmm)
        self._asm.emit(self._isa.forms.repeat_lowest, self._isa.vector(register), self._isa.xmm(register))

    def _end(self) -> None:
        """Store held vectors that live on."""
        transfers = self._block.transfers
        for buffer, groups in self._region.registers.items():
            if buffer in self._held.local:
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
        if self._held.stride.get(buffer, 1) != 1 or {lanes for _, lanes in homes} != {self._isa.lanes}:
            return None
        refs = {id(ref): ref for ref in homes.values()}
        pointer, *others = [self._pointers.of(ref) for ref in refs.values()]
        return None if others or not pointer.register else pointer

    # Loops

    def _node(self, node: Node, inside: Inside, inner: Loop | None) -> None:
        if isinstance(node, Leaf) or self._analyser.unrolls(node):
            for make, lanes, moves, _ in self._unrolled(node, inside, inner):
                make(lanes, moves)
        elif node.side_by_side:
            self._vectors(node, inside)
        else:
            self._loop(node, inside)

    def _unrolled(self, node: Node, inside: Inside, inner: Loop | None) -> list[Unrolled]:
        """List the items of a leaf, or of a nest that is unrolled."""
        if isinstance(node, Loop):
            return self._unroller.items(node, inside)
        make = self._items.maker(node, inner)
        lanes = 1 if inner is None else inside[inner.axis]
        if make is None:
            return []
        pointers = [id(pointer) for pointer in self._pointers.of_leaf(node)]
        return [Unrolled(make, (lanes,), ((0,),) * len(pointers), pointers)]

    def _body(self, loop: Loop, inside: Inside, inner: Loop | None) -> Body:
        """Prepare what writes iterations; where all of one is unrolled, it is listed only once."""
        if False in [self._analyser.unrolls(node) for node in loop.body]:

            def nodes() -> None:
                for node in loop.body:
                    self._node(node, inside, inner)

            return partial(_repeat, nodes)
        listed: list[Unrolled] = []

        def make_all() -> None:
            for make, lanes, moves, _ in listed:
                make(lanes, moves)

        def body(moved: Moved, count: int) -> None:
            if not listed:
                listed.extend([u for node in loop.body for u in self._unrolled(node, inside, inner)])
            if len(listed) == 1 and count > 1:
                make, lanes, moves, _ = listed[0].repeated({id(p): stride for p, stride in moved}, count)
                make(lanes, moves)
            else:
                _repeat(make_all, moved, count)

        return body

    def _vectors(self, loop: Loop, inside: Inside) -> None:
        """A loop that is reduced a vector at a time."""
        lanes = self._isa.lanes
        strips = self._pointers.inject(loop, lanes)
        full, tail = divmod(remaining(self._tree, inside, loop.axis), lanes)
        if full:
            body = self._body(loop, {**inside, loop.axis: lanes}, loop)
            self._reduce(strips, full, len(loop.body), body)
        if tail:
            self._pointers.shift(loop, strips.id, full)
            self._body(loop, {**inside, loop.axis: tail}, loop)((), 1)
            self._pointers.shift(loop, strips.id, -full)

    def _loop(self, loop: Loop, inside: Inside) -> None:
        full, tail = divmod(remaining(self._tree, inside, loop.axis), loop.step)
        inner = {**inside, loop.axis: loop.step}
        body = self._body(loop, inner, None)
        if self._analyser.moves_target(loop):
            self._unroll(loop, full, body)
        elif full:
            work = instances(self._tree, loop.body, inner, self._isa.lanes, UNROLLED_MAX)
            self._reduce(loop, full, work, body)
        if tail:
            self._pointers.shift(loop, loop.id, full)
            self._body(loop, {**inside, loop.axis: tail}, None)((), 1)
            self._pointers.shift(loop, loop.id, -full)

    def _moves_held(self, loop: Loop) -> bool:
        """Whether iterations name different held vectors: a register's number is written into the code.

        The analyser has seen to it that such a loop is short enough to be unrolled.
        """
        registers = self._region.registers
        return any(pointer.buffer in registers for pointer, _ in self._pointers.moved(loop, loop.id))

    def _unroll(self, loop: Loop, count: int, body: Body) -> None:
        if count:
            body(self._pointers.moved(loop, loop.id), count)

    def _reduce(self, loop: Loop, count: int, work: int, body: Body) -> None:
        """A loop that only reduces: short ones are unrolled, others run, several iterations at a time."""
        short = count * work <= UNROLL_WORK or (loop.kind == "unroll" and count * work <= 4 * UNROLLED_MAX)
        if short or self._moves_held(loop):
            self._unroll(loop, count, body)
            return
        times = min(count, max(self._copies, LOOP_WORK // work)) if work < LOOP_WORK else 1
        self._block.flush()
        group = self._pointers.inject(loop, times)

        def several() -> None:
            fetch_ahead(self._asm, self._pointers, group, self._large)
            self._unroll(loop, times, body)
            self._block.flush()

        self._counting.repeat(group, count // times, several)
        if count % times:
            self._pointers.shift(loop, group.id, count // times)
            self._unroll(loop, count % times, body)
            self._pointers.shift(loop, group.id, -(count // times))


def _repeat(write: Callable[[], None], moved: Moved, count: int) -> None:
    """Write the same iteration again and again, with static offsets from where its pointers would stand."""
    for _ in range(count):
        write()
        for pointer, stride in moved:
            pointer.shift += stride
    for pointer, stride in moved:
        pointer.shift -= stride * count
