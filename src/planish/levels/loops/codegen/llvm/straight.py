"""Code of loop trees whose innermost bodies are long, and pass values in temporaries of their own.

Such a body, as one that computes a tile of an image for a vector of channels, has more values than registers.
Each is a value of IR here, whatever their number, and LLVM's register allocator decides which of them memory
holds. Loops are counted, but the innermost, whose iterations are the lanes of vectors; all steps are 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from planish.levels.loops.codegen.kernel import Entry, Layout, MachineCode
from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.llvm.compile import FunctionCode, Leaves, Site
from planish.levels.loops.codegen.llvm.ir_writer import Lines, Val, flattened
from planish.levels.loops.codegen.llvm.jit import Machine
from planish.levels.loops.codegen.llvm.memory import Live, Memory
from planish.levels.loops.codegen.objects import Section, read_object
from planish.levels.loops.ir.tree import Leaf, Loop, LoopTree, Node, Ref, leaves
from planish.levels.loops.lang.program import DTYPES

_NOTHING_IN_MEMORY = Layout({}, frozenset(), 0, 0)


class _Body(Leaves):
    """Writes leaves whose temporaries are values."""

    def __init__(self, memory: Memory, lanes: int, temporaries: frozenset[str]) -> None:
        super().__init__(memory, lanes)
        self._temporaries = temporaries
        self._values: dict[str, Val] = {}

    def leaf(self, leaf: Leaf, loop: Loop | None = None, active: int = 1) -> None:
        """Write one leaf, for several iterations of a vectorized loop at once."""
        site, target = Site(loop, active, self.lanes if active > 1 else 1), leaf.target
        old = self._read(target, site) if leaf.reduce else None
        new = self._new(leaf, old, site)
        if target.buffer in self._temporaries:
            self._values[target.buffer] = Val(self.writer.widened(new, site.lanes), site.lanes)
        else:
            self.memory.put(self.memory.pointer(target), self._cell(target, site), new)

    def _read(self, ref: Ref, site: Site) -> Val:
        if ref.buffer in self._temporaries:
            return self._values[ref.buffer]
        return self.memory.load(ref, self._cell(ref, site), site.lanes)


class _Code(FunctionCode):
    """Writes the function of one node of a tree's root."""

    def __init__(self, tree: LoopTree, machine: Machine) -> None:
        super().__init__(tree, machine, _NOTHING_IN_MEMORY)
        temporaries = frozenset(buffer.name for buffer in tree.buffers if buffer.kind == "temporary")
        lanes = machine.vectors(DTYPES["float32"]).lanes
        self._body = _Body(self.memory, lanes, temporaries)
        self._labels = 0

    def whole(self, name: str, node: Node) -> str:
        """Write the function; of a parallel loop, that of its iterations from begin to end."""
        w = self.writer
        if isinstance(node, Loop) and node.concurrent:
            some = w.define("icmp slt i64 %begin, %end")
            # A loop tests at its end, so that a range with no iteration must go around it.
            w.lines.append(f"  br i1 {some}, label %some, label %rest")
            w.block("some")
            self._counted(node, ("%begin", "%end", 1), partial(self._nodes, node.body))
            w.lines.append("  br label %rest")
            w.block("rest")
        else:
            self._nodes((node,))
        width = f'"prefer-vector-width"="{self.machine.vector_bits}"'
        head = f"define void @{name}(ptr %args, i64 %begin, i64 %end) nounwind {width} {{"
        return "\n".join([head, "entry:", *flattened(w.lines), "  ret void", "}"])

    def _nodes(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                self._body.leaf(node)
            elif node.innermost:
                self._vectors(node)
            else:
                self._several(node, self.tree.size[node.axis], 1, partial(self._nodes, node.body))

    def _vectors(self, loop: Loop) -> None:
        lanes, trip = self._body.lanes, self.tree.size[loop.axis]
        full, rest = divmod(trip, lanes)
        if full:
            self._several(loop, full * lanes, lanes, partial(self._lanes, loop, lanes))
        if rest:
            self._body.at[loop.id] = full * lanes
            self._lanes(loop, rest)
            del self._body.at[loop.id]

    def _lanes(self, loop: Loop, active: int) -> None:
        for leaf in leaves(loop.body):
            self._body.leaf(leaf, loop, active)

    def _several(self, loop: Loop, end: int, unit: int, write: Callable[[], None]) -> None:
        """Write iterations of a loop; one needs no counter."""
        if end == unit:
            write()
        else:
            self._counted(loop, ("0", str(end), unit), write)

    def _counted(self, loop: Loop, span: tuple[str, str, int], write: Callable[[], None]) -> None:
        """Write a loop of the machine code, from a position to an end, with a step in positions."""
        w, (start, end, unit) = self.writer, span
        live = Live(loop.id, w.fresh(), frozenset(leaf.target.buffer for leaf in leaves(loop.body)))
        w.lines.append(live.before)
        self._labels += 1
        before, label, behind = w.label, f"b{self._labels}", f"e{self._labels}"
        w.lines.append(f"  br label %{label}")
        w.block(label)
        phis: Lines = []
        w.lines += [phis, live.head]
        self.memory.forget(live.writes)  # from the second iteration on these are old
        self.memory.lives.append(live)
        write()
        self.memory.lives.pop()
        after = w.define(f"add nuw nsw i64 {live.counter}, {unit}")
        more = w.define(f"icmp slt i64 {after}, {end}")
        phis.append(f"  {live.counter} = phi i64 [{start}, %{before}], [{after}, %{w.label}]")
        w.lines.append(f"  br i1 {more}, label %{label}, label %{behind}")
        w.block(behind)


def _module(tree: LoopTree, machine: Machine, prefix: str) -> str:
    parts, declared = list[str](), set[str]()
    for number, node in enumerate(tree.body):
        code = _Code(tree, machine)
        parts.append(code.whole(f"{prefix}_run{number}", node))
        declared |= code.writer.declared
    return "\n".join([*parts, *sorted(declared), ""])


def _emit(tree: LoopTree, machine: Machine, prefix: str) -> str:
    return jit.assembly(_module(tree, machine, prefix), machine)


def _sections(tree: LoopTree, machine: Machine, prefix: str) -> list[Section]:
    return read_object(jit.object_code(_module(tree, machine, prefix), machine), prefix)


def compile_straight(tree: LoopTree, machine: Machine) -> MachineCode:
    """Generate code of a tree, all of whose temporaries live in one iteration of an innermost loop.

    Args:
        tree: what is executed, in float32.
        machine: the processor. The code is to be linked: nothing of it is called here.
    """
    # One library after the other may be made of it.
    write, parts = partial(_emit, tree, machine), cache(partial(_sections, tree, machine))
    again = partial(compile_straight, tree, machine)
    entries = tuple(
        [
            Entry(0, tree.size[node.axis], parallel=True)
            if isinstance(node, Loop) and node.concurrent
            else Entry(0)
            for node in tree.body
        ]
    )
    return MachineCode(entries, (), None, _NOTHING_IN_MEMORY, write, parts, None, again)
