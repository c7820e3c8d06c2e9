"""One machine function for a part of a loop tree."""

from __future__ import annotations

from iced_x86 import Code, Register

from planish.loops.codegen.x86.assembler import JL, JLE, JNE, Assembler
from planish.loops.codegen.x86.counting import Counting
from planish.loops.codegen.x86.encoding import Imm, Mem
from planish.loops.codegen.x86.fetching import fetch_ahead
from planish.loops.codegen.x86.inside import RegionCode
from planish.loops.codegen.x86.isa import Isa
from planish.loops.codegen.x86.paths import Inside
from planish.loops.codegen.x86.pointers import RSP, SCRATCH, Pointers
from planish.loops.codegen.x86.region import Analyser, Region
from planish.loops.ir.extent import remaining
from planish.loops.ir.tree import Loop, LoopTree, Node

SAVED = tuple(int(getattr(Register, name)) for name in ("RBX", "RBP", "R12", "R13", "R14", "R15"))
FLOWS_FROM = 1 << 22
"""A buffer of fewer bytes, which is passed through once, is not asked for ahead of time."""
ARGS, BEGIN, END = int(Register.RDI), int(Register.RSI), int(Register.RDX)


class Function:
    """Writes the code of some nodes, strictly in their order.

    Args:
        nodes: root nodes, executed one after another.
        analyser: decides about register regions; shared by the functions of a tree.
        places: buffer to (index into the arguments, byte offset there).
    """

    def __init__(
        self, nodes: tuple[Node, ...], analyser: Analyser, places: dict[str, tuple[int, int]]
    ) -> None:
        self.nodes = nodes
        self.tree: LoopTree = analyser.tree
        self.isa: Isa = analyser.isa
        self.analyser = analyser
        self.places = places
        self.asm = Assembler()
        self.pointers = Pointers(nodes, self.isa.itemsize)
        self.masks: dict[int, int] = {}
        self._counting = Counting(self.asm, self.pointers, reserved=3)
        self._flowing = analyser.buffers_from(FLOWS_FROM)

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
        frame = 8 * (len(self.pointers.all) + self._counting.slots)
        self._prologue(head, frame)
        head.align(64)
        self._epilogue(frame)
        return bytes(head.code) + body.finish()

    # Frame

    def _prologue(self, head: Assembler, frame: int) -> None:
        for register in SAVED:
            head.emit(Code.PUSH_R64, register)
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
        self.asm.emit(Code.VEX_VZEROUPPER)
        self.asm.emit(Code.ADD_RM64_IMM32, RSP, Imm(frame))
        for register in reversed(SAVED):
            self.asm.emit(Code.POP_R64, register)
        self.asm.emit(Code.RETNQ)

    # Loops over memory

    def _nodes(
        self,
        nodes: tuple[Node, ...],
        inside: Inside,
        planned: Region | None = None,
        around: Loop | None = None,
    ) -> None:
        """Write nodes; where they only pass data on, the loop around them asks early for its lines."""
        settled = self.pointers.settle(self.asm, nodes, spare=4)
        region = planned or self.analyser.region(nodes, inside)
        if region is not None:
            if around is not None and not region.registers:
                fetch_ahead(self.asm, self.pointers, around, self._flowing)
            code = RegionCode(region, self.analyser, self._counting, self.masks)
            code.write(nodes, inside)
        elif len(nodes) == 1 and isinstance(nodes[0], Loop):
            self._outer_loop(nodes[0], inside)
        else:
            for node in nodes:
                self._nodes((node,), inside)
        self.pointers.send_home(settled)

    def _outer_loop(self, loop: Loop, inside: Inside) -> None:
        here = remaining(self.tree, inside, loop.axis)
        step, body, moved, region = loop.step, loop.body, loop, None
        if loop.side_by_side:
            step, region = self._strip(loop, here, inside)
            if region is None:
                self._leaf_by_leaf(loop, inside)
                return
            moved = self.pointers.inject(loop, step)
            body = moved.body
        full, tail = divmod(here, step)
        if full:
            inner = {**inside, loop.axis: step}
            self._counting.repeat(moved, full, lambda: self._nodes(body, inner, region, moved))
        if tail:
            self.pointers.shift(loop, moved.id, full)
            self._nodes(body, {**inside, loop.axis: tail})
            self.pointers.shift(loop, moved.id, -full)

    def _strip(self, loop: Loop, here: int, inside: Inside) -> tuple[int, Region | None]:
        """How many elements of a vector loop too long to unroll go into one iteration, and their region."""
        lanes = self.isa.lanes
        for elements in (8 * lanes, 4 * lanes, 2 * lanes, lanes):
            region = elements < here and self.analyser.region((loop,), {**inside, loop.axis: elements})
            if region:
                return elements, region
        return 0, None

    def _leaf_by_leaf(self, loop: Loop, inside: Inside) -> None:
        """Execute a vector's worth of each leaf in turn, where one leaf reads what another writes."""
        here = remaining(self.tree, inside, loop.axis)
        if len(loop.body) == 1:
            self._counting.repeat(loop, here, lambda: self._nodes(loop.body, {**inside, loop.axis: 1}))
            return
        lanes = self.isa.lanes
        moved = self.pointers.inject(loop, lanes)
        apart = tuple(Loop(loop.axis, loop.step, (leaf,)) for leaf in loop.body)
        full, tail = divmod(here, lanes)
        if full:
            inner = {**inside, loop.axis: lanes}
            self._counting.repeat(moved, full, lambda: self._nodes(apart, inner))
        if tail:
            self.pointers.shift(loop, moved.id, full)
            self._nodes(apart, {**inside, loop.axis: tail})
            self.pointers.shift(loop, moved.id, -full)

    def _parallel(self, loop: Loop, inside: Inside) -> None:
        """Write a root loop that runs the iterations from `begin` to `end`, the tail being the last."""
        asm, pointers = self.asm, self.pointers
        here = remaining(self.tree, inside, loop.axis)
        full, tail = divmod(here, loop.step)
        rcx = int(Register.RCX)
        for pointer in pointers.all:
            stride = pointer.stride(loop.id)
            if stride:
                asm.emit(Code.MOV_R64_RM64, SCRATCH, self._counting.slot(0))
                asm.emit(Code.IMUL_R64_RM64_IMM32, SCRATCH, SCRATCH, Imm(stride))
                asm.emit(Code.ADD_RM64_R64, Mem(RSP, pointer.slot), SCRATCH)
        asm.emit(Code.MOV_R64_RM64, SCRATCH, self._counting.slot(1))
        asm.emit(Code.MOV_R64_IMM64, rcx, Imm(full))
        asm.emit(Code.CMP_RM64_R64, SCRATCH, rcx)
        asm.emit(Code.CMOVG_R64_RM64, SCRATCH, rcx)
        asm.emit(Code.SUB_R64_RM64, SCRATCH, self._counting.slot(0))
        skip = asm.jump_forward(JLE)
        asm.emit(Code.MOV_RM64_R64, self._counting.slot(2), SCRATCH)
        head = asm.here()
        self._nodes(loop.body, {**inside, loop.axis: loop.step})
        for pointer in pointers.all:
            pointers.advance(asm, pointer, pointer.stride(loop.id) - pointer.drift)
            pointer.drift = 0
        asm.emit(Code.DEC_RM64, self._counting.slot(2))
        asm.jump(JNE, head)
        asm.land(skip)
        if tail:
            asm.emit(Code.CMP_RM64_IMM32, self._counting.slot(1), Imm(full + 1))
            skip = asm.jump_forward(JL)
            self._nodes(loop.body, {**inside, loop.axis: tail})
            asm.land(skip)
