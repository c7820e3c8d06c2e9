"""Compilation of a loop tree to machine code in executable memory, or to an assembly file.

Each part of the tree becomes one machine function. One that stores past the caches has two forms, of which
the alignment of the caller's arrays selects one. Executable memory is never writable at the same time. An
assembly file has the bytes for the assembler, and the instructions as comments for readers.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING

from iced_x86 import Code, Decoder, FlowControl, Formatter, FormatterSyntax, Register

from planish.core.task import cpu_features
from planish.levels.loops.codegen.kernel import Entry, MachineCode, arithmetic_of, layout, refuse_packed
from planish.levels.loops.codegen.x86.assembler import JL, JLE, JNE, Assembler, Imm, Mem
from planish.levels.loops.codegen.x86.basic_block import NO_CONSTANTS, constants_of
from planish.levels.loops.codegen.x86.isa import Isa, IsaName, isa_of
from planish.levels.loops.codegen.x86.pointers import RSP, SCRATCH, Counting, Pointers, next_panels, prefetch
from planish.levels.loops.codegen.x86.region import RegionCode
from planish.levels.loops.codegen.x86.vectors import NoRegisterError
from planish.levels.loops.ir.annotated import (
    AnnotatedLoop,
    AnnotatedTree,
    Block,
    Function,
    Item,
    Part,
    Region,
    nodes_of,
)
from planish.levels.loops.ir.tree import Loop, LoopTree, Node, Ref, leaves
from planish.levels.loops.lower.regalloc import NONTEMPORAL_FROM, annotate

if TYPE_CHECKING:
    from planish.levels.loops.codegen.objects import Section

# Executable memory

_libc = ctypes.CDLL(None, use_errno=True)
_pointer, _size, _int = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_libc.mmap.restype = _pointer
_libc.mmap.argtypes = [_pointer, _size, _int, _int, _int, ctypes.c_long]
_libc.mprotect.argtypes = [_pointer, _size, _int]
_libc.munmap.argtypes = [_pointer, _size]
_FAILED = ctypes.c_void_p(-1).value
_spare: dict[int, list[int]] = {}
"""Size to the addresses of unused mappings: changing one costs less than a new one."""
_SPARE_MAX = 16
"""Mappings of a size that are kept."""
_SPARE_BYTES = 1 << 16
"""Larger ones are not kept."""


class ExecutableMemory:
    """Machine code, executable until this object goes.

    The pages are written first and made read-execute then (W^X).

    Args:
        code: position-independent machine code.

    Raises:
        OSError: the system refuses the mapping.
    """

    def __init__(self, code: bytes) -> None:
        self.size = -(-len(code) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.address = _writable(self.size)
        ctypes.memmove(self.address, code.ljust(self.size, b"\0"), self.size)
        if _libc.mprotect(self.address, self.size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "the system does not let memory become executable")

    def __del__(self) -> None:
        # When the interpreter ends, the module's names may be gone already; the system unmaps it then.
        if hasattr(self, "address") and globals().get("_spare") is not None:
            spare = _spare.setdefault(self.size, [])
            if self.size <= _SPARE_BYTES and len(spare) < _SPARE_MAX:
                spare.append(self.address)
            else:
                _libc.munmap(self.address, self.size)


def _writable(size: int) -> int:
    access = mmap.PROT_READ | mmap.PROT_WRITE
    try:
        # Taken without asking first: another thread could take the last one in between.
        address = _spare[size].pop()
    except LookupError:
        address = _libc.mmap(None, size, access, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if address is None or address == _FAILED:
            raise OSError(ctypes.get_errno(), "no memory for machine code") from None
        return address
    if _libc.mprotect(address, size, access):
        raise OSError(ctypes.get_errno(), "the system does not let memory become writable")
    return address


# Assembly files


def assembly(prefix: str, run: Sequence[bytes], prepare: Sequence[bytes]) -> str:
    """Write functions as GNU assembly.

    Args:
        prefix: functions are named PREFIX_run0, ... and PREFIX_prepare0, ...
        run: machine code of the body's functions.
        prepare: machine code of the ahead part's functions.
    """
    named = [(f"{prefix}_run{i}", code) for i, code in enumerate(run)]
    named += [(f"{prefix}_prepare{i}", code) for i, code in enumerate(prepare)]
    parts = ["\t.text"]
    for name, code in named:
        parts += ["\t.p2align 6", f"\t.globl {name}", f"\t.type {name}, @function", f"{name}:"]
        parts += _lines(code)
        parts.append(f"\t.size {name}, .-{name}")
    return "\n".join([*parts, '\t.section .note.GNU-stack,"",@progbits', ""])


def _lines(code: bytes) -> Iterator[str]:
    """One line for each instruction, then the constants."""
    formatter = Formatter(FormatterSyntax.INTEL)
    decoder = Decoder(64, code)
    for instruction in decoder:
        data = code[instruction.ip : instruction.next_ip]
        yield f"\t.byte {','.join(f'0x{b:02x}' for b in data)}\t# {formatter.format(instruction)}"
        # A function has one return, at its end: it is followed by padding and constants.
        if instruction.flow_control == FlowControl.RETURN:
            break
    rest = code[decoder.ip :]
    for start in range(0, len(rest), 16):
        yield f"\t.byte {','.join(f'0x{b:02x}' for b in rest[start : start + 16])}"


def sections(prefix: str, run: Sequence[bytes]) -> list[Section]:
    """Return functions as sections to be linked, which are named PREFIX_run0, ..."""
    from planish.levels.loops.codegen.objects import CODE, Section, Symbol  # only libraries are linked

    return [Section(CODE, code, [Symbol(f"{prefix}_run{i}", 0, len(code))]) for i, code in enumerate(run)]


# Functions

# What a callee saves, and the first three arguments, in the calling convention of System V.
SAVED = tuple(int(getattr(Register, name)) for name in ("RBX", "RBP", "R12", "R13", "R14", "R15"))
ARGS, BEGIN, END = int(Register.RDI), int(Register.RSI), int(Register.RDX)


LEFT = 16
"""Vector registers that hoisted constants leave free for loads and results."""


class FunctionCode:
    """Writes the code of some root nodes, strictly in their order.

    Args:
        function: how they are executed.
        locations: buffer to (index into the arguments, byte offset there).
        nontemporal: buffers that are written past the caches.
    """

    def __init__(
        self,
        function: Function,
        tree: LoopTree,
        isa: Isa,
        locations: dict[str, tuple[int, int]],
        nontemporal: AbstractSet[str] = frozenset(),
    ) -> None:
        self.function = function
        self.tree = tree
        self.isa = isa
        self.locations = locations
        self.asm = Assembler()
        self.nontemporal = nontemporal
        panels = next_panels(function.item, tree.buffer)
        self.pointers = Pointers(function.nodes, tree.buffer, locations, nontemporal, panels)
        self.masks: dict[int, int] = {}
        # Slots 0 and 1 keep the range's ends, and 2 counts the iterations of a parallel loop.
        self._counting = Counting(self.asm, self.pointers, reserved=3)

    def code(self) -> bytes:
        """Write the function, with its entry at the first byte."""
        item = self.function.item
        if self.function.kind == "parallel" and isinstance(item, AnnotatedLoop):
            self._parallel(item)
        else:
            self._item(self.function.nodes, item)
        # Written last: only now it is known how large the frame is, and which masks are used.
        head = Assembler()
        frame = 8 * (len(self.pointers.all) + self._counting.slots)
        self._prologue(head.emit, frame)
        # What is aligned in the body is so from its beginning on.
        head.align(64)
        self._epilogue(self.asm.emit, frame)
        return bytes(head.code) + self.asm.finish()

    # Frame

    def _prologue(self, emit: Callable[..., None], frame: int) -> None:
        for register in SAVED:
            emit(Code.PUSH_R64, register)
        # The code calls nothing, so the stack need not be aligned to 16 bytes.
        emit(Code.SUB_RM64_IMM32, RSP, Imm(frame))
        emit(Code.MOV_RM64_R64, self._counting.slot(0), BEGIN)
        emit(Code.MOV_RM64_R64, self._counting.slot(1), END)
        for pointer in self.pointers.all:
            index, offset = self.locations[pointer.buffer]
            emit(Code.MOV_R64_RM64, SCRATCH, Mem(ARGS, 8 * index))
            if offset:
                emit(Code.ADD_RM64_IMM32, SCRATCH, Imm(offset))
            emit(Code.MOV_RM64_R64, Mem(RSP, pointer.slot), SCRATCH)
        for lanes, mask in self.masks.items():
            emit(Code.MOV_R32_IMM32, int(Register.EAX), Imm((1 << lanes) - 1))
            emit(Code.VEX_KMOVW_KR_R32, mask, int(Register.EAX))

    def _epilogue(self, emit: Callable[..., None], frame: int) -> None:
        if self.nontemporal:
            # Such stores are seen by other threads in any order, until this.
            emit(Code.SFENCE)
        # Upper halves that are not clear would slow down SSE code of the caller.
        emit(Code.VEX_VZEROUPPER)
        emit(Code.ADD_RM64_IMM32, RSP, Imm(frame))
        for register in reversed(SAVED):
            emit(Code.POP_R64, register)
        emit(Code.RETNQ)

    # Loops over memory

    def _item(
        self,
        nodes: tuple[Node, ...],
        item: Item,
        fetched: Sequence[Ref] = (),
        around: Loop | None = None,
        constants: Mapping[bytes, int] = NO_CONSTANTS,
    ) -> None:
        """Write nodes; where they only pass data on, the loop around them asks early for its lines."""
        bound = self.pointers.bind(self.asm, nodes, spare=4)
        if isinstance(item, Region):
            if around is not None:
                prefetch(self.asm, self.pointers, around, fetched)
            RegionCode(item, self.tree, self.isa, self._counting, self.masks, constants).write()
        elif isinstance(item, AnnotatedLoop):
            self._annotated_loop(item)
        elif isinstance(item, Block):
            for inner in item.items:
                self._item(nodes_of(inner), inner)
        self.pointers.spill_back(bound)

    def _annotated_loop(self, item: AnnotatedLoop) -> None:
        loop, pointers = item.loop, self.pointers
        for part in item.parts:
            pointers.shift(loop, loop.id, part.first)
            moved = pointers.split(loop, part.width) if part.width > 1 and part.kind == "counted" else loop
            # To ask for a line that is written past the caches would bring it into them.
            fetched = [ref for ref in part.fetched if ref.buffer not in self.nontemporal]
            constants = self._constants(part)
            write = partial(self._item, nodes_of(part.body), part.body, fetched, moved, constants)
            self._counting.repeat(moved, part.passes, write)
            pointers.shift(loop, loop.id, -part.first)

    def _constants(self, part: Part) -> Mapping[bytes, int]:
        """Load constants of functions before a loop whose passes hold no results, to the last registers."""
        body = part.body
        if part.kind != "counted" or part.passes == 1 or not isinstance(body, Region) or body.registers:
            return NO_CONSTANTS
        found = constants_of(body.nodes, self.isa)[: max(0, body.free - LEFT)]
        constants = {data: body.free - 1 - number for number, data in enumerate(found)}
        for data, register in constants.items():
            self.asm.emit_constant(self.isa.forms.broadcast, self.isa.vector(register), data=data)
        return constants

    def _parallel(self, item: AnnotatedLoop) -> None:
        """Write a root loop that runs the iterations from `begin` to `end`, the tail being the last."""
        asm, emit, pointers, loop = self.asm, self.asm.emit, self.pointers, item.loop
        (begin, end, counter), (full, *tail) = map(self._counting.slot, range(3)), item.parts
        rcx = int(Register.RCX)
        for pointer, stride in pointers.moved(loop, loop.id):
            if pointer.slot >= 0:
                emit(Code.MOV_R64_RM64, SCRATCH, begin)
                emit(Code.IMUL_R64_RM64_IMM32, SCRATCH, SCRATCH, Imm(stride))
                emit(Code.ADD_RM64_R64, Mem(RSP, pointer.slot), SCRATCH)
        emit(Code.MOV_R64_RM64, SCRATCH, end)
        emit(Code.MOV_R64_IMM64, rcx, Imm(full.passes))
        emit(Code.CMP_RM64_R64, SCRATCH, rcx)
        emit(Code.CMOVG_R64_RM64, SCRATCH, rcx)
        emit(Code.SUB_R64_RM64, SCRATCH, begin)
        skip = asm.jump_forward(JLE)
        emit(Code.MOV_RM64_R64, counter, SCRATCH)
        head = asm.here()
        self._item(loop.body, full.body)
        for pointer in pointers.all:
            # What loops in the body have moved it by already is taken off in the same addition.
            pointers.advance(asm, pointer, pointer.strides.get(loop.id, 0) - pointer.offset)
            pointer.offset = 0
        emit(Code.DEC_RM64, counter)
        asm.jump(JNE, head)
        asm.land(skip)
        # Pointers stand at the tail here, also where the loop was skipped: `begin` moved them so far.
        for part in tail:
            emit(Code.CMP_RM64_IMM32, end, Imm(part.first + 1))
            skip = asm.jump_forward(JL)
            self._item(loop.body, part.body)
            asm.land(skip)


# Functions in two forms, by alignment


def where_aligned(arguments: Iterable[int], size: int, quick: bytes, plain: bytes) -> bytes:
    """Write a function that runs one form where arrays begin at multiples of a size, else another.

    Args:
        arguments: numbers of the arrays in the arguments.
        size: in bytes; a power of 2, and 64 at most.
        quick: a function for such arrays.
        plain: one for all arrays.
    """
    code = Assembler()
    jumps: list[int] = []
    for number in arguments:
        code.emit(Code.MOV_R64_RM64, SCRATCH, Mem(ARGS, 8 * number))
        code.emit(Code.TEST_RM64_IMM32, SCRATCH, Imm(size - 1))
        jumps.append(code.jump_forward(JNE))
    code.align(64)
    code.code.extend(quick)
    code.align(64)
    for jump in jumps:
        code.land(jump)
    return bytes(code.code) + plain


# Trees


def compile_tree(
    tree: LoopTree,
    isa: IsaName,
    extras: frozenset[str] | None = None,
    nontemporal_from: int = NONTEMPORAL_FROM,
) -> MachineCode:
    """Generate and map machine code, strictly following the tree (thesis 3.4).

    Differences from LoopNest: any element-wise expression, `max`, `min` and products as reductions,
    several leaves with shared loops, packing, threads; no scalar fall-back where gathers serve.

    Args:
        tree: what is executed; all computed in one type.
        isa: "avx512" or "avx2".
        extras: other features of the processor that may be used; None takes all that it has.
        nontemporal_from: bytes of a result from which on it may be stored past the caches.

    Returns:
        The functions of the body and of the ahead part.

    Raises:
        TargetError: the processor lacks instructions, the tree mixes types to compute in, or an
            expression needs more registers than there are.
    """
    arithmetic, used = arithmetic_of(tree), frozenset[str]()
    if any(b.dtype != arithmetic for b in tree.buffers):
        used = cpu_features() if extras is None else extras
    features = isa_of(isa, arithmetic, used)
    refuse_packed({b.dtype for b in tree.buffers}.difference(features.forms.dots))
    annotated, codes = _generated(tree, features, nontemporal_from)
    blob = bytearray()
    starts: list[int] = []
    for code in (*codes[0], *codes[1]):
        # int3: what is executed by mistake traps.
        blob += b"\xcc" * (-len(blob) % 64)
        starts.append(len(blob))
        blob += code
    memory = ExecutableMemory(bytes(blob))
    functions = zip((*annotated.body, *annotated.ahead), starts, strict=True)
    entries = tuple([Entry(memory.address + start, *f.iterations(tree)) for f, start in functions])
    run, prepare = entries[: len(codes[0])], entries[len(codes[0]) :]
    recompile = partial(compile_tree, tree, isa, extras, nontemporal_from)
    text = partial(assembly, run=codes[0], prepare=codes[1])
    parts = partial(sections, run=codes[0])
    return MachineCode(run, prepare, memory, layout(annotated), text, parts, annotated, recompile)


_Codes = tuple[list[bytes], list[bytes]]
"""The functions of the body, and those of the ahead part."""
_Locations = dict[str, tuple[int, int]]
"""Buffer to where its address is: index into the arguments, and bytes to add."""


def _generated(
    tree: LoopTree, isa: Isa, nontemporal_from: int, spares: Sequence[int] = (0, 4, 8)
) -> tuple[AnnotatedTree, _Codes]:
    """Annotate a tree and generate its functions.

    What the operands of some rare expressions need is known too late: then fewer results are held.
    """
    annotated = annotate(tree, isa.vectors, spares[0], nontemporal_from)
    arranged, given = layout(annotated), [b.name for b in tree.buffers if b.kind != "temporary"]
    locations = {name: (index, 0) for index, name in enumerate(given)}
    for name, offset in arranged.offsets.items():
        locations[name] = (len(given) + (name in arranged.private), offset)
    try:
        # All copies of padded inputs are the first function of the body, if there are any.
        body = [
            _code(f, annotated, isa, locations, cached=i < bool(tree.views))
            for i, f in enumerate(annotated.body)
        ]
        return annotated, (body, [FunctionCode(f, tree, isa, locations).code() for f in annotated.ahead])
    except NoRegisterError:
        if len(spares) == 1:
            raise
    return _generated(tree, isa, nontemporal_from, spares[1:])


# The function stays beside its code, so that no other object is given its id.
_views: dict[Hashable, tuple[Function, bytes]] = {}
_VIEWS_MAX = 1000


def _code(
    function: Function, annotated: AnnotatedTree, isa: Isa, locations: _Locations, *, cached: bool
) -> bytes:
    """Generate a function; copies of padded inputs are `cached`, the same for all schedules of a program."""
    tree = annotated.tree
    named = [ref.buffer for leaf in leaves(function.nodes) for ref in leaf.refs]
    if cached:
        used = tuple([(locations.get(name), tree.buffer[name].dtype) for name in named])
        key = id(function), used, isa
        if key not in _views:
            if len(_views) >= _VIEWS_MAX:
                _views.clear()
            _views[key] = function, FunctionCode(function, tree, isa, locations).code()
        return _views[key][1]
    plain = FunctionCode(function, tree, isa, locations).code()
    nontemporal = annotated.nontemporal_stores & set(named)
    if not nontemporal:
        return plain
    quick = FunctionCode(function, tree, isa, locations, nontemporal).code()
    return where_aligned([locations[name][0] for name in sorted(nontemporal)], isa.bytes, quick, plain)
