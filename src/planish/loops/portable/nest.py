"""Writes loops and leaves as IR, strictly in the tree's order (thesis 3.4.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from planish.loops.extent import Remaining, iterations, within
from planish.loops.portable.arithmetic import Arithmetic, total
from planish.loops.portable.memory import Live, Memory
from planish.loops.portable.plan import UNROLLED_MOST, Cell, Piece, Plan, Scope, cell
from planish.loops.portable.writer import Lines, Val, Writer
from planish.loops.program import IDENTITY, Const
from planish.loops.tree import Call, Leaf, Loop, LoopId, Node, Ref, Value, leaves, refs

SMALL = 16
"""A loop of so few vector operations is unrolled, and a body is repeated up to so many."""
SMALL_HELD = 128
"""The same, where registers hold the results."""
CHUNK = 4
"""Vectors in one iteration of a long innermost loop."""

_ONE = Piece(0, 1, 1)


@dataclass
class _Open:
    """A scope while its nodes are written.

    Args:
        scope: what is held.
        home: held buffer to its pointer.
        values: cell to its current value.
        dirty: cells that memory does not have.
    """

    scope: Scope
    home: dict[str, str]
    values: dict[Cell, Val] = field(default_factory=dict[Cell, Val])
    dirty: set[Cell] = field(default_factory=set[Cell])


class Nest:
    """Writes the nodes of one function."""

    def __init__(self, plan: Plan, writer: Writer, memory: Memory) -> None:
        self.plan = plan
        self.writer = writer
        self.memory = memory
        self.arithmetic = Arithmetic(writer)
        self.at: dict[LoopId, int] = {}
        """The enclosing loops' positions, as far as they are known now; from the counter where one counts."""
        self.open: _Open | None = None
        self._unrolling = False
        self._private: dict[Cell, Val] = {}
        self._labels = 0

    def nodes(self, nodes: tuple[Node, ...], inside: Remaining, *, whole: bool = True) -> None:
        """Write nodes in order.

        Args:
            nodes: all of a loop's body or a function's, or a part of it.
            inside: what remains there.
            whole: whether they are all: temporaries of this body are dead behind them.
        """
        if self.open is None:
            scope = self.plan.scope(nodes, inside, self.at, len(self.at))
            if scope and self._begin(scope, nodes):
                self._each(nodes, inside)
                self._end(whole)
                return
            if len(nodes) > 1:
                for node in nodes:
                    self.nodes((node,), inside, whole=False)
                return
        self._each(nodes, inside)

    def _each(self, nodes: tuple[Node, ...], inside: Remaining) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                self._leaf(node, None, _ONE)
            elif self.plan.vectorised(node, inside, len(self.at)):
                self._vector_loop(node, inside)
            else:
                self._loop(node, inside)

    def _begin(self, scope: Scope, nodes: tuple[Node, ...]) -> bool:
        """Open a scope, if each held buffer has one pointer for all its references."""
        home: dict[str, str] = {}
        for leaf in leaves(nodes):
            for ref in (leaf.target, *refs(leaf.value)):
                if ref.buffer in scope.held:
                    pointer = self.memory.pointer(ref)
                    if home.setdefault(ref.buffer, pointer) != pointer:
                        return False
        self.open = _Open(scope, home)
        return True

    def _end(self, whole: bool) -> None:
        """Write what is held back to memory, except for temporaries that nothing reads any more."""
        held = self.open
        assert held is not None
        self.open = None
        partial: dict[Cell, list[Val]] = {}
        for c, value in held.values.items():
            buffer = self.plan.tree.buffer[c.buffer]
            dead = buffer.kind == "temporary" and buffer.scope >= len(self.at) + (not whole)
            if c.reduce:
                partial.setdefault(c._replace(part=0), []).append(value)
            elif c in held.dirty and not dead:
                self.memory.put(held.home[c.buffer], c, value)
        for c, values in partial.items():
            result = total(self.arithmetic, c.reduce, values)
            one = Cell(c.buffer, c.offset)
            old = Val(self.memory.fetch(held.home[c.buffer], one, 1), 1)
            self.memory.put(held.home[c.buffer], one, self.arithmetic.combine(c.reduce, old, result))

    def _loop(self, loop: Loop, inside: Remaining) -> None:
        full, tail = iterations(self.plan.tree, inside, loop)
        inner = within(inside, loop.axis, loop.step)
        copies = self._copies(loop, inside, full)
        main = full - full % copies if copies < full else 0
        if main:

            def body() -> None:
                for i in range(copies):
                    self.at[loop.id] = i
                    self.nodes(loop.body, inner)

            self._counted(loop, ("0", str(main), copies), self._needed(loop, inside), body)
        self._unrolled(loop, range(main, full), inner)
        if tail:
            self._unrolled(loop, range(full, full + 1), within(inside, loop.axis, tail))

    def _unrolled(self, loop: Loop, positions: range, inner: Remaining) -> None:
        before = self._unrolling
        self._unrolling = before or self._moved(loop)
        for i in positions:
            self.at[loop.id] = i
            self.nodes(loop.body, inner)
            del self.at[loop.id]
        self._unrolling = before

    def _moved(self, loop: Loop) -> bool:
        return self.open is not None and self.plan.moves(loop, self.open.scope.held)

    def _copies(self, loop: Loop, inside: Remaining, full: int) -> int:
        """How often to repeat a loop's body; `full` times, where it is to be no loop at all."""
        if full <= 1 or self._unrolling or self._moved(loop):
            return full
        inner = within(inside, loop.axis, loop.step)
        volume = self.plan.volume(loop.body, inner, len(self.at) + 1)
        most = UNROLLED_MOST if loop.kind == "unroll" else SMALL_HELD if self.open else SMALL
        if volume * full <= most:
            return full
        return min(full, max(1, UNROLLED_MOST // volume if loop.kind == "unroll" else SMALL // volume))

    def _vector_loop(self, loop: Loop, inside: Remaining) -> None:
        depth = len(self.at) + 1
        partial = frozenset(x.target.buffer for x in leaves(loop.body) if self.plan.partial(x, loop, depth))
        alone = bool(partial) and self.open is None
        if alone:
            self._begin(Scope(partial), (loop,))
        self._vectors(loop, inside, bool(partial))
        if alone:
            self._end(whole=False)

    def _vectors(self, loop: Loop, inside: Remaining, partial: bool) -> None:
        lanes, full, tail = self.plan.pieces(self.plan.trip(loop, inside), partial)
        volume = sum(map(self.plan.weight, leaves(loop.body)))
        chunk = max(self.open.scope.parts if self.open and partial else 1, min(CHUNK, 64 // volume), 1)
        most = UNROLLED_MOST if loop.kind == "unroll" else 2 * SMALL
        if self._unrolling or self._moved(loop) or full < 2 * chunk or full * volume <= most:
            chunk = full + 1
        main = full - full % chunk
        if main:

            def body() -> None:
                for i in range(chunk):
                    self._piece(loop, i, Piece(i * lanes, lanes, lanes))
                self.at[loop.id] = 0

            span = ("0", str(main * lanes), chunk * lanes)
            self._counted(loop, span, self._needed(loop, inside), body)
        for i in range(main, full):
            self._piece(loop, i, Piece(i * lanes, lanes, lanes))
        for i, piece in enumerate(tail):
            self._piece(loop, full + i, piece)

    def _piece(self, loop: Loop, number: int, piece: Piece) -> None:
        self.at[loop.id] = piece.start
        self._private = {}
        for leaf in loop.body:
            assert isinstance(leaf, Leaf)
            self._leaf(leaf, loop, piece, number)
        del self.at[loop.id]

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
        live = Live(loop.id, w.fresh(), frozenset(leaf.target.buffer for leaf in leaves(loop.body)))
        for c in cells:
            self._held(c)
        w.lines.append(live.before)
        before, label = w.label, self._label()
        w.lines.append(f"  br label %{label}")
        w.block(label)
        phis: Lines = []
        w.lines += [phis, live.head]
        carried = [(c, *self._renamed(c)) for c in cells if c.buffer in live.writes]
        self.memory.forget(live.writes)
        self.memory.lives.append(live)
        body()
        del self.at[loop.id]
        self.memory.lives.pop()
        last, after = self._jump_back(live.counter, unit, end, label)
        phis.append(f"  {live.counter} = phi i64 [{start}, %{before}], [{after}, %{last}]")
        for c, old, name in carried:
            new = self._held(c).name
            phis.append(f"  {name} = phi {w.type(c.lanes)} [{old}, %{before}], [{new}, %{last}]")

    def _renamed(self, c: Cell) -> tuple[str, str]:
        """Let a cell's value be that of a phi; gives the value before the loop, and the phi's name."""
        old, name = self._held(c).name, self.writer.fresh()
        if self.open:
            self.open.values[c] = Val(name, c.lanes)
        return old, name

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

    def _needed(self, loop: Loop, inside: Remaining) -> list[Cell]:
        """List the held cells that a loop touches."""
        if self.open is None:
            return []
        return list(dict.fromkeys(self.plan.cells((loop,), inside, self.at, len(self.at), self.open.scope)))

    def _held(self, c: Cell) -> Val:
        """Give a cell's current value, loading it if it has none yet."""
        assert self.open is not None
        value = self.open.values.get(c)
        if value is None:
            if c.reduce:
                start = self.writer.number(IDENTITY[c.reduce])
                value = Val(self.writer.widened(start, c.lanes), c.lanes)
            else:
                value = Val(self.memory.fetch(self.open.home[c.buffer], c, c.lanes), c.lanes)
            self.open.values[c] = value
        return value

    def _leaf(self, leaf: Leaf, loop: Loop | None, piece: Piece, number: int = 0) -> None:
        depth = len(self.at)
        open_ = self.open
        if loop and self.plan.partial(leaf, loop, depth):
            assert open_ is not None
            c = self.plan.target_cell(leaf, self.at, loop, piece, number % open_.scope.parts)
            new = self._reduced(leaf, self._held(c), loop, piece)
            open_.values[c] = self._masked(self._held(c), new, piece)
            return
        if leaf.reduce is None:
            value = self._value(leaf.value, loop, piece)
        else:
            value = self._reduced(leaf, self._read(leaf.target, loop, piece), loop, piece)
        self._write(leaf.target, loop, piece, value)

    def _reduced(self, leaf: Leaf, old: Val, loop: Loop | None, piece: Piece) -> Val:
        assert leaf.reduce is not None
        if leaf.reduce == "add" and (fused := self._fused(leaf.value, old, loop, piece)):
            return fused
        return self.arithmetic.combine(leaf.reduce, old, self._value(leaf.value, loop, piece))

    def _masked(self, old: Val, new: Val, piece: Piece) -> Val:
        """Keep the old value in lanes that do not count."""
        if piece.active == piece.lanes:
            return new
        bits = ", ".join(f"i1 {int(i < piece.active)}" for i in range(piece.lanes))
        t = self.writer.type(piece.lanes)
        text = f"select <{piece.lanes} x i1> <{bits}>, {t} {new.name}, {t} {old.name}"
        return Val(self.writer.define(text), piece.lanes)

    def _value(self, value: Value, loop: Loop | None, piece: Piece) -> Val:
        if isinstance(value, Const):
            return self.writer.number(value.value)
        if isinstance(value, Ref):
            return self._read(value, loop, piece)
        if value.function == "add":
            for product, rest in (value.args, value.args[::-1]):
                if isinstance(product, Call) and product.function == "mul":
                    fused = self._fused(product, self._value(rest, loop, piece), loop, piece)
                    if fused:
                        return fused
        return self.arithmetic.apply(value.function, [self._value(a, loop, piece) for a in value.args])

    def _fused(self, product: Value, addend: Val, loop: Loop | None, piece: Piece) -> Val | None:
        """Write product + addend as one operation, if it is a product."""
        if not isinstance(product, Call) or product.function != "mul":
            return None
        factors = [self._value(a, loop, piece) for a in product.args]
        return self.arithmetic.apply("fma", [*factors, addend])

    def _read(self, ref: Ref, loop: Loop | None, piece: Piece) -> Val:
        c = cell(ref, self.at, loop, piece)
        if loop and self.plan.lane_private(ref.buffer, len(self.at)):
            return self._private[c]
        if self.open and ref.buffer in self.open.scope.held:
            return self._held(c)
        return self.memory.load(ref, c, piece.lanes)

    def _write(self, ref: Ref, loop: Loop | None, piece: Piece, value: Val) -> None:
        c = cell(ref, self.at, loop, piece)
        if loop and self.plan.lane_private(ref.buffer, len(self.at)):
            self._private[c] = value
        elif self.open and ref.buffer in self.open.scope.held:
            self.open.values[c] = Val(self.writer.widened(value, c.lanes), c.lanes)
            self.open.dirty.add(c)
        else:
            self.memory.store(ref, c, value)
