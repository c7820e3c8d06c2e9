"""One machine function for a part of a loop tree."""

from __future__ import annotations

from collections.abc import Callable

from iced_x86 import Code, Register

from planish.core import TargetError
from planish.loops.extent import remaining
from planish.loops.program import IDENTITY, Const
from planish.loops.tree import Call, Leaf, Loop, LoopTree, Node, Ref, Value
from planish.loops.x86.assembler import JL, JLE, JNE, Assembler, Imm, Mem
from planish.loops.x86.block import Accumulator, Block, Element, Item, Number, Operation, Vector
from planish.loops.x86.horizontal import reduce_lanes
from planish.loops.x86.isa import Isa, forms
from planish.loops.x86.pointers import RSP, SCRATCH, Pointers
from planish.loops.x86.region import (
    UNROLLED_MAX,
    Analyser,
    Key,
    Region,
    instances,
    vector_loop,
)

SAVED = tuple(int(getattr(Register, name)) for name in ("RBX", "RBP", "R12", "R13", "R14", "R15"))
ARGS, BEGIN, END = int(Register.RDI), int(Register.RSI), int(Register.RDX)
LOOP_WORK = 32
"""A loop that only reduces, around less work than this many operations, is unrolled up to it."""
UNROLL_WORK = 64
"""Such a loop is unrolled altogether if that gives no more operations than this."""

Inside = dict[str, int]
"""What remains of the axes that have an enclosing loop."""


class Function:
    """Writes the code of some nodes, strictly in their order.

    Args:
        tree: the whole tree.
        nodes: root nodes, executed one after another.
        isa: instruction set and element type.
        analyser: decides about register regions; shared by the functions of a tree.
        places: buffer to (index into the arguments, byte offset there).
    """

    def __init__(
        self,
        tree: LoopTree,
        nodes: tuple[Node, ...],
        isa: Isa,
        analyser: Analyser,
        places: dict[str, tuple[int, int]],
    ) -> None:
        self.tree = tree
        self.nodes = nodes
        self.isa = isa
        self.forms = forms(isa)
        self.analyser = analyser
        self.places = places
        self.asm = Assembler()
        self.pointers = Pointers(tree, nodes, isa.itemsize)
        self.masks: dict[int, int] = {}
        self._counters = 0
        self._depth = 0
        self._region = Region()
        self._block = self._new_block(isa.registers)
        self._occurrence: dict[Key, int] = {}
        self._makers: dict[tuple[int, int], Callable[[int], None]] = {}

    def code(self) -> bytes:
        """Write the function, with its entry at the first byte."""
        inside: Inside = {}
        node = self.nodes[0]
        if isinstance(node, Loop) and node.kind == "parallel" and len(self.nodes) == 1:
            self._parallel(node, inside)
        else:
            self._nodes(self.nodes, inside)
        body = self.asm
        head = Assembler()
        frame = 8 * (len(self.pointers.all) + self._counters + 3)
        self._prologue(head, frame)
        head.align(64)
        self._epilogue(frame)
        head.code += body.finish()
        return bytes(head.code)

    # Frame

    def _slot(self, number: int) -> Mem:
        return Mem(RSP, 8 * (len(self.pointers.all) + number))

    def _prologue(self, head: Assembler, frame: int) -> None:
        for register in SAVED:
            head.emit(Code.PUSH_R64, register)
        head.emit(Code.SUB_RM64_IMM32, RSP, Imm(frame))
        head.emit(Code.MOV_RM64_R64, self._slot(0), BEGIN)
        head.emit(Code.MOV_RM64_R64, self._slot(1), END)
        for pointer in self.pointers.all:
            index, offset = self.places[pointer.buffer]
            head.emit(Code.MOV_R64_RM64, SCRATCH, Mem(ARGS, 8 * index))
            if offset:
                head.emit(Code.ADD_RM64_IMM32, SCRATCH, Imm(offset))
            head.emit(Code.MOV_RM64_R64, Mem(RSP, pointer.slot), SCRATCH)
        for lanes, mask in self.masks.items():
            head.emit(Code.MOV_R32_IMM32, int(Register.EAX), Imm((1 << lanes) - 1))
            head.emit(Code.VEX_KMOVW_KR_R32, mask, int(Register.EAX))

    def _epilogue(self, frame: int) -> None:
        self.asm.emit(Code.VEX_VZEROUPPER)
        self.asm.emit(Code.ADD_RM64_IMM32, RSP, Imm(frame))
        for register in reversed(SAVED):
            self.asm.emit(Code.POP_R64, register)
        self.asm.emit(Code.RETNQ)

    # Loops over memory

    def _nodes(self, nodes: tuple[Node, ...], inside: Inside) -> None:
        with self.pointers.in_registers(self.asm, nodes, spare=4):
            region = self.analyser.region(nodes, inside)
            if region is not None:
                self._enter(region, nodes, inside)
                return
            if len(nodes) == 1 and isinstance(nodes[0], Loop):
                self._outer_loop(nodes[0], inside)
                return
            if len(nodes) == 1:
                raise TargetError("no registers for a single element")
            for node in nodes:
                self._nodes((node,), inside)

    def _outer_loop(self, loop: Loop, inside: Inside) -> None:
        here = remaining(self.tree, inside, loop.axis)
        step, body, moved = loop.step, loop.body, loop
        if vector_loop((loop,)) is not None:
            step = self._strip(loop, here, inside)
            if not step:
                self._leaf_by_leaf(loop, inside)
                return
            moved = self.pointers.inject(loop, step)
            body = moved.body
        full, tail = divmod(here, step)
        if full:
            inner = {**inside, loop.axis: step}
            self._repeat(moved, full, lambda: self._nodes(body, inner))
        if tail:
            with self.pointers.shifted(loop, moved.id, full):
                self._nodes(body, {**inside, loop.axis: tail})

    def _strip(self, loop: Loop, here: int, inside: Inside) -> int:
        """How many elements of a vector loop too long to unroll go into one iteration; 0 if none do."""
        lanes = self.isa.lanes
        for elements in (8 * lanes, 4 * lanes, 2 * lanes, lanes):
            if elements < here and self.analyser.region((loop,), {**inside, loop.axis: elements}):
                return elements
        return 0

    def _leaf_by_leaf(self, loop: Loop, inside: Inside) -> None:
        """Execute a vector's worth of each leaf in turn, where one leaf reads what another writes."""
        if len(loop.body) == 1:
            raise TargetError(f"no registers for the loop over '{loop.axis}'")
        here = remaining(self.tree, inside, loop.axis)
        lanes = self.isa.lanes
        moved = self.pointers.inject(loop, lanes)
        apart = tuple(Loop(loop.axis, loop.step, (leaf,)) for leaf in loop.body)
        full, tail = divmod(here, lanes)
        if full:
            inner = {**inside, loop.axis: lanes}
            self._repeat(moved, full, lambda: self._nodes(apart, inner))
        if tail:
            with self.pointers.shifted(loop, moved.id, full):
                self._nodes(apart, {**inside, loop.axis: tail})

    def _repeat(self, loop: Loop, count: int, body: Callable[[], None]) -> None:
        """Write a counted loop; afterwards pointers stand behind the last iteration."""
        live = self.pointers.live(loop.body)
        start = [p.drift for p in live]
        if count == 1:
            body()
            return
        with_register = len(self.pointers.free) > 1
        register = self.pointers.free.pop() if with_register else 0
        number = 2 + self._depth
        self._depth += 1
        self._counters = max(self._counters, self._depth)
        place = register or self._slot(number)
        self.asm.emit(Code.MOV_RM64_IMM32, place, Imm(count))
        self.asm.align(32)
        head = self.asm.here()
        body()
        for pointer, drift in zip(live, start, strict=True):
            self.pointers.advance(self.asm, pointer, pointer.stride(loop.id) + drift - pointer.drift)
        self.asm.emit(Code.DEC_RM64, place)
        self.asm.jump(JNE, head)
        for pointer, drift in zip(live, start, strict=True):
            pointer.drift = drift + count * pointer.stride(loop.id)
        self._depth -= 1
        if with_register:
            self.pointers.free.append(register)

    def _parallel(self, loop: Loop, inside: Inside) -> None:
        """Write a root loop that runs the iterations from `begin` to `end`, the tail being the last."""
        asm, pointers = self.asm, self.pointers
        here = remaining(self.tree, inside, loop.axis)
        full, tail = divmod(here, loop.step)
        rcx = int(Register.RCX)
        for pointer in pointers.all:
            stride = pointer.stride(loop.id)
            if stride:
                asm.emit(Code.MOV_R64_RM64, SCRATCH, self._slot(0))
                asm.emit(Code.IMUL_R64_RM64_IMM32, SCRATCH, SCRATCH, Imm(stride))
                asm.emit(Code.ADD_RM64_R64, Mem(RSP, pointer.slot), SCRATCH)
        asm.emit(Code.MOV_R64_RM64, SCRATCH, self._slot(1))
        asm.emit(Code.MOV_R64_IMM64, rcx, Imm(full))
        asm.emit(Code.CMP_RM64_R64, SCRATCH, rcx)
        asm.emit(Code.CMOVG_R64_RM64, SCRATCH, rcx)
        asm.emit(Code.SUB_R64_RM64, SCRATCH, self._slot(0))
        skip = asm.jump_forward(JLE)
        asm.emit(Code.MOV_RM64_R64, self._slot(2), SCRATCH)
        self._depth, self._counters = 1, 1
        head = asm.here()
        self._nodes(loop.body, {**inside, loop.axis: loop.step})
        for pointer in pointers.all:
            pointers.advance(asm, pointer, pointer.stride(loop.id) - pointer.drift)
            pointer.drift = 0
        asm.emit(Code.DEC_RM64, self._slot(2))
        asm.jump(JNE, head)
        asm.land(skip)
        if tail:
            asm.emit(Code.CMP_RM64_IMM32, self._slot(1), Imm(full + 1))
            skip = asm.jump_forward(JL)
            self._nodes(loop.body, {**inside, loop.axis: tail})
            asm.land(skip)

    # Loops over registers

    def _new_block(self, registers: int) -> Block:
        return Block(self.asm, self.isa, self.pointers, list(range(registers)), self.masks)

    def _enter(self, region: Region, nodes: tuple[Node, ...], inside: Inside) -> None:
        held = [r for group in region.registers.values() for r in group]
        self._region = region
        self._occurrence = {}
        self._makers = {}
        for pointer in self.pointers.live(nodes):
            pointer.shift_at_entry = pointer.shift
        self._block = block = self._new_block(min(held, default=self.isa.registers))
        with self.pointers.strides_in_registers(self.asm, self._row_strides(nodes), spare=3):
            for key, registers in region.registers.items():
                self._begin(key, registers)
            for node in nodes:
                self._inside((node,), inside, None)
                block.flush()
                self._combine(node)
            for key, registers in region.registers.items():
                if key[0] not in region.local:
                    block.store(registers[0], self._home(key))

    def _row_strides(self, nodes: tuple[Node, ...]) -> list[int]:
        """The strides, in bytes, by which unrolled loops make displacements long."""
        far = 128 * self.isa.itemsize if self.isa.wide else 128
        found: dict[int, None] = {}
        for loop in _loops(nodes):
            if self.analyser.moves_target(loop):
                found.update((s, None) for _, s in self.pointers.moved(loop, loop.id) if s >= far // 8)
        return list(found)

    def _home(self, key: Key) -> Element:
        """Where a held vector is in memory."""
        buffer, offset, lanes = key
        ref = self._region.homes[key]
        pointer = self.pointers.of(ref)
        disp = offset * self.isa.itemsize + pointer.shift - pointer.drift
        return Element(pointer, disp, self._region.stride.get(buffer, 1), lanes)

    def _begin(self, key: Key, registers: list[int]) -> None:
        """Give a held vector its first value."""
        region = self._region
        reduce = region.reduce.get(key[0])
        if reduce is None:
            return
        first, *parts = registers
        if key[0] in region.fresh or key[0] in region.lanewise:
            parts = registers
        else:
            self._block.load(first, self._home(key))
        for register in parts:
            self._block.load_number(register, IDENTITY[reduce])

    def _combine(self, node: Node) -> None:
        """Make whole the sums that were kept in parts or lane by lane, once a node has made them."""
        region = self._region
        made = {leaf.target.buffer for leaf in _leaves(node) if leaf.reduce}
        for key, registers in region.registers.items():
            buffer = key[0]
            if buffer not in made:
                continue
            code = {"add": "ADD", "max": "MAX", "min": "MIN", "mul": "MUL"}[region.reduce[buffer]]
            first, *parts = registers
            v = self.isa.vector
            for register in parts:
                self.asm.emit(self.forms.arithmetic[code], v(first), v(first), v(register))
            del registers[1:]
            if buffer in region.lanewise:
                reduce_lanes(self.asm, self.isa, first, code)
                if buffer not in region.fresh:
                    self._block.load(0, self._home(key))
                    self.asm.emit(
                        self.forms.arithmetic_xmm[code],
                        self.isa.xmm(first),
                        self.isa.xmm(first),
                        self.isa.xmm(0),
                    )

    def _inside(self, nodes: tuple[Node, ...], inside: Inside, inner: Loop | None) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                self._leaf(node, inner, 1 if inner is None else inside[inner.axis])
            elif vector_loop((node,)) is not None:
                self._vectors(node, inside)
            else:
                self._loop(node, inside)

    def _vectors(self, loop: Loop, inside: Inside) -> None:
        """A loop that is executed a vector at a time."""
        here = remaining(self.tree, inside, loop.axis)
        lanes = self.isa.lanes
        strips = self.pointers.inject(loop, lanes)
        full, tail = divmod(here, lanes)
        whole, part = {**inside, loop.axis: lanes}, {**inside, loop.axis: tail}

        def body(left: Inside) -> None:
            self._inside(loop.body, left, loop)

        if self.analyser.moves_target(loop):
            self._unroll(strips, full, lambda: body(whole))
        else:
            self._reduce(strips, full, len(loop.body), lambda: body(whole))
        if tail:
            with self.pointers.shifted(loop, strips.id, full):
                body(part)

    def _loop(self, loop: Loop, inside: Inside) -> None:
        here = remaining(self.tree, inside, loop.axis)
        full, tail = divmod(here, loop.step)
        inner = {**inside, loop.axis: loop.step}
        if self.analyser.moves_target(loop):
            self._unroll(loop, full, lambda: self._inside(loop.body, inner, None))
        elif full:
            work = instances(self.tree, loop.body, inner, self.isa.lanes, UNROLLED_MAX)
            self._reduce(loop, full, work, lambda: self._inside(loop.body, inner, None))
        if tail:
            with self.pointers.shifted(loop, loop.id, full):
                self._inside(loop.body, {**inside, loop.axis: tail}, None)

    def _unroll(self, loop: Loop, count: int, body: Callable[[], None]) -> None:
        moved = self.pointers.moved(loop, loop.id)
        for _ in range(count):
            body()
            for pointer, stride in moved:
                pointer.shift += stride
        for pointer, stride in moved:
            pointer.shift -= stride * count

    def _reduce(self, loop: Loop, count: int, work: int, body: Callable[[], None]) -> None:
        """A loop that only reduces: short ones are unrolled, others run, several iterations at a time."""
        if count * work <= UNROLL_WORK or (loop.kind == "unroll" and count * work <= 4 * UNROLLED_MAX):
            self._unroll(loop, count, body)
            return
        copies = max((len(r) for r in self._region.registers.values()), default=1)
        times = min(count, max(copies, LOOP_WORK // work)) if work < LOOP_WORK else 1
        self._block.flush()
        group = self.pointers.inject(loop, times)

        def several() -> None:
            self._unroll(loop, times, body)
            self._block.flush()

        self._repeat(group, count // times, several)
        if count % times:
            with self.pointers.shifted(loop, group.id, count // times):
                self._unroll(loop, count % times, body)

    # Leaves

    def _leaf(self, leaf: Leaf, inner: Loop | None, lanes: int) -> None:
        planned = id(leaf), id(inner)
        make = self._makers.get(planned)
        if make is None:
            make = self._makers[planned] = self._maker(leaf, inner)
        make(lanes)

    def _maker(self, leaf: Leaf, inner: Loop | None) -> Callable[[int], None]:
        """Prepare what makes a leaf's items in this region, for any lane count and place."""
        region = self._region
        buffer = leaf.target.buffer
        if buffer in region.fresh and isinstance(leaf.value, Const) and buffer in region.reduce:
            return lambda _: None
        items, full = self._block.items, self.isa.lanes
        value = self._vector(leaf.value, inner)
        if buffer not in region.reduce and buffer not in region.local:
            place = self._element(leaf.target, inner, 1)
            return lambda lanes: items.append(Item(place(lanes), leaf.reduce, value(lanes), full))
        key = self._key(leaf.target, inner)
        lanewise = buffer in region.lanewise
        turns = self._occurrence

        def accumulate(lanes: int) -> None:
            here = key(lanes)
            registers = region.registers[here]
            turn = turns.get(here, 0)
            turns[here] = turn + 1
            register = registers[turn % len(registers)]
            items.append(Item(Accumulator(register), leaf.reduce, value(lanes), lanes if lanewise else full))

        return accumulate

    def _key(self, ref: Ref, inner: Loop | None) -> Callable[[int], Key]:
        """Prepare which held vector a reference names."""
        pointer, size = self.pointers.of(ref), self.isa.itemsize
        base = pointer.shift_at_entry
        moving = inner is not None and inner.id in ref.stride
        buffer, offset = ref.buffer, ref.offset
        return lambda lanes: (buffer, offset + (pointer.shift - base) // size, lanes if moving else 1)

    def _element(self, ref: Ref, inner: Loop | None, still: int) -> Callable[[int], Element]:
        """Prepare where a reference is; it has `still` lanes if the vector's loop does not move it."""
        pointer = self.pointers.of(ref)
        offset = ref.offset * self.isa.itemsize
        stride = ref.stride.get(inner.id, 0) if inner else 0
        if stride:
            return lambda lanes: Element(pointer, offset + pointer.shift - pointer.drift, stride, lanes)
        return lambda _: Element(pointer, offset + pointer.shift - pointer.drift, 0, still)

    def _vector(self, value: Value, inner: Loop | None) -> Callable[[int], Vector]:
        """Prepare a leaf's value."""
        match value:
            case Const(number):
                return lambda _: Number(number)
            case Call(function, args):
                parts = [self._vector(arg, inner) for arg in args]
                return lambda lanes: Operation(function, tuple([part(lanes) for part in parts]))
            case Ref():
                held = self._region.registers
                if value.buffer in self._region.reduce or value.buffer in self._region.local:
                    key = self._key(value, inner)
                    return lambda lanes: Accumulator(held[key(lanes)][0])
                return self._element(value, inner, self.isa.lanes)


def _leaves(node: Node) -> list[Leaf]:
    return [node] if isinstance(node, Leaf) else [leaf for n in node.body for leaf in _leaves(n)]


def _loops(nodes: tuple[Node, ...]) -> list[Loop]:
    below = [loop for node in nodes if isinstance(node, Loop) for loop in _loops(node.body)]
    return [node for node in nodes if isinstance(node, Loop)] + below
