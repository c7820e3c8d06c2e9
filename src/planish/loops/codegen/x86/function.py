"""One machine function for a part of a loop tree."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from iced_x86 import Code, Register

from planish.loops.codegen.x86.assembler import JL, JLE, JNE, Assembler
from planish.loops.codegen.x86.counted_loops import Counting
from planish.loops.codegen.x86.encoding import Imm, Mem
from planish.loops.codegen.x86.fetching import fetch_ahead
from planish.loops.codegen.x86.inside import RegionCode
from planish.loops.codegen.x86.isa import Isa
from planish.loops.codegen.x86.pointers import RSP, SCRATCH, Pointers
from planish.loops.ir.annotated import Block, Function, Item, Nest, Region, nodes_of
from planish.loops.ir.tree import Loop, LoopTree, Node, Ref

# What a callee saves, and the first three arguments, in the calling convention of System V.
SAVED = tuple(int(getattr(Register, name)) for name in ("RBX", "RBP", "R12", "R13", "R14", "R15"))
ARGS, BEGIN, END = int(Register.RDI), int(Register.RSI), int(Register.RDX)


class FunctionCode:
    """Writes the code of some root nodes, strictly in their order.

    Args:
        function: how they are executed.
        tree: the whole tree.
        isa: instruction set and element type.
        places: buffer to (index into the arguments, byte offset there).
        past: buffers that are written past the caches.
    """

    def __init__(
        self,
        function: Function,
        tree: LoopTree,
        isa: Isa,
        places: dict[str, tuple[int, int]],
        past: AbstractSet[str] = frozenset(),
    ) -> None:
        self.function = function
        self.tree = tree
        self.isa = isa
        self.places = places
        self.asm = Assembler()
        self.past = past
        self.pointers = Pointers(function.nodes, tree.buffer, places, past)
        self.masks: dict[int, int] = {}
        # Slots 0 and 1 keep the range's ends, and 2 counts the iterations of a parallel loop.
        self._counting = Counting(self.asm, self.pointers, reserved=3)

    def code(self) -> bytes:
        """Write the function, with its entry at the first byte."""
        item = self.function.item
        if self.function.kind == "parallel" and isinstance(item, Nest):
            self._parallel(item)
        else:
            self._item(self.function.nodes, item)
        body = self.asm
        # Written last: only now it is known how large the frame is, and which masks are used.
        head = Assembler()
        frame = 8 * (len(self.pointers.all) + self._counting.slots)
        self._prologue(head, frame)
        # What is aligned in the body is so from its beginning on.
        head.align(64)
        self._epilogue(frame)
        return bytes(head.code) + body.finish()

    # Frame

    def _prologue(self, head: Assembler, frame: int) -> None:
        for register in SAVED:
            head.emit(Code.PUSH_R64, register)
        # The code calls nothing, so the stack need not be aligned to 16 bytes.
        head.emit(Code.SUB_RM64_IMM32, RSP, Imm(frame))
        head.emit(Code.MOV_RM64_R64, self._counting.slot(0), BEGIN)
        head.emit(Code.MOV_RM64_R64, self._counting.slot(1), END)
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
        if self.past:
            # Such stores are seen by other threads in any order, until this.
            self.asm.emit(Code.SFENCE)
        # Upper halves that are not clear would slow down SSE code of the caller.
        self.asm.emit(Code.VEX_VZEROUPPER)
        self.asm.emit(Code.ADD_RM64_IMM32, RSP, Imm(frame))
        for register in reversed(SAVED):
            self.asm.emit(Code.POP_R64, register)
        self.asm.emit(Code.RETNQ)

    # Loops over memory

    def _item(
        self, nodes: tuple[Node, ...], item: Item, fetched: Sequence[Ref] = (), around: Loop | None = None
    ) -> None:
        """Write nodes; where they only pass data on, the loop around them asks early for its lines."""
        settled = self.pointers.settle(self.asm, nodes, spare=4)
        if isinstance(item, Region):
            if around is not None:
                fetch_ahead(self.asm, self.pointers, around, fetched)
            RegionCode(item, self.tree, self.isa, self._counting, self.masks).write()
        elif isinstance(item, Nest):
            self._nest(item)
        elif isinstance(item, Block):
            for node, inner in zip(nodes, item.items, strict=True):
                self._item((node,), inner)
        self.pointers.send_home(settled)

    def _nest(self, nest: Nest) -> None:
        loop, pointers = nest.loop, self.pointers
        for part in nest.parts:
            pointers.shift(loop, loop.id, part.first)
            moved = pointers.inject(loop, part.width) if part.width > 1 and part.kind == "counted" else loop
            # To ask for a line that is written past the caches would bring it into them.
            fetched = [ref for ref in part.fetched if ref.buffer not in self.past]
            write = partial(self._item, nodes_of(part.body), part.body, fetched, moved)
            self._counting.repeat(moved, part.passes, write)
            pointers.shift(loop, loop.id, -part.first)

    def _parallel(self, nest: Nest) -> None:
        """Write a root loop that runs the iterations from `begin` to `end`, the tail being the last."""
        asm, pointers, loop = self.asm, self.pointers, nest.loop
        full, *tail = nest.parts
        rcx = int(Register.RCX)
        for pointer in pointers.all:
            stride = pointer.stride(loop.id)
            if stride:
                asm.emit(Code.MOV_R64_RM64, SCRATCH, self._counting.slot(0))
                asm.emit(Code.IMUL_R64_RM64_IMM32, SCRATCH, SCRATCH, Imm(stride))
                asm.emit(Code.ADD_RM64_R64, Mem(RSP, pointer.slot), SCRATCH)
        asm.emit(Code.MOV_R64_RM64, SCRATCH, self._counting.slot(1))
        asm.emit(Code.MOV_R64_IMM64, rcx, Imm(full.passes))
        asm.emit(Code.CMP_RM64_R64, SCRATCH, rcx)
        asm.emit(Code.CMOVG_R64_RM64, SCRATCH, rcx)
        asm.emit(Code.SUB_R64_RM64, SCRATCH, self._counting.slot(0))
        skip = asm.jump_forward(JLE)
        asm.emit(Code.MOV_RM64_R64, self._counting.slot(2), SCRATCH)
        head = asm.here()
        self._item(loop.body, full.body)
        for pointer in pointers.all:
            # What loops in the body have moved it by already is taken off in the same addition.
            pointers.advance(asm, pointer, pointer.stride(loop.id) - pointer.drift)
            pointer.drift = 0
        asm.emit(Code.DEC_RM64, self._counting.slot(2))
        asm.jump(JNE, head)
        asm.land(skip)
        # Pointers stand at the tail here, also where the loop was skipped: `begin` moved them so far.
        for part in tail:
            asm.emit(Code.CMP_RM64_IMM32, self._counting.slot(1), Imm(part.first + 1))
            skip = asm.jump_forward(JL)
            self._item(loop.body, part.body)
            asm.land(skip)
