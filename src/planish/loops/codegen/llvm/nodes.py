"""Writes loops as IR, strictly in the tree's order (thesis 3.4.1)."""

from __future__ import annotations

from planish.loops.codegen.llvm.held import Held
from planish.loops.codegen.llvm.ir_writer import Lines, Writer
from planish.loops.codegen.llvm.leaf import Leaves, Place
from planish.loops.codegen.llvm.memory import Live, Memory
from planish.loops.ir.annotated import Block, CellRegion, Item, Lanes, Nest, Part, Unrolled
from planish.loops.ir.cells import Piece, position
from planish.loops.ir.tree import Leaf, Loop, leaves


class Nodes:
    """Writes the nodes of one function.

    Args:
        writer: of the function.
        memory: of the function.
    """

    def __init__(self, writer: Writer, memory: Memory) -> None:
        self.writer = writer
        self.memory = memory
        self.leaves = Leaves(writer, memory)
        self.at = self.leaves.at
        self._labels = 0
        self._shift: dict[str, int] = {}
        """Held buffer to how far the known positions of loops around its region have moved its cells."""

    def write(self, item: Item) -> None:
        """Write nodes in order."""
        match item:
            case CellRegion():
                self._hold(item)
            case Nest():
                self._nest(item)
            case Unrolled(node=Leaf() as leaf):
                self.leaves.leaf(leaf, Place())
            case Block(items=items):
                for inner in items:
                    self.write(inner)
            case _:
                raise AssertionError(item)

    def _hold(self, region: CellRegion) -> None:
        """Write nodes with their cells in registers."""
        seen = [(name, ref) for name, ref in region.homes.items() if name not in region.local]
        home = {name: self.memory.pointer(ref) for name, ref in seen}
        held = self.leaves.held = Held(region, home, self.writer, self.memory)
        before = self._shift
        self._shift = {n: position(ref, self.at) - ref.offset for n, ref in region.homes.items()}
        self.write(region.item)
        self._shift = before
        self.leaves.held = None
        held.write_back(self.leaves.arithmetic, region.local)

    def _nest(self, nest: Nest) -> None:
        loop, number = nest.loop, 0
        for part in nest.parts:
            if part.kind == "counted":
                self._counted(loop, ("0", str(part.passes * part.width), part.copies * part.width), part)
            else:
                for i in range(part.passes):
                    self._pass(loop, part, i, number + i)
                    del self.at[loop.id]
            number += part.passes

    def _pass(self, loop: Loop, part: Part, i: int, number: int) -> None:
        """Write a pass; its number counts those of all parts."""
        start = part.first + i * part.width
        self.at[loop.id], item = start, part.body_of(i)
        if isinstance(item, Lanes):
            self.leaves.piece(item, Piece(start, part.lanes, part.width), number)
        else:
            self.write(item)

    def counted_range(self, loop: Loop, begin: str, end: str, part: Part) -> None:
        """Write a root's loop over full iterations whose bounds are known at run time; at least one."""
        self._counted(loop, (begin, end, 1), part)

    def _counted(self, loop: Loop, span: tuple[str, str, int], part: Part) -> None:
        """Write a loop of the machine code.

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
            held.load(cells)
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
        for i in range(part.copies):
            self._pass(loop, part, i, i)
        del self.at[loop.id]
        self.memory.lives.pop()
        last, after = self._jump_back(live.counter, unit, end, label)
        phis.append(f"  {live.counter} = phi i64 [{start}, %{before}], [{after}, %{last}]")
        for c, old, name in carried:
            assert held is not None
            new = held.value(c).name
            phis.append(f"  {name} = phi {w.type(c.lanes)} [{old}, %{before}], [{new}, %{last}]")

    def _jump_back(self, counter: str, unit: int, end: str, label: str) -> tuple[str, str]:
        """Write the end of a loop; gives the block that jumps back, and the counter's next value."""
        w = self.writer
        after = w.define(f"add nuw nsw i64 {counter}, {unit}")
        more = w.define(f"icmp slt i64 {after}, {end}")
        last, behind = w.label, self._label()
        w.lines.append(f"  br i1 {more}, label %{label}, label %{behind}")
        w.block(behind)
        return last, after

    def _label(self) -> str:
        self._labels += 1
        return f"b{self._labels}"
