"""How the nodes of a region are executed: what only reduces in loops, and everything else unrolled."""

from __future__ import annotations

from collections.abc import Mapping

from planish.loops.ir.annotated import Block, Inside, Item, Nest, Part, Region, Unrolled, is_start
from planish.loops.ir.extent import remaining
from planish.loops.ir.tree import Leaf, Loop, Node, Ref, leaves
from planish.loops.lower.physical.allocate import Allocation, Analyser
from planish.loops.lower.physical.paths import instances
from planish.loops.lower.physical.scope import UNROLLED_MAX

LOOP_WORK = 32
"""A loop that only reduces, around less work than this many operations, is unrolled up to it."""
UNROLL_WORK = 64
"""Such a loop is unrolled altogether if that gives no more operations than this."""

FETCHED_FROM = 1 << 15
"""A buffer of fewer bytes stays in the first cache: its lines are not asked for."""
LINE = 64
"""Bytes of a cache line."""
LINES_MAX = 8
"""Where an iteration goes farther than this, it does not walk memory in sequence."""


class Regions:
    """Annotates regions.

    Args:
        analyser: of the tree.
    """

    def __init__(self, analyser: Analyser) -> None:
        self._analyser = analyser
        self._tree = analyser.tree
        self._vectors = analyser.vectors
        self._large = analyser.buffers_from(FETCHED_FROM)

    def region(self, nodes: tuple[Node, ...], inside: Inside, allocation: Allocation) -> Region:
        held, homes, registers, copies, free = allocation
        items: list[Item] = []
        made: list[set[str]] = []
        combines = copies > 1 or held.lanewise
        analyser = self._analyser
        for node in nodes:
            found = analyser.leaves(node)
            if False in [is_start(leaf, held.fresh, held.reduce) for leaf in found]:
                items.append(self._node(node, inside, None, allocation))
                made.append({leaf.target.buffer for leaf in found if leaf.reduce} if combines else set())
        return Region(
            nodes,
            tuple(items),
            tuple(made),
            registers,
            homes,
            held.stride,
            held.reduce,
            held.lanewise,
            held.fresh,
            held.local,
            copies,
            free,
            analyser.unrolled(nodes),
        )

    def _node(self, node: Node, inside: Inside, vector: Loop | None, held: Allocation) -> Item:
        if isinstance(node, Leaf) or self._analyser.unrolls(node):
            return Unrolled(node, inside, vector)
        return self._vector_loop(node, inside, held) if node.side_by_side else self._loop(node, inside, held)

    def _body(self, loop: Loop, inside: Inside, vector: Loop | None, held: Allocation) -> Item:
        if len(loop.body) == 1:
            return self._node(loop.body[0], inside, vector, held)
        return Block(loop.body, tuple([self._node(node, inside, vector, held) for node in loop.body]))

    def _vector_loop(self, loop: Loop, inside: Inside, held: Allocation) -> Nest:
        """A loop that is reduced a vector at a time."""
        lanes = self._vectors.lanes
        full, tail = divmod(remaining(self._tree, inside, loop.axis), lanes)
        parts: list[Part] = []
        if full:
            body = self._body(loop, {**inside, loop.axis: lanes}, loop, held)
            kind, copies = self._reduce(loop, full, len(loop.body), held)
            fetched = walked(loop, lanes * copies, self._large) if kind == "counted" else ()
            parts.append(Part(kind, 0, full, lanes, body, lanes, copies, fetched))
        if tail:
            body = self._body(loop, {**inside, loop.axis: tail}, loop, held)
            parts.append(Part("unrolled", full * lanes, 1, tail, body, lanes))
        return Nest(loop, tuple(parts))

    def _loop(self, loop: Loop, inside: Inside, held: Allocation) -> Nest:
        full, tail = divmod(remaining(self._tree, inside, loop.axis), loop.step)
        inner = {**inside, loop.axis: loop.step}
        parts: list[Part] = []
        if full:
            body = self._body(loop, inner, None, held)
            kind, copies = "unrolled", full
            if not self._analyser.moves_target(loop):
                work = instances(self._tree, loop.body, inner, self._vectors.lanes, UNROLLED_MAX)
                kind, copies = self._reduce(loop, full, work, held)
            fetched = walked(loop, copies, self._large) if kind == "counted" else ()
            parts.append(Part(kind, 0, full, 1, body, 1, copies, fetched))
        if tail:
            body = self._body(loop, {**inside, loop.axis: tail}, None, held)
            parts.append(Part("unrolled", full, 1, 1, body))
        return Nest(loop, tuple(parts))

    def _reduce(self, loop: Loop, count: int, work: int, held: Allocation) -> tuple[str, int]:
        """A loop that only reduces: short ones are unrolled, others run, several iterations at a time."""
        # A schedule that asks for it may have more code, as in the analyser.
        short = count * work <= UNROLL_WORK or (loop.kind == "unroll" and count * work <= 4 * UNROLLED_MAX)
        if short or _moves_held(loop, held):
            return "unrolled", count
        # As many copies as a sum has registers at least, for passes take these by turns.
        return "counted", min(count, max(held.copies, LOOP_WORK // work)) if work < LOOP_WORK else 1


def _moves_held(loop: Loop, held: Allocation) -> bool:
    """Whether iterations name different held vectors: a register's number is written into the code.

    The analyser has seen to it that such a loop is short enough to be unrolled.
    """
    for leaf in leaves(loop.body):
        for ref in leaf.refs:
            if ref.buffer in held.registers and loop.id in ref.stride:
                return True
    return False


def walked(loop: Loop, times: int, buffers: Mapping[str, int]) -> tuple[Ref, ...]:
    """List the references to some buffers that a loop walks in sequence.

    Args:
        loop: the loop.
        times: its iterations in one of the machine's.
        buffers: those that count, with the bytes of their elements.
    """
    refs = [ref for leaf in leaves(loop.body) for ref in leaf.refs if ref.buffer in buffers]
    far = [ref.stride.get(loop.id, 0) * times * buffers[ref.buffer] for ref in refs]
    # Less than a line a pass, and most requests would be for a line that was asked for already.
    return tuple([ref for ref, move in zip(refs, far, strict=True) if LINE <= move <= LINES_MAX * LINE])
