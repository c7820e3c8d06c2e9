"""Compilation of a loop tree to IR, and from there to callable code or files.

Loops are written strictly in the tree's order (thesis 3.4.1). The annotated tree numbers the registers that
hold results. Each of them is a value of IR here, which LLVM's register allocator places.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from functools import reduce as fold
from itertools import repeat
from typing import NamedTuple

from planish.levels.loops.codegen.kernel import (
    Entry,
    Layout,
    MachineCode,
    arithmetic_of,
    layout,
    refuse_packed,
)
from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.llvm.ir_writer import Arithmetic, Lines, Val, Writer, flattened
from planish.levels.loops.codegen.llvm.jit import Machine, host_machine
from planish.levels.loops.codegen.llvm.memory import Cell, Live, Memory, mask_of
from planish.levels.loops.codegen.objects import Section, read_object
from planish.levels.loops.ir.annotated import (
    AnnotatedLoop,
    AnnotatedTree,
    Block,
    Function,
    Inside,
    Item,
    Part,
    Region,
    Slot,
    Unrolled,
)
from planish.levels.loops.ir.tree import Call, Leaf, Loop, LoopId, LoopTree, Ref, Value, leaves, remaining
from planish.levels.loops.lang.program import BFLOAT16X2, DTYPES, IDENTITY, Const
from planish.levels.loops.lower.regalloc import annotate

Positions = Mapping[LoopId, int]
"""Loop to its iteration number, as far as it is known when code is written."""


def position(ref: Ref, at: Positions) -> int:
    """Sum what is known of a reference's offset."""
    return ref.offset + sum([stride * at[loop] for loop, stride in ref.strides if loop in at])


class Site(NamedTuple):
    """Iterations of a vectorized loop that a leaf is written for.

    Args:
        loop: the loop; None if a single element is computed.
        active: how many iterations.
        lanes: of the vectors; those after the active ones are off.
    """

    loop: Loop | None
    active: int
    lanes: int


def _width(active: int) -> int:
    """Return how many lanes a vector with a number of active ones has: a power of 2."""
    return 1 << (active - 1).bit_length()


# Elements in registers


class Registers:
    """The values of a region's registers.

    Args:
        region: what is held.
        at: the enclosing loops' positions, which change while the region is written.
        lanes: of a whole vector.
    """

    def __init__(
        self, region: Region, at: Positions, lanes: int, memory: Memory, arithmetic: Arithmetic
    ) -> None:
        self.region = region
        self._at, self._start = at, dict(at)
        self._lanes = lanes
        self._memory, self._arithmetic, self._writer = memory, arithmetic, memory.writer
        # Copied: once the parts of a sum are put together, only the first register of each is left in it.
        self._table = {
            buffer: {slot: [*numbers] for slot, numbers in table.items()}
            for buffer, table in region.registers.items()
        }
        self.values: dict[int, Val] = {}
        """Register to its value, once it has one."""
        self._turns = Counter[tuple[str, Slot]]()
        for buffer, reduce in region.reduce.items():
            self._begin(buffer, reduce)

    def _begin(self, buffer: str, reduce: str) -> None:
        """Write the first values of a reduced buffer."""
        lanewise = buffer in self.region.lanewise
        for slot, (first, *parts) in self._table.get(buffer, {}).items():
            lanes = self._lanes if lanewise else _width(slot[1])
            start = Val(self._writer.widened(self._writer.number(IDENTITY[reduce]), lanes), lanes)
            self.values |= dict.fromkeys((first, *parts), start)
            # Kept lane by lane, a sum that began with what memory holds would count it in each lane.
            if not lanewise and buffer not in self.region.fresh:
                self.values[first] = self._fetch(buffer, slot)

    def _home(self, buffer: str, slot: Slot) -> tuple[str, Cell]:
        """Return where a held vector is in memory: a pointer, and the cell seen from it."""
        (offset, active), ref = slot, self.region.homes[buffer][slot]
        stride = self.region.stride.get(buffer, 1) if active > 1 else 0
        start = offset + position(ref, self._start) - ref.offset
        return self._memory.pointer(ref), Cell(buffer, start, stride, _width(active), active)

    def _fetch(self, buffer: str, slot: Slot) -> Val:
        pointer, cell = self._home(buffer, slot)
        return Val(self._memory.fetch(pointer, cell, cell.lanes), cell.lanes)

    def _slot(self, ref: Ref, site: Site) -> Slot:
        """Return which held vector a reference names."""
        moved = [
            s * (self._at[loop] - self._start.get(loop, 0)) for loop, s in ref.strides if loop in self._at
        ]
        return ref.offset + sum(moved), site.active if site.loop and site.loop.id in ref.stride else 1

    def holds(self, buffer: str) -> bool:
        """Return whether a buffer's elements are in registers."""
        return buffer in self._table

    def read(self, ref: Ref, site: Site) -> Val:
        """Return the value of what a reference names."""
        value = self.values[self._table[ref.buffer][self._slot(ref, site)][0]]
        return value if value.lanes in (1, site.lanes) else self._arithmetic.resized(value, site.lanes)

    def write(self, ref: Ref, site: Site, new: Callable[[Val | None], Val]) -> None:
        """Set what a reference names, given what makes the new value of the old one, if there is one."""
        slot = self._slot(ref, site)
        numbers, turn = self._table[ref.buffer][slot], self._turns[ref.buffer, slot]
        # A sum's parts are taken alternately, so that one addition does not wait for the one before.
        number = numbers[turn % len(numbers)]
        self._turns[ref.buffer, slot] += 1
        lanes = self._lanes if ref.buffer in self.region.lanewise else _width(slot[1])
        self.values[number] = Val(self._writer.widened(new(self.values.get(number)), lanes), lanes)

    def written(self, buffers: AbstractSet[str]) -> list[int]:
        """List the registers of some buffers that have a value."""
        numbers = [n for b in self._table if b in buffers for found in self._table[b].values() for n in found]
        return [number for number in numbers if number in self.values]

    def make_whole(self, buffers: AbstractSet[str]) -> None:
        """Put together what was kept in parts, or lane by lane."""
        for buffer in [name for name in self._table if name in buffers]:
            reduce, table = self.region.reduce[buffer], self._table[buffer]
            combine = partial(self._arithmetic.combine, reduce)
            for slot, numbers in table.items():
                total = fold(combine, [self.values[number] for number in numbers])
                if buffer in self.region.lanewise:
                    total = self._arithmetic.across(reduce, total)
                    # What memory holds is added once, here, because each lane began with the identity.
                    if buffer not in self.region.fresh:
                        total = combine(self._fetch(buffer, slot), total)
                self.values[numbers[0]] = total
                del numbers[1:]

    def end(self) -> None:
        """Bring memory up to date."""
        for buffer in [name for name in self._table if name not in self.region.local]:
            for slot, (number,) in self._table[buffer].items():
                self._memory.put(*self._home(buffer, slot), self.values[number])


# Leaves


class Leaves:
    """Writes the leaves of one function into the text of its memory's writer.

    Args:
        lanes: of a whole vector.
    """

    def __init__(self, memory: Memory, lanes: int) -> None:
        self.writer = memory.writer
        self.memory = memory
        self.arithmetic = Arithmetic(memory.writer)
        self.lanes = lanes
        self.at: dict[LoopId, int] = {}
        """The enclosing loops' positions, as far as they are known; from the counter where one counts."""
        self.registers: Registers | None = None
        """Contents of registers here."""

    def leaf(self, leaf: Leaf, loop: Loop | None = None, active: int = 1) -> None:
        """Write one leaf, for several iterations of a vectorized loop at once."""
        registers, target = self.registers, leaf.target
        assert registers is not None
        if registers.region.is_start(leaf):
            return
        lanewise = target.buffer in registers.region.lanewise
        site = Site(loop, active, self.lanes if lanewise else _width(active))
        if registers.holds(target.buffer):
            registers.write(target, site, lambda old: self._new(leaf, old, site, lanewise=lanewise))
        else:
            old = self._read(target, site) if leaf.reduce else None
            new = self._new(leaf, old, site)
            self.memory.put(self.memory.pointer(target), self._cell(target, site), new)

    def _new(self, leaf: Leaf, old: Val | None, site: Site, *, lanewise: bool = False) -> Val:
        """Write the new value of a leaf's target."""
        if leaf.reduce is None or old is None:
            return self._value(leaf.value, site)
        new = self._reduced(leaf.reduce, old, leaf.value, site)
        # Other lanes read zeros, which need not be neutral: exp(0) is 1, and 0 may be the greatest.
        if lanewise and site.active < site.lanes:
            (bits, mask), t = mask_of(site.lanes, site.active), self.writer.type(site.lanes)
            text = f"select {bits} {mask}, {t} {new.name}, {t} {old.name}"
            new = Val(self.writer.define(text), site.lanes)
        return new

    def _reduced(self, reduce: str, old: Val, value: Value, site: Site) -> Val:
        if reduce == "add" and isinstance(value, Call) and value.function == "mul":
            return self._fused(value, old, site)
        return self.arithmetic.combine(reduce, old, self._value(value, site))

    def _value(self, value: Value, site: Site) -> Val:
        match value:
            case Const(number):
                return self.writer.number(number)
            case Ref():
                return self._read(value, site)
            case Call("gather", (Ref() as base, index, Const(stride), Const(extent))):
                # By an index, which is the same in all lanes.
                found = self._value(index, site)
                if isinstance(index, Ref) and self.memory.is_integer_index(index):
                    row = self.arithmetic.within(found, extent)
                else:
                    row = self.arithmetic.index(self.arithmetic.first(found), extent)
                return self.memory.load_at_stride(base, self._cell(base, site), site.lanes, row, int(stride))
            case Call("mul", (Ref() as a, Ref())) if self.memory.is_pair(a):
                return self._fused(value, self.writer.number(0.0), site)
            case Call("add", (Call("mul") as product, rest)) | Call("add", (rest, Call("mul") as product)):
                return self._fused(product, self._value(rest, site), site)
            case Call(function, args):
                return self.arithmetic.apply(function, [self._value(a, site) for a in args])

    def _fused(self, product: Call, addend: Val, site: Site) -> Val:
        """Write product + addend as one operation."""
        factors, first = [self._value(a, site) for a in product.args], product.args[0]
        if isinstance(first, Ref) and self.memory.is_pair(first):
            return self.arithmetic.add_pairs(factors[0], factors[1], addend)
        return self.arithmetic.apply("fma", [*factors, addend])

    def _read(self, ref: Ref, site: Site) -> Val:
        if self.registers and self.registers.holds(ref.buffer):
            return self.registers.read(ref, site)
        return self.memory.load(ref, self._cell(ref, site), site.lanes)

    def _cell(self, ref: Ref, site: Site) -> Cell:
        """Return the elements that a reference names."""
        stride = ref.stride.get(site.loop.id, 0) if site.loop and site.lanes > 1 else 0
        if not stride:
            return Cell(ref.buffer, position(ref, self.at))
        return Cell(ref.buffer, position(ref, self.at), stride, site.lanes, site.active)


# Loops


class Nodes:
    """Writes the nodes of one function into the text of its memory's writer.

    Args:
        lanes: of a whole vector.
    """

    def __init__(self, tree: LoopTree, memory: Memory, lanes: int) -> None:
        self._tree = tree
        self.writer = memory.writer
        self.memory = memory
        self.leaves = Leaves(memory, lanes)
        self.at = self.leaves.at
        self._labels = 0

    def write(self, item: Item) -> None:
        """Write nodes in order."""
        match item:
            case Region():
                self._region(item)
            case AnnotatedLoop():
                self._annotated_loop(item)
            case Unrolled(node=Leaf() as leaf, inside=inside, vector=vector):
                self.leaves.leaf(leaf, vector, inside[vector.axis] if vector else 1)
            case Unrolled(node=Loop() as loop, inside=inside):
                self._unrolled(loop, inside)
            case Block(items=items):
                for inner in items:
                    self.write(inner)
            case _:
                raise AssertionError(item)

    def _region(self, region: Region) -> None:
        """Write nodes with their results in registers."""
        around = self.leaves
        registers = around.registers = Registers(
            region, self.at, around.lanes, self.memory, around.arithmetic
        )
        for item, made in zip(region.items, region.made, strict=True):
            self.write(item)
            registers.make_whole(made)
        around.registers = None
        registers.end()

    def _unrolled(self, loop: Loop, inside: Inside) -> None:
        """Write a nest all of whose loops are unrolled."""
        before, here = self.at.get(loop.id, 0), remaining(self._tree, inside, loop.axis)
        vectors = loop.side_by_side
        step = self.leaves.lanes if vectors else loop.step
        for number, first in enumerate(range(0, here, step)):
            self.at[loop.id] = before + (first if vectors else number)
            rest = min(step, here - first)
            for node in loop.body:
                if isinstance(node, Loop):
                    self._unrolled(node, {**inside, loop.axis: rest})
                else:
                    self.leaves.leaf(node, loop if vectors else None, rest if vectors else 1)
        self.at[loop.id] = before

    def _annotated_loop(self, item: AnnotatedLoop) -> None:
        for part in item.parts:
            # One iteration would not be a loop.
            times = part.passes // part.copies if part.kind == "counted" else 1
            done = times * part.copies if times > 1 else 0
            if done:
                self.counted(item.loop, ("0", str(done * part.width), part.copies * part.width), part)
            self._passes(item.loop, part, range(done, part.passes))

    def _passes(self, loop: Loop, part: Part, passes: range) -> None:
        before = self.at.get(loop.id, 0)
        for number in passes:
            self.at[loop.id] = before + part.first + number * part.width
            self.write(part.body)
        self.at[loop.id] = before

    def counted(self, loop: Loop, span: tuple[str, str, int], part: Part) -> None:
        """Write a loop of the machine code, of one iteration at least.

        Args:
            loop: the tree's loop.
            span: the first position, the end, and positions for each iteration of the machine code.
            part: how it is executed.
        """
        w, (start, end, unit) = self.writer, span
        live = Live(loop.id, w.fresh(), frozenset(leaf.target.buffer for leaf in leaves(loop.body)))
        w.lines.append(live.before)
        before, label = w.label, self._label()
        w.lines.append(f"  br label %{label}")
        w.block(label)
        # Their values are known once the body is written.
        phis: Lines = []
        w.lines += [phis, live.head]
        # What the loop only reads keeps its name, and what has no value yet gets it in each iteration.
        values = self.leaves.registers.values if self.leaves.registers else {}
        numbers = self.leaves.registers.written(live.writes) if self.leaves.registers else []
        carried = [(number, values[number], w.fresh()) for number in numbers]
        values |= {number: Val(name, old.lanes) for number, old, name in carried}
        self.memory.forget(live.writes)  # from the second iteration on these are old
        self.memory.lives.append(live)
        self._passes(loop, part, range(part.copies))
        self.memory.lives.pop()
        after = w.define(f"add nuw nsw i64 {live.counter}, {unit}")
        more = w.define(f"icmp slt i64 {after}, {end}")
        last, behind = w.label, self._label()
        w.lines.append(f"  br i1 {more}, label %{label}, label %{behind}")
        w.block(behind)
        phis.append(f"  {live.counter} = phi i64 [{start}, %{before}], [{after}, %{last}]")
        for number, old, name in carried:
            new = values[number].name
            phis.append(f"  {name} = phi {w.type(old.lanes)} [{old.name}, %{before}], [{new}, %{last}]")

    def _label(self) -> str:
        self._labels += 1
        return f"b{self._labels}"


# Functions and trees


def compile_tree(tree: LoopTree, *, vector_bits: int | None = None) -> MachineCode:
    """Generate vector code for this processor, and let LLVM translate it.

    The innermost loop is vectorized, results are held in registers, and what is inside them unrolled
    (thesis 3.4.2), all in the IR: LLVM selects instructions and allocates registers, and runs no passes
    that look for loops or vectors.

    Args:
        tree: what is executed; all computed in one type.
        vector_bits: width of the vectors; by default that of the processor.

    Raises:
        TargetError: the tree mixes types to compute in.
    """
    machine = host_machine(vector_bits)
    annotated = annotated_for(tree, machine)
    text, names = module(annotated, machine, "planish")
    owner, addresses = jit.load(text, [n for group in names for n in group], machine)
    again = partial(compile_tree, tree, vector_bits=vector_bits)
    return _machine_code(annotated, machine, owner, addresses, again)


def compile_for(tree: LoopTree, machine: Machine) -> MachineCode:
    """Generate vector code for another processor: its assembly can be written, and nothing of it is called.

    Args:
        tree: what is executed; all computed in one type.
        machine: the processor, from `planish.levels.loops.codegen.llvm.jit.describe`.

    Raises:
        TargetError: the tree mixes types to compute in.
    """
    again = partial(compile_for, tree, machine)
    return _machine_code(annotated_for(tree, machine), machine, None, repeat(0), again)


def _machine_code(
    annotated: AnnotatedTree,
    machine: Machine,
    owner: object,
    addresses: Iterable[int],
    again: Callable[[], MachineCode],
) -> MachineCode:
    tree, split = annotated.tree, len(annotated.body)
    functions = zip((*annotated.body, *annotated.ahead), addresses, strict=False)
    entries = tuple([Entry(address, *function.iterations(tree)) for function, address in functions])
    write, parts = partial(emit, tree, machine=machine), partial(sections, annotated, machine=machine)
    return MachineCode(
        entries[:split], entries[split:], owner, layout(annotated), write, parts, annotated, again
    )


def emit(tree: LoopTree, prefix: str, machine: Machine) -> str:
    """Write a tree's functions as assembly for a processor.

    Args:
        tree: what is executed.
        prefix: functions are named as `planish.levels.loops.codegen.kernel.MachineCode` says.
        machine: the processor.

    Raises:
        TargetError: the tree mixes types to compute in, or LLVM does not know the architecture.
    """
    return jit.assembly(module(annotated_for(tree, machine), machine, prefix)[0], machine)


def sections(annotated: AnnotatedTree, prefix: str, machine: Machine) -> list[Section]:
    """Return an annotated tree's functions as sections to be linked; see `emit` for the other arguments."""
    return read_object(jit.object_code(module(annotated, machine, prefix)[0], machine), prefix)


def annotated_for(tree: LoopTree, machine: Machine) -> AnnotatedTree:
    """Decide how a tree is executed on a machine; raises TargetError where it mixes types to compute in."""
    refuse_packed({b.dtype for b in tree.buffers} - {BFLOAT16X2})
    # All stores go through the caches.
    return annotate(tree, machine.vectors(DTYPES[arithmetic_of(tree)]), nontemporal_from=sys.maxsize)


def module(
    annotated: AnnotatedTree, machine: Machine, prefix: str
) -> tuple[str, tuple[list[str], list[str]]]:
    """Write an annotated tree as IR.

    Returns:
        The text, and the names of the body's and of the ahead part's functions.
    """
    tree, declared = annotated.tree, set[str]()
    arranged = layout(annotated)
    parts: list[str] = []
    names: tuple[list[str], list[str]] = ([], [])
    for kind, functions, known in (("run", annotated.body, names[0]), ("prepare", annotated.ahead, names[1])):
        for i, function in enumerate(functions):
            known.append(f"{prefix}_{kind}{i}")
            code = FunctionCode(tree, machine, arranged)
            parts.append(code.text(known[-1], function))
            declared |= code.writer.declared
    # Sorted: a set of strings has another order in each process, and the text should not.
    return "\n".join([*parts, *sorted(declared), ""]), names


class FunctionCode:
    """Writes one function of a tree."""

    def __init__(self, tree: LoopTree, machine: Machine, arranged: Layout) -> None:
        self.tree = tree
        self.machine = machine
        self.writer = Writer(arithmetic_of(tree))
        self.memory = Memory(self.writer, tree.buffer, self._base, machine.registers, masks=machine.masks)
        self.nodes = Nodes(tree, self.memory, machine.vectors(self.writer.bits // 8).lanes)
        self._layout = arranged

    def text(self, name: str, function: Function) -> str:
        """Write the function."""
        item = function.item
        if function.kind == "parallel" and isinstance(item, AnnotatedLoop):
            for part in item.parts:
                (self._full if part.kind == "parallel" else self._tail)(item.loop, part)
        else:
            self.nodes.write(item)
        # Without it LLVM splits vectors of 512 bits on processors where it prefers 256.
        width = f'"prefer-vector-width"="{self.machine.vector_bits}"'
        head = f"define void @{name}(ptr %args, i64 %begin, i64 %end) nounwind {width} {{"
        return "\n".join([head, "entry:", *flattened(self.writer.lines), "  ret void", "}"])

    def _base(self, buffer: str, at: Lines) -> str:
        w, arranged = self.writer, self._layout
        arguments = [b.name for b in self.tree.buffers if b.kind != "temporary"]
        if buffer in arranged.offsets:
            argument = len(arguments) + (buffer in arranged.private)
        else:
            argument = arguments.index(buffer)
        offset = arranged.offsets.get(buffer, 0)
        slot = w.define(f"getelementptr ptr, ptr %args, i64 {argument}", at)
        start = w.define(f"load ptr, ptr {slot}", at)
        return w.define(f"getelementptr i8, ptr {start}, i64 {offset}", at) if offset else start

    def _full(self, loop: Loop, part: Part) -> None:
        """Write the full iterations from %begin to %end of a loop."""
        w, full = self.writer, part.passes
        within_full = w.define(f"icmp slt i64 %end, {full}")
        last = w.define(f"select i1 {within_full}, i64 %end, i64 {full}")
        some = w.define(f"icmp slt i64 %begin, {last}")
        # The loop tests at its end, so that a range with no full iteration must go around it.
        w.lines.append(f"  br i1 {some}, label %some, label %rest")
        w.block("some")
        self.nodes.counted(loop, ("%begin", last, 1), part)
        w.lines.append("  br label %rest")
        w.block("rest")

    def _tail(self, loop: Loop, part: Part) -> None:
        """Write the last iteration, if %end is after it."""
        w = self.writer
        # What was loaded in the other branch does not dominate this one.
        self.memory.forget(frozenset(self.tree.buffer))
        reached = w.define(f"icmp sgt i64 %end, {part.first}")
        w.lines.append(f"  br i1 {reached}, label %tail, label %done")
        w.block("tail")
        self.nodes.at[loop.id] = part.first
        self.nodes.write(part.body)
        w.lines.append("  br label %done")
        w.block("done")
