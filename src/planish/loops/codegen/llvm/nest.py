"""Writes loops as IR, strictly in the tree's order (thesis 3.4.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planish.loops.codegen.llvm.held import Held
from planish.loops.codegen.llvm.leaf import Leaves, Place
from planish.loops.codegen.llvm.memory import Live, Memory
from planish.loops.codegen.llvm.plan import Piece, Plan
from planish.loops.codegen.llvm.scope import UNROLLED_MOST, Cell, Scope, Scopes
from planish.loops.codegen.llvm.writer import Lines, Writer
from planish.loops.ir.extent import Remaining, iterations, within
from planish.loops.ir.tree import Leaf, Loop, LoopTree, Node, leaves, refs

SMALL = 16
"""A loop of so few vector operations is unrolled, and a body is repeated up to so many."""
SMALL_HELD = 128
"""The same, where registers hold the results."""
SMALL_VECTORS = 32
"""The same, for an innermost loop."""
CHUNK = 4
"""Vectors in one iteration of a long innermost loop."""


class Nest:
    """Writes the nodes of one function.

    Args:
        scopes: of the tree.
        writer: of the function.
        memory: of the function.
    """

    def __init__(self, scopes: Scopes, writer: Writer, memory: Memory) -> None:
        self.plan: Plan = scopes.plan
        self.tree: LoopTree = scopes.plan.tree
        self.scopes = scopes
        self.writer = writer
        self.memory = memory
        self.leaves = Leaves(scopes.plan, writer, memory)
        self.at = self.leaves.at
        self._unrolling = False
        self._labels = 0

    def nodes(self, nodes: tuple[Node, ...], inside: Remaining, *, whole: bool = True) -> None:
        """Write nodes in order.

        Args:
            nodes: all of a loop's body or a function's, or a part of it.
            inside: what remains there.
            whole: whether they are all: temporaries of this body are dead behind them.
        """
        if self.leaves.held is None:
            scope = self.scopes.find(nodes, inside, self.at, len(self.at))
            home = self._home(scope, nodes) if scope else None
            if scope and home:
                self._hold(scope, home, whole, lambda: self._each(nodes, inside))
                return
            if len(nodes) > 1:
                for node in nodes:
                    self.nodes((node,), inside, whole=False)
                return
        self._each(nodes, inside)

    def _each(self, nodes: tuple[Node, ...], inside: Remaining) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                self.leaves.leaf(node, Place())
            elif self.plan.vectorised(node, inside, len(self.at)):
                self._vector_loop(node, inside)
            else:
                self._loop(node, inside)

    def _home(self, scope: Scope, nodes: tuple[Node, ...]) -> Mapping[str, str] | None:
        """Find the pointer of each held buffer; None if its references have several."""
        home: dict[str, str] = {}
        for leaf in leaves(nodes):
            for ref in (leaf.target, *refs(leaf.value)):
                if ref.buffer in scope.held:
                    pointer = self.memory.pointer(ref)
                    if home.setdefault(ref.buffer, pointer) != pointer:
                        return None
        return home

    def _hold(self, scope: Scope, home: Mapping[str, str], whole: bool, body: Callable[[], None]) -> None:
        """Write nodes of this depth with a scope's cells in registers."""
        held = self.leaves.held = Held(scope, home, self.writer, self.memory)
        body()
        self.leaves.held = None
        outside = len(self.at) + (not whole)

        def dead(name: str) -> bool:
            buffer = self.tree.buffer[name]
            return buffer.kind == "temporary" and buffer.scope >= outside

        held.write_back(self.leaves.arithmetic, dead)

    def _loop(self, loop: Loop, inside: Remaining) -> None:
        full, tail = iterations(self.tree, inside, loop)
        inner = within(inside, loop.axis, loop.step)
        copies = self._copies(loop, inside, full)
        main = full - full % copies if copies < full else 0
        if main:

            def body() -> None:
                for i in range(copies):
                    self.at[loop.id] = i
                    self.nodes(loop.body, inner)

            self._counted(loop, ("0", str(main), copies), self._touched(loop, inside), body)
        self._unrolled(loop, range(main, full), inner)
        if tail:
            self._unrolled(loop, range(full, full + 1), within(inside, loop.axis, tail))

    def _unrolled(self, loop: Loop, positions: range, inner: Remaining) -> None:
        before = self._unrolling
        self._unrolling = before or self._moves_held(loop)
        for i in positions:
            self.at[loop.id] = i
            self.nodes(loop.body, inner)
            del self.at[loop.id]
        self._unrolling = before

    def _moves_held(self, loop: Loop) -> bool:
        held = self.leaves.held
        return held is not None and self.plan.moves(loop, held.scope.held)

    def _copies(self, loop: Loop, inside: Remaining, full: int) -> int:
        """How often to repeat a loop's body; `full` times, where it is to be no loop at all."""
        if full <= 1 or self._unrolling or self._moves_held(loop):
            return full
        inner = within(inside, loop.axis, loop.step)
        volume = self.plan.volume(loop.body, inner, len(self.at) + 1)
        asked = loop.kind == "unroll"
        most = UNROLLED_MOST if asked else SMALL_HELD if self.leaves.held else SMALL
        if volume * full <= most:
            return full
        return max(1, (UNROLLED_MOST if asked else SMALL) // volume)

    def _vector_loop(self, loop: Loop, inside: Remaining) -> None:
        depth = len(self.at) + 1
        summed = frozenset(x.target.buffer for x in leaves(loop.body) if self.plan.partial(x, loop, depth))
        if not summed or self.leaves.held:
            self._vectors(loop, inside, bool(summed))
            return
        scope = Scope(summed)
        home = self._home(scope, (loop,))
        assert home is not None
        self._hold(scope, home, False, lambda: self._vectors(loop, inside, True))

    def _vectors(self, loop: Loop, inside: Remaining, summed: bool) -> None:
        lanes, full, tail = self.plan.pieces(self.plan.trip(loop, inside), summed)
        chunk = self._chunk(loop, full)
        main = full - full % chunk if full >= 2 * chunk else 0

        def write(numbers: range) -> None:
            for i in numbers:
                self.leaves.piece(loop, Piece(i * lanes, lanes, lanes), i)

        if main:

            def body() -> None:
                write(range(chunk))
                self.at[loop.id] = 0

            span = ("0", str(main * lanes), chunk * lanes)
            self._counted(loop, span, self._touched(loop, inside), body)
        write(range(main, full))
        for i, piece in enumerate(tail):
            self.leaves.piece(loop, piece, full + i)

    def _chunk(self, loop: Loop, full: int) -> int:
        """How many vectors to write in one iteration; more than `full`, where there is to be no loop."""
        volume = sum(map(self.plan.weight, leaves(loop.body)))
        most = UNROLLED_MOST if loop.kind == "unroll" else SMALL_VECTORS
        if self._unrolling or self._moves_held(loop) or full * volume <= most:
            return full + 1
        parts = self.leaves.held.scope.parts if self.leaves.held else 1
        return max(parts, min(CHUNK, 64 // volume), 1)

    def counted_range(self, loop: Loop, begin: str, end: str) -> None:
        """Write a root's loop over full iterations whose bounds are known at run time; at least one."""

        def body() -> None:
            self.at[loop.id] = 0
            self.nodes(loop.body, within({}, loop.axis, loop.step))

        self._counted(loop, (begin, end, 1), [], body)

    def _counted(
        self, loop: Loop, span: tuple[str, str, int], cells: list[Cell], body: Callable[[], None]
    ) -> None:
        """Write a loop of the machine code.

        Args:
            loop: the tree's loop.
            span: the first position, the end, and positions for each iteration of the machine code.
            cells: what is held and touched inside.
            body: writes one iteration, with the loop's position from 0.
        """
        w, (start, end, unit) = self.writer, span
        held = self.leaves.held if cells else None
        live = Live(loop.id, w.fresh(), frozenset(leaf.target.buffer for leaf in leaves(loop.body)))
        if held:
            held.load(cells)
        w.lines.append(live.before)
        before, label = w.label, self._label()
        w.lines.append(f"  br label %{label}")
        w.block(label)
        phis: Lines = []
        w.lines += [phis, live.head]
        carried = [(c, *held.rename(c)) for c in cells if c.buffer in live.writes] if held else []
        self.memory.forget(live.writes)
        self.memory.lives.append(live)
        body()
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

    def _touched(self, loop: Loop, inside: Remaining) -> list[Cell]:
        """List the held cells that a loop touches."""
        held = self.leaves.held
        if held is None:
            return []
        return list(dict.fromkeys(self.scopes.cells((loop,), inside, self.at, len(self.at), held.scope)))
