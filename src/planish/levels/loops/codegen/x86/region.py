"""Code of a region: its leaves as items of basic blocks, results in registers, and loops that only reduce.

Loops that write along the result are unrolled, because every iteration has registers of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import count, repeat
from typing import NamedTuple, TypeGuard

from planish.levels.loops.codegen.x86.basic_block import BasicBlock
from planish.levels.loops.codegen.x86.isa import ADD_INTEGERS, DOT, MINMAX, Isa, minmax
from planish.levels.loops.codegen.x86.pointers import Counting, Pointer, Pointers, prefetch
from planish.levels.loops.codegen.x86.transfers import moves_bits, reduce_lanes
from planish.levels.loops.codegen.x86.vectors import Accumulator, Element, Gathered, Operation, Vector
from planish.levels.loops.ir.annotated import AnnotatedLoop, Block, Inside, Item, Part, Region, Slot, Unrolled
from planish.levels.loops.ir.tree import Call, Leaf, Loop, LoopTree, Node, Ref, Value, remaining
from planish.levels.loops.lang.program import DTYPES, IDENTITY, INDICES, INT8X4, PACKED, QINT32, Const

Lanes = Sequence[int]
"""Lanes of each unrolled iteration of a leaf."""
Moves = Sequence[Sequence[int]]
"""For each reference of a leaf, its target first: how far each of these iterations has moved it, in bytes."""
Registers = Mapping[str, Mapping[Slot, Sequence[int]]]
"""Buffer to its vectors, each with the numbers of its registers."""
Make = Callable[[Lanes, Moves], None]
"""Appends a leaf's items for some unrolled iterations."""
Numbers = Callable[[Lanes, Moves], list[int]]
"""Returns the register of each iteration's target."""
Vectors = Callable[[Lanes, Moves], Sequence[Vector]]
"""Returns each iteration's value."""


class Items:
    """Makes the items of one region; what does not depend on the iteration is worked out once for each leaf.

    Args:
        region: which vectors are held in registers.
        registers: in which, as it stands when items are made.
        block: takes the items.
        pointers: where elements are; as they stand now, at the region's beginning.
    """

    def __init__(
        self, region: Region, registers: Registers, block: BasicBlock, pointers: Pointers, isa: Isa
    ) -> None:
        self._region, self._registers, self._block = region, registers, block
        self._pointers, self._isa = pointers, isa
        self._made: dict[tuple[int, int], Make | None] = {}
        self._turns: dict[tuple[str, Slot], int] = {}

    def maker(self, leaf: Leaf, inner: Loop | None) -> Make | None:
        """Prepare a leaf, vectorized along the loop `inner`; None if it has nothing to do."""
        key = id(leaf), id(inner)
        if key not in self._made:
            self._made[key] = None if self._region.is_start(leaf) else self._maker(leaf, inner)
        return self._made[key]

    def _maker(self, leaf: Leaf, inner: Loop | None) -> Make:
        reduce, full, add = leaf.reduce, self._isa.lanes, self._block.add
        if reduce and self._dtype(leaf.target) == QINT32:
            reduce = ADD_INTEGERS
        if leaf.target.buffer not in self._registers:
            targets = self._elements(leaf.target, inner, 1, 0)
            values = self._vectors(leaf.value, inner, count(1))

            def write(lanes: Lanes, moves: Moves) -> None:
                for target, value in zip(targets(lanes, moves), values(lanes, moves), strict=True):
                    add(target, None, Operation(reduce, (target, value)) if reduce else value, full)

            return write
        lanewise = leaf.target.buffer in self._region.lanewise
        held = self._targets(leaf.target, inner)
        of_words = self._isa.forms.fma > 0 and self._of_words(leaf.value)
        # One instruction multiplies and adds; part of a vector with a mask, which AVX2 has not.
        multiplies = of_words if self._isa.is_integer else self._multiplies(leaf.value)
        if leaf.reduce == "add" and multiplies and (self._isa.wide or not lanewise):
            return self._product(leaf, inner, held, lanewise)
        # The target is number 0 of the references.
        values = self._vectors(leaf.value, inner, count(1))

        def accumulate(lanes: Lanes, moves: Moves) -> None:
            # What is beyond the result's end is never stored, and may be anything; where lanes are summed, it
            # counts.
            counts = lanes if lanewise else repeat(full)
            for register, value, n in zip(held(lanes, moves), values(lanes, moves), counts, strict=False):
                add(Accumulator(register), reduce, value, n)

        return accumulate

    def _multiplies(self, value: Value) -> TypeGuard[Call]:
        """Return whether a value is a product of two elements in memory."""
        return (
            isinstance(value, Call)
            and value.function == "mul"
            and all(isinstance(arg, Ref) and arg.buffer not in self._registers for arg in value.args)
        )

    def _of_words(self, value: Value) -> bool:
        """Return whether it is a product of two elements of int8: 16 bits of either are enough."""
        return self._multiplies(value) and all(
            self._pointers.of(f).dtype == "int8" for f in value.args if isinstance(f, Ref)
        )

    def _dtype(self, value: Value) -> str:
        return self._pointers.of(value).dtype if isinstance(value, Ref) else ""

    def _product(self, leaf: Leaf, inner: Loop | None, held: Numbers, lanewise: bool) -> Make:
        full, add = self._isa.lanes, self._block.add_products
        _, a, b = leaf.refs
        first = self._isa.is_integer and inner is not None and inner.id in a.stride
        left = self._elements(a, inner, full, 1, word=first)
        right = self._elements(b, inner, full, 2, word=self._isa.is_integer and not first)
        code = self._isa.forms.dots.get(self._dtype(a), self._isa.forms.fma)
        if self._dtype(a) == INT8X4:
            left, right = right, left

        def multiply_add(lanes: Lanes, moves: Moves) -> None:
            counts = lanes if lanewise else [full] * len(lanes)
            add(code, held(lanes, moves), left(lanes, moves), right(lanes, moves), counts)

        return multiply_add

    def _targets(self, ref: Ref, inner: Loop | None) -> Numbers:
        """Prepare which registers a target has; sums that are kept in parts take theirs alternately."""
        slots, table = self._slots(ref, inner, 0), self._registers[ref.buffer]
        pointer, buffer, turns = self._pointers.of(ref), ref.buffer, self._turns
        asked: tuple[int, Moves] | None = None
        same: list[int] = []

        def registers(lanes: Lanes, moves: Moves) -> list[int]:
            nonlocal asked, same
            # Iterations of a reduction share their targets. `Unroller` keeps its lists, so that the same
            # iterations have the same one.
            if asked is None or asked[0] != pointer.unroll_offset or asked[1] is not moves:
                asked = pointer.unroll_offset, moves
                same = [table[slot][0] for slot in slots(lanes, moves)]
            return same

        def by_turns(lanes: Lanes, moves: Moves) -> list[int]:
            found: list[int] = []
            for slot in slots(lanes, moves):
                turn, parts = 0, table[slot]
                if len(parts) > 1:
                    turn = turns[buffer, slot] = turns.get((buffer, slot), -1) + 1
                found.append(parts[turn % len(parts)])
            return found

        return registers if self._region.copies == 1 else by_turns

    def _slots(self, ref: Ref, inner: Loop | None, number: int) -> Callable[[Lanes, Moves], list[Slot]]:
        """Prepare which held vectors a reference names."""
        pointer = self._pointers.of(ref)
        size = DTYPES[pointer.dtype]
        start = ref.offset * size - pointer.unroll_offset
        moving = inner is not None and inner.id in ref.stride

        def slots(lanes: Lanes, moves: Moves) -> list[Slot]:
            base = start + pointer.unroll_offset
            offsets = [(base + move) // size for move in moves[number]]
            return list(zip(offsets, lanes if moving else repeat(1), strict=False))

        return slots

    def _elements(
        self, ref: Ref, inner: Loop | None, still: int, number: int, *, word: bool = False
    ) -> Callable[[Lanes, Moves], list[Element]]:
        """Prepare where a reference is; it has `still` lanes if the vector's loop does not move it."""
        pointer = self._pointers.of(ref)
        offset = ref.offset * DTYPES[pointer.dtype]
        stride = ref.stride.get(inner.id, 0) if inner else 0
        known = self._block.elements(pointer, stride, word)
        wide, full = self._isa.wide, self._isa.lanes
        plain = moves_bits(self._isa, pointer.dtype)

        def new(slot: tuple[int, int]) -> Element:
            disp, lanes = slot
            # An instruction takes a whole vector from memory, or with EVEX one element for all lanes.
            folds = plain and (wide if stride == 0 else stride == 1 and lanes == full)
            element = known[slot] = Element(pointer, disp, stride, lanes, folds, word)
            return element

        def elements(lanes: Lanes, moves: Moves) -> list[Element]:
            base = offset + pointer.unroll_offset - pointer.offset
            counts = lanes if stride else repeat(still)
            slots = zip([base + move for move in moves[number]], counts, strict=False)
            return [known.get(slot) or new(slot) for slot in slots]

        return elements

    def _vectors(
        self, value: Value, inner: Loop | None, numbers: Iterator[int], *, word: bool = False
    ) -> Vectors:
        """Prepare a leaf's value; `numbers` are the indices of its references among the moves."""
        full, block = self._isa.lanes, self._block
        match value:
            case Const(number):
                return lambda lanes, _moves: [block.number(number)] * len(lanes)
            case Call("gather", (Ref() as base, index, Const(stride), Const(extent))):
                # The base before its index, as `Leaf.refs` lists them: the moves come in that order.
                elements = self._elements(base, inner, full, next(numbers))
                indices = self._vectors(index, None, numbers)
                dtype = self._pointers.of(index).dtype if isinstance(index, Ref) else ""
                integer_bytes = DTYPES[dtype] if dtype in INDICES else 0
                size = int(stride) * DTYPES[self._pointers.of(base).dtype], int(extent), integer_bytes
                return lambda lanes, moves: [
                    Gathered(element, row, *size)
                    for element, row in zip(elements(lanes, moves), indices(lanes, moves), strict=True)
                ]
            case Call():
                words = self._isa.is_integer and self._of_words(value)
                function = "words" if words else value.function
                dtype = self._dtype(value.args[0])
                parts = [
                    self._vectors(arg, inner, numbers, word=words and i == 0)
                    for i, arg in enumerate(value.args)
                ]
                if dtype in PACKED:
                    function = DOT[dtype]
                if dtype == INT8X4:
                    parts.reverse()
                return lambda lanes, moves: [
                    Operation(function, found)
                    for found in zip(*[part(lanes, moves) for part in parts], strict=True)
                ]
            case Ref():
                number = next(numbers)
                if value.buffer not in self._registers:
                    return self._elements(value, inner, full, number, word=word)
                slots, table = self._slots(value, inner, number), self._registers[value.buffer]
                return lambda lanes, moves: [Accumulator(table[p][0]) for p in slots(lanes, moves)]


# Unrolled loops


class Iterations(NamedTuple):
    """Iterations of one leaf in an unrolled nest: what makes their items, their lanes and their offsets.

    Args:
        make: makes the items.
        lanes: of each iteration.
        moves: of each of the leaf's references, by iteration.
        pointers: those of the references.
    """

    make: Make
    lanes: Lanes
    moves: Moves
    pointers: Sequence[Pointer]

    def repeated(self, strides: Mapping[Pointer, int], count: int) -> Iterations:
        """Repeat the iterations, with each pointer moved on by its stride, if it has one."""
        moves = [_again(m, strides.get(p, 0), count) for m, p in zip(self.moves, self.pointers, strict=True)]
        return Iterations(self.make, [*self.lanes] * count, moves, self.pointers)


class _Prepared(NamedTuple):
    """Facts of a loop that do not depend on how much of its axis remains.

    Args:
        vector: whether it is executed a vector at a time.
        step: elements of an iteration.
        moved: pointers that it moves, to the bytes per iteration.
        body: loops, and for leaves with something to do their maker and pointers.
    """

    vector: bool
    step: int
    moved: dict[Pointer, int]
    body: list[Loop | tuple[Make, list[Pointer]]]


class Unroller:
    """Lists the items of unrolled nests, once for each state of their axes.

    Args:
        pointers: which loops move.
        items: makes the items.
        lanes: of a vector register.
    """

    def __init__(self, tree: LoopTree, pointers: Pointers, items: Items, lanes: int) -> None:
        self._tree = tree
        self._pointers = pointers
        self._items = items
        self._lanes = lanes
        self._loops: dict[int, _Prepared] = {}
        self._axes: dict[int, list[str]] = {}
        self._known: dict[tuple[int, tuple[int | None, ...]], list[Iterations]] = {}

    def items(self, loop: Loop, inside: Inside) -> list[Iterations]:
        """List a nest's items in their order."""
        axes = self._axes.get(id(loop))
        if axes is None:
            axes = self._axes[id(loop)] = list(dict.fromkeys(_axes(loop, self._tree)))
        key = id(loop), tuple([inside.get(axis) for axis in axes])
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._chained(loop, inside)
            if not known:
                start = dict.fromkeys(self._pointers.live((loop,)), 0)
                self._walk(loop, inside, start, known.append)
        return known

    def _chained(self, loop: Loop, inside: Inside) -> list[Iterations]:
        """List the items of loops over different axes around one leaf: the common case, made quick."""
        chain: list[tuple[_Prepared, range]] = []
        axes: set[str] = set()
        node: Loop | tuple[Make, list[Pointer]] = loop
        extent = 1
        while isinstance(node, Loop):
            prepared = self._prepared(node)
            if len(prepared.body) != 1 or node.axis in axes:
                # Over one axis twice, how often the inner loop runs depends on the pass of the outer one.
                return []
            axes.add(node.axis)
            extent = remaining(self._tree, inside, node.axis)
            chain.append((prepared, range(0, extent, prepared.step)))
            node = prepared.body[0]
        make, pointers = node
        last, firsts = chain[-1]
        # Only the innermost loop can be vectorized, and `extent` is still that of its axis.
        lanes = [min(last.step, extent - first) if last.vector else 1 for first in firsts]
        moves: list[list[int]] = []
        for pointer in pointers:
            found = [0]
            for prepared, passes in reversed(chain):
                found = _again(found, prepared.moved.get(pointer, 0), len(passes))
            moves.append(found)
        return [Iterations(make, lanes * (len(moves[0]) // len(lanes)), moves, pointers)]

    def _walk(
        self, loop: Loop, inside: Inside, offsets: dict[Pointer, int], add: Callable[[Iterations], None]
    ) -> None:
        vector, step, moved, body = self._prepared(loop)
        if not body:
            return
        here = inside.get(loop.axis) or remaining(self._tree, inside, loop.axis)
        for first in range(0, here, step):
            count = min(step, here - first)
            for node in body:
                if isinstance(node, Loop):
                    self._walk(node, {**inside, loop.axis: count}, offsets, add)
                else:
                    make, pointers = node
                    moves = [(offsets[p],) for p in pointers]
                    add(Iterations(make, (count if vector else 1,), moves, pointers))
            for pointer, stride in moved.items():
                offsets[pointer] += stride
        # Back to where the nest began.
        for pointer, stride in moved.items():
            offsets[pointer] -= stride * -(-here // step)

    def _prepared(self, loop: Loop) -> _Prepared:
        known = self._loops.get(id(loop))
        if known is None:
            inner = loop if loop.side_by_side else None
            step, times = (self._lanes, self._lanes) if inner else (loop.step, 1)
            moved = {p: stride * times for p, stride in self._pointers.moved(loop, loop.id)}
            body: list[Loop | tuple[Make, list[Pointer]]] = []
            for node in loop.body:
                if isinstance(node, Leaf):
                    if make := self._items.maker(node, inner):
                        body.append((make, self._pointers.of_leaf(node)))
                elif self._prepared(node).body:
                    body.append(node)
            known = self._loops[id(loop)] = _Prepared(inner is not None, step, moved, body)
        return known


def _again(moves: Sequence[int], stride: int, count: int) -> list[int]:
    """Repeat moves, each time a stride farther."""
    if not stride:
        return [*moves] * count
    return [step + move for step in range(0, stride * count, stride) for move in moves]


def _axes(node: Node, tree: LoopTree) -> list[str]:
    """List the axes that determine how often the loops of a nest run: theirs, and those of their windows."""
    if isinstance(node, Leaf):
        return []
    window = [axis for axis, _ in tree.window.get(node.axis, ())]
    return [node.axis, *window, *(axis for below in node.body for axis in _axes(below, tree))]


# Regions

Moved = Sequence[tuple[Pointer, int]]
"""The pointers that a loop moves, with the bytes per iteration."""
Codes = Mapping[str, int]
"""An arithmetic operation to its instruction, for one width of registers."""
Width = Callable[[int], int]
"""The number of a vector register to that of its part of this width."""
Body = Callable[[Moved, int], None]
"""Writes iterations of a loop, one after the other, given what the loop moves and how many."""


class RegionCode:
    """Writes one region.

    Args:
        region: what is in registers, and how its nodes are executed.
        counting: writes loops, into the code that the region goes into.
        masks: lane count to opmask register, of the whole function.
        constants: what the last of the free registers have in all lanes, to these registers.
    """

    def __init__(
        self,
        region: Region,
        tree: LoopTree,
        isa: Isa,
        counting: Counting,
        masks: dict[int, int],
        constants: Mapping[bytes, int],
    ) -> None:
        self._region, self._tree, self._isa, self._counting = region, tree, isa, counting
        self._asm, self._pointers = counting.asm, counting.pointers
        free = region.free - len(constants)
        self._block = BasicBlock(self._asm, self._isa, self._pointers, free, masks, constants)
        self._registers = {buffer: dict(groups) for buffer, groups in region.registers.items()}
        # Sums in parts leave theirs when they are made whole.
        self._items = Items(region, self._registers, self._block, self._pointers, self._isa)
        self._unroller = Unroller(tree, self._pointers, self._items, self._isa.lanes)

    def write(self) -> None:
        """Load what is held, run the nodes, and store it."""
        # Strides by which unrolled loops make displacements long: eight rows of a shorter one are within a
        # displacement of one byte (of elements, in AVX-512).
        far = 16 * self._isa.itemsize if self._isa.wide else 16
        moved = [
            stride for loop in self._region.unrolled for _, stride in self._pointers.moved(loop, loop.id)
        ]
        wanted = list(dict.fromkeys([stride for stride in moved if stride >= far]))
        self._pointers.hold_strides(self._asm, wanted, spare=3)
        self._begin()
        for item, made in zip(self._region.items, self._region.made, strict=True):
            self._item(item)
            self._block.flush()
            if made:
                self._combine(made)
        self._end()
        self._pointers.drop_strides()

    # Results

    def _homes(self, buffer: str) -> list[Element]:
        """Return where a buffer's held vectors are in memory."""
        size, stride = self._isa.itemsize, self._region.stride.get(buffer, 1)
        of = self._pointers.of
        pairs = [(slot, of(ref)) for slot, ref in self._region.homes[buffer].items()]
        return [
            Element(pointer, offset * size + pointer.unroll_offset - pointer.offset, stride, lanes)
            for (offset, lanes), pointer in pairs
        ]

    def _begin(self) -> None:
        """Write the first values of held vectors."""
        held, block = self._region, self._block
        for buffer, groups in self._registers.items():
            reduce = held.reduce.get(buffer)
            if reduce is None:
                continue
            # Kept lane by lane, a sum that began with what memory holds would count it in each lane.
            if buffer in held.fresh or buffer in held.lanewise:
                registers = [register for parts in groups.values() for register in parts]
                block.transfers.load_numbers(registers, IDENTITY[reduce])
                continue
            for home, (first, *parts) in zip(self._homes(buffer), groups.values(), strict=True):
                block.transfers.load(first, home)
                if parts:
                    block.transfers.load_numbers(parts, IDENTITY[reduce])

    def _combine(self, made: Set[str]) -> None:
        """Make whole the sums that were kept in parts or lane by lane, once their leaves ran."""
        for buffer in [name for name in self._registers if name in made]:
            isa = self._isa.integers if self._tree.buffer[buffer].dtype == QINT32 else self._isa
            forms = isa.forms
            groups, function = self._registers[buffer], self._region.reduce[buffer]
            for home, slot in zip(self._homes(buffer), groups, strict=True):
                first, *parts = groups[slot]
                for register in parts:
                    self._join(function, first, register, forms.functions, isa.vector)
                if parts:
                    groups[slot] = (first,)
                if buffer not in self._region.lanewise:
                    continue
                # One element in all lanes, with what memory holds if it did not begin here.
                reduce_lanes(self._asm, isa, first, function)
                if buffer not in self._region.fresh:
                    self._block.transfers.load(0, home)
                    self._join(function, first, 0, forms.functions_xmm, isa.xmm)
                self._asm.emit(forms.repeat_lowest, isa.vector(first), isa.xmm(first))

    def _join(self, function: str, into: int, register: int, codes: Codes, part: Width) -> None:
        """Reduce two vectors, or parts of them, to one; registers 0 and 1 are not in use here."""
        if function in MINMAX:
            minmax(self._asm, self._isa, function, into, into, register, spare=1)
        else:
            self._asm.emit(codes[function], part(into), part(into), part(register))

    def _end(self) -> None:
        """Store held vectors that live on."""
        isa, transfers = self._isa, self._block.transfers
        for buffer, groups in self._registers.items():
            if buffer in self._region.local:
                continue
            made = [registers[0] for registers in groups.values()]
            refs = {id(ref): ref for ref in self._region.homes[buffer].values()}
            pointer, *others = [self._pointers.of(ref) for ref in refs.values()]
            full = self._region.stride.get(buffer, 1) == 1 and {lanes for _, lanes in groups} == {isa.lanes}
            if full and pointer.register and not others:
                start = pointer.unroll_offset - pointer.offset
                transfers.store_full(made, pointer, [offset * isa.itemsize + start for offset, _ in groups])
                continue
            for register, home in zip(made, self._homes(buffer), strict=True):
                transfers.store(register, home)

    # Loops

    def _item(self, item: Item) -> None:
        match item:
            case Unrolled():
                for make, lanes, moves, _ in self._listed(item):
                    make(lanes, moves)
            case AnnotatedLoop():
                self._annotated_loop(item)
            case Block(items=items):
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
        pointers = self._pointers.of_leaf(node)
        return [Iterations(make, (lanes,), ((0,),) * len(pointers), pointers)]

    def _annotated_loop(self, item: AnnotatedLoop) -> None:
        loop, pointers = item.loop, self._pointers
        for part in item.parts:
            if part.first:
                pointers.shift(loop, loop.id, part.first)
            strip = pointers.split(loop, part.width) if part.width > 1 and part.passes > 1 else loop
            if part.kind == "counted":
                self._counted(strip, part)
            else:
                self._body(part.body)(pointers.moved(strip, strip.id) if part.passes > 1 else (), part.passes)
            if part.first:
                pointers.shift(loop, loop.id, -part.first)

    def _body(self, item: Item) -> Body:
        """Prepare what writes passes of a loop; where all of one is unrolled, it is listed only once."""
        items = item.items if isinstance(item, Block) else (item,)
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
                make, lanes, moves, _ = listed[0].repeated(dict(moved), count)
                make(lanes, moves)
            else:
                _repeat(make_all, moved, count)

        return body

    def _counted(self, loop: Loop, part: Part) -> None:
        """Write a loop that only reduces, several passes at a time; those that are left over are unrolled."""
        # What waits belongs before the loop, where it runs once.
        self._block.flush()
        group, body = self._pointers.split(loop, part.copies), self._body(part.body)
        moved = self._pointers.moved(loop, loop.id)
        times, rest = divmod(part.passes, part.copies)

        def several() -> None:
            prefetch(self._asm, self._pointers, group, part.fetched)
            body(moved, part.copies)
            # Nothing loaded outlives an iteration: in the next one the pointers stand elsewhere.
            self._block.flush()

        self._counting.repeat(group, times, several)
        if rest:
            # What is left begins here; pointers that were advanced have an offset of as much.
            self._pointers.shift(loop, group.id, times)
            body(moved, rest)
            self._pointers.shift(loop, group.id, -times)


def _repeat(write: Callable[[], None], moved: Moved, count: int) -> None:
    """Write the same iteration again and again, with static offsets from where its pointers would stand."""
    for _ in range(count):
        write()
        for pointer, stride in moved:
            pointer.unroll_offset += stride
    for pointer, stride in moved:
        pointer.unroll_offset -= stride * count
