"""Elements that registers hold while a scope is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from planish.loops.codegen.llvm.arithmetic import Arithmetic, total
from planish.loops.codegen.llvm.ir_writer import Val, Writer
from planish.loops.codegen.llvm.memory import Memory
from planish.loops.ir.annotated import CellRegion
from planish.loops.ir.cells import Cell
from planish.loops.lang.program import IDENTITY


class Held:
    """The current values of a scope's cells; what has none yet is loaded when it is asked for.

    Args:
        region: what is held.
        home: held buffer to its pointer, of those that memory sees.
        writer: of the function.
        memory: of the function.
    """

    def __init__(self, region: CellRegion, home: Mapping[str, str], writer: Writer, memory: Memory) -> None:
        self.region = region
        self._home = home
        self._writer = writer
        self._memory = memory
        self._values: dict[Cell, Val] = {}
        self._changed: set[Cell] = set()

    def value(self, cell: Cell) -> Val:
        """Give a cell's value; an accumulator starts from its reduction's identity."""
        if cell not in self._values:
            if cell.reduce:
                start = self._writer.number(IDENTITY[cell.reduce])
                name = self._writer.widened(start, cell.lanes)
            elif cell.buffer not in self._home:
                # It is written before it is read; a loop that counts must begin with something.
                name = self._writer.widened(self._writer.number(0.0), cell.lanes)
            else:
                name = self._memory.fetch(self._home[cell.buffer], cell, cell.lanes)
            self._values[cell] = Val(name, cell.lanes)
        return self._values[cell]

    def load(self, cells: Sequence[Cell]) -> None:
        """Make sure that cells have values."""
        for cell in cells:
            self.value(cell)

    def change(self, cell: Cell, value: Val) -> None:
        """Give a cell another value."""
        self._values[cell] = Val(self._writer.widened(value, cell.lanes), cell.lanes)
        self._changed.add(cell)

    def rename(self, cell: Cell) -> tuple[str, str]:
        """Let a cell's value be that of a phi; gives the value's name before, and the phi's."""
        old, name = self.value(cell).name, self._writer.fresh()
        self._values[cell] = Val(name, cell.lanes)
        return old, name

    def write_back(self, arithmetic: Arithmetic, dead: Set[str]) -> None:
        """Bring memory up to date, except for buffers that nothing reads any more."""
        sums: dict[Cell, list[Val]] = {}
        for cell, value in self._values.items():
            if cell.reduce:
                # The parts of one sum differ in their number alone.
                sums.setdefault(cell._replace(part=0), []).append(value)
            elif cell in self._changed and cell.buffer not in dead:
                self._memory.put(self._home[cell.buffer], cell, value)
        for cell, values in sums.items():
            one, home = Cell(cell.buffer, cell.offset), self._home[cell.buffer]
            new = total(arithmetic, cell.reduce, values)
            # What memory holds is added once, here, because each lane of each part began with the identity.
            old = Val(self._memory.fetch(home, one, 1), 1)
            self._memory.put(home, one, arithmetic.combine(cell.reduce, old, new))
