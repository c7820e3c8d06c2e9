"""Running pointers to buffer elements, and the counted loops that advance them.

All references that move alike share one pointer. A function has more pointers than general registers, so each
has a home on the stack, and moves to a register for the loops that use it. Prefetches ask for the cache lines
of later iterations, because the processor's own prefetching ends with each page. Where tiles read one panel
of an operand again and again, they ask for the next panel.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from iced_x86 import Code, Register

from planish.levels.loops.codegen.x86.assembler import JNE, Assembler, Imm, Mem
from planish.levels.loops.ir.annotated import AnnotatedLoop, Block, Item, Region
from planish.levels.loops.ir.tree import Buffer, Leaf, Loop, LoopId, Node, Ref, leaves
from planish.levels.loops.lang.program import DTYPES
from planish.levels.loops.lower.regalloc import LINE

# Pointers

RSP = int(Register.RSP)
SCRATCH = int(Register.RAX)
# RDI, RSI and RDX too: the head of a function has used or stored its arguments. RAX is scratch.
_FREE = ("RBX", "RBP", "RSI", "RDX", "RCX", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15", "RDI")
GENERAL = tuple(int(getattr(Register, name)) for name in _FREE)


@dataclass(eq=False)
class Pointer:
    """A running address.

    Args:
        buffer: what it points into.
        dtype: the type of that buffer's elements.
        strides: bytes that it moves per iteration of each loop.
        slot: its home on the stack, as an offset from rsp; -1 where the buffer lives in registers alone: then
            it is not an address, and only distinguishes the elements.
        register: where it is now, or 0 for the home.
        offset: bytes by which it is ahead of the address that static offsets count from.
        unroll_offset: static offset, in bytes, of the iterations that are being unrolled.
        nontemporal: whether whole vectors are stored past the caches.
    """

    buffer: str
    dtype: str
    strides: dict[LoopId, int]
    slot: int
    register: int = 0
    offset: int = 0
    unroll_offset: int = 0
    nontemporal: bool = False


class Pointers:
    """All pointers of one function, and the general registers that they share with counters.

    Args:
        nodes: what the function runs.
        buffers: name to what it is.
        addressed: the buffers that are in memory.
        nontemporal: those that are written past the caches.
        panels: of `next_panels`.
    """

    def __init__(
        self,
        nodes: tuple[Node, ...],
        buffers: Mapping[str, Buffer],
        addressed: Container[str],
        nontemporal: Container[str],
        panels: Mapping[int, Ref],
    ) -> None:
        self.free = list(GENERAL)
        self._of: dict[int, Pointer] = {}
        self._live: dict[int, tuple[Node | tuple[Node, ...], list[Pointer]]] = {}
        self._moved: dict[tuple[int, LoopId], list[tuple[Pointer, int]]] = {}
        self._split: dict[tuple[int, int], Loop] = {}
        by_key: dict[tuple[str, tuple[tuple[LoopId, int], ...]], Pointer] = {}
        self.all: list[Pointer] = []
        self._panels: dict[int, tuple[Pointer, int]] = {}
        for leaf in leaves(nodes):
            for ref in leaf.refs:
                key = (ref.buffer, ref.strides)
                pointer = by_key.get(key)
                if pointer is None:
                    dtype = buffers[ref.buffer].dtype
                    strides = {loop: n * DTYPES[dtype] for loop, n in ref.strides}
                    slot = 8 * len(self.all) if ref.buffer in addressed else -1
                    pointer = Pointer(ref.buffer, dtype, strides, slot, nontemporal=ref.buffer in nontemporal)
                    by_key[key] = pointer
                    if slot >= 0:
                        self.all.append(pointer)
                self._of[id(ref)] = pointer
                if (panel := panels.get(id(ref))) is not None and pointer.slot >= 0:
                    self._panels[id(ref)] = self._panel(panel, pointer)
        self.strides: list[tuple[int, int]] = []
        self._at_home = len(self.all)

    def of(self, ref: Ref) -> Pointer:
        """Return the pointer that a reference of the function's leaves uses."""
        return self._of[id(ref)]

    def _panel(self, panel: Ref, walked: Pointer) -> tuple[Pointer, int]:
        """Return a pointer to what is asked for of the panel after the one that a pointer walks."""
        size = DTYPES[walked.dtype]
        found = Pointer(
            panel.buffer, walked.dtype, {loop: n * size for loop, n in panel.strides}, 8 * len(self.all)
        )
        self.all.append(found)
        return found, panel.offset * size

    def panel(self, ref: Ref) -> tuple[Pointer, int] | None:
        """Return a pointer to what is asked for of a reference's next panel, and bytes to add to it."""
        return self._panels.get(id(ref))

    def of_leaf(self, leaf: Leaf) -> list[Pointer]:
        """Return the pointers of a leaf's references: its target's, then those of what it reads."""
        return [self._of[id(ref)] for ref in leaf.refs]

    def live(self, nodes: tuple[Node, ...]) -> list[Pointer]:
        """Return the pointers that some leaf below uses."""
        if len(nodes) == 1:
            return self._below(nodes[0])
        known = self._live.get(id(nodes))
        if known is None:
            found = list(dict.fromkeys([p for node in nodes for p in self._below(node)]))
            # The nodes are kept with it, so that no other tuple is given their id.
            known = self._live[id(nodes)] = nodes, found
        return known[1]

    def _below(self, node: Node) -> list[Pointer]:
        known = self._live.get(id(node))
        if known is None:
            pointers = self.live(node.body) if isinstance(node, Loop) else self.of_leaf(node)
            if isinstance(node, Leaf):
                pointers += [pointer for pointer, _ in filter(None, map(self.panel, node.refs))]
            known = self._live[id(node)] = node, list(dict.fromkeys(pointers))
        return known[1]

    def split(self, loop: Loop, times: int) -> Loop:
        """Make a loop around a loop, each of whose iterations is a number of iterations of the inner one.

        Its step is a negative number of its own, which keeps its identity apart from that of all others.
        """
        outer = self._split.get((id(loop), times))
        if outer is not None:
            return outer
        outer = self._split[id(loop), times] = Loop(loop.axis, -1 - len(self._split), (loop,))
        for pointer in self._below(loop):
            if loop.id in pointer.strides:
                pointer.strides[outer.id] = pointer.strides[loop.id] * times
        return outer

    def base(self, asm: Assembler, pointer: Pointer) -> int:
        """Return a register that holds the pointer; the scratch register if it is at home."""
        if pointer.register:
            return pointer.register
        asm.emit(Code.MOV_R64_RM64, SCRATCH, Mem(RSP, pointer.slot))
        return SCRATCH

    def advance(self, asm: Assembler, pointer: Pointer, count: int) -> None:
        """Move a pointer by some bytes."""
        if not count or pointer.slot < 0:
            return
        operand = pointer.register or Mem(RSP, pointer.slot)
        if -128 <= count < 128:
            asm.emit(Code.ADD_RM64_IMM8, operand, Imm(count))
        elif -(2**31) <= count < 2**31:
            asm.emit(Code.ADD_RM64_IMM32, operand, Imm(count))
        else:
            asm.emit(Code.MOV_R64_IMM64, SCRATCH, Imm(count))
            asm.emit(Code.ADD_RM64_R64, operand, SCRATCH)

    def bind(self, asm: Assembler, nodes: tuple[Node, ...], spare: int) -> list[tuple[Pointer, int]]:
        """Bring the pointers used below into registers, if that leaves `spare` of them.

        Returns:
            The pointers, each with its offset: what `spill_back` needs.
        """
        if self._at_home == 0:
            return []
        homeless = [(p, p.offset) for p in self.live(nodes) if not p.register and p.slot >= 0]
        if len(homeless) + spare > len(self.free):
            # Nothing is computed with those that only ask for lines.
            asks = {pointer for pointer, _ in self._panels.values()}
            homeless = [(p, offset) for p, offset in homeless if p not in asks]
        if len(homeless) + spare > len(self.free):
            return []
        for pointer, _ in homeless:
            pointer.register = self.free.pop()
            asm.emit(Code.MOV_R64_RM64, pointer.register, Mem(RSP, pointer.slot))
        self._at_home -= len(homeless)
        return homeless

    def spill_back(self, bound: list[tuple[Pointer, int]]) -> None:
        """Release the registers that `bind` took."""
        for pointer, offset in bound:
            self.free.append(pointer.register)
            pointer.register, pointer.offset = 0, offset
        self._at_home += len(bound)

    def hold_strides(self, asm: Assembler, wanted: Sequence[int], spare: int) -> None:
        """Hold strides, in bytes, and odd multiples of them for short addresses, as far as registers go.

        With scales of 1, 2, 4 and 8, the multiples 1, 3, 5 and 7 reach eight rows and more (thesis 3.4.2).
        """
        values = [stride * multiple for multiple in (1, 3, 5, 7) for stride in wanted]
        count = max(0, min(len(values), len(self.free) - spare))
        for value in values[:count]:
            register = self.free.pop()
            # A move into the lower half clears the upper one, and is shorter.
            asm.emit(Code.MOV_R64_IMM64, register, Imm(value)) if value >= 2**31 else asm.emit(
                Code.MOV_R32_IMM32, register - int(Register.RAX) + int(Register.EAX), Imm(value)
            )
            self.strides.append((register, value))

    def drop_strides(self) -> None:
        """Release the registers that hold strides."""
        self.free.extend([register for register, _ in self.strides])
        self.strides.clear()

    def moved(self, loop: Loop, as_loop: LoopId) -> list[tuple[Pointer, int]]:
        """Return the pointers below a loop that some loop moves, with the bytes per iteration."""
        known = self._moved.get((id(loop), as_loop))
        if known is None:
            found = [(p, p.strides[as_loop]) for p in self._below(loop) if as_loop in p.strides]
            known = self._moved[id(loop), as_loop] = found
        return known

    def shift(self, loop: Loop, as_loop: LoopId, iterations: int) -> None:
        """Count static offsets from a later iteration of a loop, or an earlier one again."""
        for pointer, stride in self.moved(loop, as_loop):
            pointer.unroll_offset += stride * iterations


# Counted loops


class Counting:
    """Writes the loops of one function.

    Args:
        pointers: which the loops move.
        reserved: counter slots on the stack that belong to other code.
    """

    def __init__(self, asm: Assembler, pointers: Pointers, reserved: int) -> None:
        self.asm = asm
        self.pointers = pointers
        self.slots = self._depth = reserved

    def slot(self, number: int) -> Mem:
        """Return a counter's slot on the stack, after the pointers' homes."""
        return Mem(RSP, 8 * (len(self.pointers.all) + number))

    def repeat(self, loop: Loop, count: int, body: Callable[[], None]) -> None:
        """Write a loop; afterwards its pointers stand after the last iteration.

        Args:
            loop: whose pointers move.
            count: iterations, at least 1.
            body: writes one iteration.
        """
        if count == 1:
            body()
            return
        pointers, asm = self.pointers, self.asm
        register = pointers.free.pop() if len(pointers.free) > 1 else 0
        counter = register or self.slot(self._depth)
        self._depth += 1
        self.slots = max(self.slots, self._depth)
        asm.emit(Code.MOV_RM64_IMM32, counter, Imm(count))
        live = [(p, p.strides.get(loop.id, 0), p.offset) for p in pointers.live(loop.body)]
        # Processors keep decoded instructions by aligned pieces of 32 bytes: a loop should take few of them.
        head = asm.align(32)
        body()
        for pointer, stride, offset in live:
            pointers.advance(asm, pointer, stride + offset - pointer.offset)
        asm.emit(Code.DEC_RM64, counter)
        asm.jump(JNE, head)
        # Nothing moves them back: from here on static offsets count from where they stand.
        for pointer, stride, offset in live:
            pointer.offset = offset + count * stride
        self._depth -= 1
        if register:
            pointers.free.append(register)


# Prefetches

AHEAD = 4096
"""Bytes ahead that lines are asked for, at most."""
STREAMS = 2
"""Streams at most for which that is so; for more, which share the first-level cache, it is a quarter."""
PANEL_BYTES = 1 << 12, 1 << 18
"""Bytes of a panel, at least and at most, that is asked for while the panel before it is used."""
OPERAND_BYTES = 1 << 20
"""Bytes of an operand, at least, whose panels are asked for: a smaller one stays in the second cache."""


def prefetch(asm: Assembler, pointers: Pointers, loop: Loop, fetched: Sequence[Ref]) -> None:
    """Prefetch, at the beginning of an iteration, what later ones access of the references `fetched`."""
    wanted = {pointers.of(ref) for ref in fetched}
    ahead = AHEAD if len(wanted) <= STREAMS else AHEAD // 4
    for pointer, stride in pointers.moved(loop, loop.id):
        if pointer.register and pointer in wanted:
            for line in range(0, stride, LINE):
                asm.emit(Code.PREFETCHT0_M8, Mem(pointer.register, ahead - pointer.offset + line))
    for pointer, distance in dict.fromkeys(filter(None, map(pointers.panel, fetched))):
        if pointer.register:
            start = distance + pointer.unroll_offset - pointer.offset
            for line in range(0, pointer.strides[loop.id], LINE):
                asm.emit(Code.PREFETCHT1_M8, Mem(pointer.register, start + line))


def next_panels(item: Item, buffers: Mapping[str, Buffer]) -> dict[int, Ref]:
    """Find what to ask for of the next panels of operands, while tiles read the present ones.

    Where the loops over a panel are inside loops over tiles that read all of it, the first tile would wait
    for memory, and the others would leave it idle. So each iteration asks for its part of the next panel.

    Args:
        item: how a function is executed.
        buffers: name to what it is.

    Returns:
        The identity of a reference that a loop asks for ahead of time, to another one, which the same loops
        move over the next panel.
    """
    return {id(ref): panel for ref, panel in _panels(item, (), buffers)}


def _panels(
    item: Item, around: tuple[tuple[Loop, int], ...], buffers: Mapping[str, Buffer]
) -> Iterator[tuple[Ref, Ref]]:
    if isinstance(item, AnnotatedLoop):
        path = (*around, (item.loop, sum(part.passes * part.width for part in item.parts)))
        for part in item.parts:
            for ref in part.fetched:
                if (panel := _next_panel(ref, path, buffers[ref.buffer])) is not None:
                    yield ref, panel
            yield from _panels(part.body, path, buffers)
    elif isinstance(item, Block | Region):
        for inner in item.items:
            yield from _panels(inner, around, buffers)


def _next_panel(ref: Ref, path: Sequence[tuple[Loop, int]], buffer: Buffer) -> Ref | None:
    """Return the reference to the next panel; None where there is none, or asking for it gains nothing."""
    size, left = DTYPES[buffer.dtype], list(path)
    inner, counts = list[tuple[Loop, int]](), list[int]()
    for moves in (True, False):
        while left and (left[-1][0].id in ref.stride) == moves:
            inner.append(left.pop())
        counts.append(prod(trips for _, trips in inner))
    steps, passes = counts
    if not left or passes == steps or buffer.size * size < OPERAND_BYTES:
        return None
    outer, _ = left[-1]
    panel = ref.stride[outer.id]
    # With very many tiles, the first is a small part of all.
    if not PANEL_BYTES[0] <= panel * size <= PANEL_BYTES[1] or passes > panel:
        return None
    strides = [(loop.id, ref.stride[loop.id]) for loop, _ in left if loop.id in ref.stride]
    # Of each iteration: the last tile ends where the next panel does.
    moved = ceil(panel / passes)
    for loop, trips in inner:
        strides.append((loop.id, moved))
        moved *= trips
    return Ref(ref.buffer, ref.offset + panel, tuple(strides))
