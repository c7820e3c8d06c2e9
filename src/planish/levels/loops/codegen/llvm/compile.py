"""Compilation of a loop tree to IR, and from there to callable code or files.

Loops are written strictly in the tree's order (thesis 3.4.1). The elements that registers hold in a scope are
values of IR, which LLVM's register allocator places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import repeat
from typing import NamedTuple

from planish.levels.loops.codegen.kernel import Entry, Layout, MachineCode, arithmetic_of, layout
from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.llvm.ir_writer import (
    Arithmetic,
    Lines,
    Live,
    Memory,
    Val,
    Writer,
    flattened,
    mask_of,
    total,
)
from planish.levels.loops.codegen.llvm.jit import Machine, host_machine
from planish.levels.loops.codegen.objects import Section, read_object
from planish.levels.loops.ir.annotated import (
    AnnotatedLoop,
    AnnotatedTree,
    Block,
    Cell,
    CellRegion,
    Function,
    Item,
    Lanes,
    Part,
    Piece,
    Unrolled,
    cell,
    position,
    summed,
)
from planish.levels.loops.ir.tree import Call, Leaf, Loop, LoopId, LoopTree, Ref, Value, leaves
from planish.levels.loops.lang.program import DTYPES, IDENTITY, Const
from planish.levels.loops.lower.ssa import annotate

# Elements in registers


class Held:
    """The current values of a scope's cells; what has none yet is loaded when it is asked for.

    Args:
        region: what is held.
        home: held buffer to its pointer, of those that memory sees.
    """

    def __init__(self, region: CellRegion, home: Mapping[str, str], memory: Memory) -> None:
        self.region = region
        self._home = home
        self._memory = memory
        self._writer = memory.writer
        self._values: dict[Cell, Val] = {}
        self._changed: set[Cell] = set()

    def value(self, cell: Cell) -> Val:
        """Return a cell's value; an accumulator starts from its reduction's identity."""
        if cell not in self._values:
            if cell.reduce or cell.buffer not in self._home:
                # What is no sum is written before it is read; a loop that counts must begin with something.
                start = self._writer.number(IDENTITY[cell.reduce] if cell.reduce else 0.0)
                name = self._writer.widened(start, cell.lanes)
            else:
                name = self._memory.fetch(self._home[cell.buffer], cell, cell.lanes)
            self._values[cell] = Val(name, cell.lanes)
        return self._values[cell]

    def change(self, cell: Cell, value: Val) -> None:
        """Set a cell's value."""
        self._values[cell] = Val(self._writer.widened(value, cell.lanes), cell.lanes)
        self._changed.add(cell)

    def rename(self, cell: Cell) -> tuple[str, str]:
        """Replace a cell's value by that of a phi; returns the value's name before, and the phi's."""
        old, name = self.value(cell).name, self._writer.fresh()
        self._values[cell] = Val(name, cell.lanes)
        return old, name

    def write_back(self, arithmetic: Arithmetic) -> None:
        """Bring memory up to date, except for buffers that nothing reads any more."""
        sums: dict[Cell, list[Val]] = {}
        for held, value in self._values.items():
            if held.reduce:
                # The parts of one sum differ in their number alone.
                sums.setdefault(held._replace(part=0), []).append(value)
            elif held in self._changed and held.buffer not in self.region.local:
                self._memory.put(self._home[held.buffer], held, value)
        for held, values in sums.items():
            one, home = Cell(held.buffer, held.offset), self._home[held.buffer]
            new = total(arithmetic, held.reduce, values)
            # What memory holds is added once, here, because each lane of each part began with the identity.
            old = Val(self._memory.fetch(home, one, 1), 1)
            self._memory.put(home, one, arithmetic.combine(held.reduce, old, new))


# Leaves


class Site(NamedTuple):
    """Location in the IR where a leaf is written.

    Args:
        loop: the vectorized loop around it; None if a single element is computed.
        piece: which iterations of that loop.
        number: the piece's number, from 0.
        lanes: what the loop's passes do.
    """

    loop: Loop | None = None
    piece: Piece = Piece(0, 1, 1)
    number: int = 0
    lanes: Lanes | None = None


class Leaves:
    """Writes the leaves of one function into the text of its memory's writer."""

    def __init__(self, memory: Memory) -> None:
        self.writer = memory.writer
        self.memory = memory
        self.arithmetic = Arithmetic(memory.writer)
        self.at: dict[LoopId, int] = {}
        """The enclosing loops' positions, as far as they are known; from the counter where one counts."""
        self.held: Held | None = None
        """What registers hold here."""
        self._private: dict[Cell, Val] = {}

    def piece(self, lanes: Lanes, piece: Piece, number: int) -> None:
        """Write all leaves of a vectorized loop for some of its iterations."""
        self._private = {}
        for leaf in leaves(lanes.loop.body):
            self.leaf(leaf, Site(lanes.loop, piece, number, lanes))

    def leaf(self, leaf: Leaf, site: Site) -> None:
        """Write one leaf."""
        if site.lanes and leaf.target.buffer in site.lanes.summed:
            self._accumulate(leaf, site)
        elif leaf.reduce is None:
            self._write(leaf.target, site, self._value(leaf.value, site))
        else:
            old = self._read(leaf.target, site)
            self._write(leaf.target, site, self._reduced(leaf.reduce, old, leaf.value, site))

    def _accumulate(self, leaf: Leaf, site: Site) -> None:
        """Reduce lane by lane; lanes that do not count keep what they have."""
        assert self.held is not None
        assert leaf.reduce is not None
        piece = site.piece
        # By turns, so that a piece does not wait for the sum of the one before.
        accumulator = summed(leaf, self.at, piece, site.number % self.held.region.parts)
        old = self.held.value(accumulator)
        new = self._reduced(leaf.reduce, old, leaf.value, site)
        # Other lanes read zeros, which need not be neutral: exp(0) is 1, and 0 may be the greatest.
        if piece.active < piece.lanes:
            (bits, mask), t = mask_of(piece.lanes, piece.active), self.writer.type(piece.lanes)
            text = f"select {bits} {mask}, {t} {new.name}, {t} {old.name}"
            new = Val(self.writer.define(text), piece.lanes)
        self.held.change(accumulator, new)

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
                c = cell(base, self.at, site.loop, site.piece)
                return self.memory.load_behind(base, c, site.piece.lanes, row, int(stride))
            case Call("add", (Call("mul") as product, rest)) | Call("add", (rest, Call("mul") as product)):
                return self._fused(product, self._value(rest, site), site)
            case Call(function, args):
                return self.arithmetic.apply(function, [self._value(a, site) for a in args])

    def _fused(self, product: Call, addend: Val, site: Site) -> Val:
        """Write product + addend as one operation."""
        factors = [self._value(a, site) for a in product.args]
        return self.arithmetic.apply("fma", [*factors, addend])

    def _read(self, ref: Ref, site: Site) -> Val:
        c = cell(ref, self.at, site.loop, site.piece)
        if site.lanes and ref.buffer in site.lanes.private:
            return self._private[c]
        if self.held and ref.buffer in self.held.region.held:
            return self.held.value(c)
        return self.memory.load(ref, c, site.piece.lanes)

    def _write(self, ref: Ref, site: Site, value: Val) -> None:
        c = cell(ref, self.at, site.loop, site.piece)
        if site.lanes and ref.buffer in site.lanes.private:
            self._private[c] = value
        elif self.held and ref.buffer in self.held.region.held:
            self.held.change(c, value)
        else:
            self.memory.put(self.memory.pointer(ref), c, value)


# Loops


class Nodes:
    """Writes the nodes of one function into the text of its memory's writer."""

    def __init__(self, memory: Memory) -> None:
        self.writer = memory.writer
        self.memory = memory
        self.leaves = Leaves(memory)
        self.at = self.leaves.at
        self._labels = 0
        self._shift: dict[str, int] = {}
        """Held buffer to how far the known positions of loops around its region have moved its cells."""

    def write(self, item: Item) -> None:
        """Write nodes in order."""
        match item:
            case CellRegion():
                self._hold(item)
            case AnnotatedLoop():
                self._annotated_loop(item)
            case Unrolled(node=Leaf() as leaf):
                self.leaves.leaf(leaf, Site())
            case Block(items=items):
                for inner in items:
                    self.write(inner)
            case _:
                raise AssertionError(item)

    def _hold(self, region: CellRegion) -> None:
        """Write nodes with their cells in registers."""
        homes = region.homes.items()
        home = {name: self.memory.pointer(ref) for name, ref in homes if name not in region.local}
        held = self.leaves.held = Held(region, home, self.memory)
        before = self._shift
        self._shift = {name: position(ref, self.at) - ref.offset for name, ref in homes}
        self.write(region.item)
        self._shift = before
        self.leaves.held = None
        held.write_back(self.leaves.arithmetic)

    def _annotated_loop(self, item: AnnotatedLoop) -> None:
        number = 0
        for part in item.parts:
            if part.kind == "counted":
                self.counted(item.loop, ("0", str(part.passes * part.width), part.copies * part.width), part)
            else:
                self._passes(item.loop, part, part.passes, number)
            number += part.passes

    def _passes(self, loop: Loop, part: Part, count: int, number: int) -> None:
        """Write passes; the number of the first counts those of all parts."""
        for i in range(count):
            start = part.first + i * part.width
            self.at[loop.id], item = start, part.body_of(i)
            if isinstance(item, Lanes):
                self.leaves.piece(item, Piece(start, part.lanes, part.width), number + i)
            else:
                self.write(item)
        del self.at[loop.id]

    def counted(self, loop: Loop, span: tuple[str, str, int], part: Part) -> None:
        """Write a loop of the machine code, of one iteration at least.

        Args:
            loop: the tree's loop.
            span: the first position, the end, and positions for each iteration of the machine code.
            part: how it is executed.
        """
        w, (start, end, unit) = self.writer, span
        cells = [c._replace(offset=c.offset + self._shift[c.buffer]) for c in part.carried]
        held = self.leaves.held if cells else None
        live = Live(loop.id, w.fresh(), frozenset(leaf.target.buffer for leaf in leaves(loop.body)))
        if held:
            # Before the loop: what its phis begin with must be there on the way in.
            for c in cells:
                held.value(c)
        w.lines.append(live.before)
        before, label = w.label, self._label()
        w.lines.append(f"  br label %{label}")
        w.block(label)
        # Their values are known once the body is written.
        phis: Lines = []
        w.lines += [phis, live.head]
        # What the loop only reads keeps its name: no phi is needed.
        carried = [(c, *held.rename(c)) for c in cells if c.buffer in live.writes] if held else []
        self.memory.forget(live.writes)  # from the second iteration on these are old
        self.memory.lives.append(live)
        self._passes(loop, part, part.copies, 0)
        self.memory.lives.pop()
        after = w.define(f"add nuw nsw i64 {live.counter}, {unit}")
        more = w.define(f"icmp slt i64 {after}, {end}")
        last, behind = w.label, self._label()
        w.lines.append(f"  br i1 {more}, label %{label}, label %{behind}")
        w.block(behind)
        phis.append(f"  {live.counter} = phi i64 [{start}, %{before}], [{after}, %{last}]")
        for c, old, name in carried:
            assert held is not None
            new = held.value(c).name
            phis.append(f"  {name} = phi {w.type(c.lanes)} [{old}, %{before}], [{new}, %{last}]")

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
    write, parts = partial(emit, tree, machine=machine), partial(sections, tree, machine=machine)
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


def sections(tree: LoopTree, prefix: str, machine: Machine) -> list[Section]:
    """Return a tree's functions as sections to be linked; see `emit` for the arguments."""
    return read_object(
        jit.object_code(module(annotated_for(tree, machine), machine, prefix)[0], machine), prefix
    )


def annotated_for(tree: LoopTree, machine: Machine) -> AnnotatedTree:
    """Decide how a tree is executed on a machine; raises TargetError where it mixes types to compute in."""
    dtype = arithmetic_of(tree)
    return annotate(tree, machine.vectors(DTYPES[dtype]), dtype)


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
            code = _FunctionCode(tree, machine, arranged)
            parts.append(code.text(known[-1], function))
            declared |= code.writer.declared
    # Sorted: a set of strings has another order in each process, and the text should not.
    return "\n".join([*parts, *sorted(declared), ""]), names


class _FunctionCode:
    def __init__(self, tree: LoopTree, machine: Machine, arranged: Layout) -> None:
        self.tree = tree
        self.machine = machine
        self.writer = Writer(arithmetic_of(tree))
        self.memory = Memory(self.writer, tree.buffer, self._base, machine.registers)
        self.nodes = Nodes(self.memory)
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
        """Write the last iteration, if %end is behind it."""
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
