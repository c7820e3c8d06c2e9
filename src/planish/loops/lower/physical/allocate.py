"""Which part of a loop tree can keep its results in registers.

LoopNest holds the output of the largest scope that fits the register file (thesis 3.4.2, "no spilling of the
result tensor"). A scope is accepted here when all elements that its reductions write, and all elements that
pass between its leaves, have a register each, and the processor keeps enough others for the operands.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Set
from typing import NamedTuple

from planish.loops.ir.annotated import Inside, Place, Vectors
from planish.loops.ir.extent import remaining
from planish.loops.ir.tree import Leaf, Loop, LoopTree, Node, Ref, leaves, loops
from planish.loops.lang.program import DTYPES
from planish.loops.lower.physical.paths import Path, Site, instances
from planish.loops.lower.physical.scope import STREAM_MAX, UNROLLED_MAX, Held, Scope


class Allocation(NamedTuple):
    """The registers of a scope; see `planish.loops.ir.annotated.Region`."""

    held: Held
    homes: dict[str, dict[Place, Ref]]
    registers: dict[str, dict[Place, list[int]]]
    copies: int
    free: int


class Analyser:
    """Decides about scopes of one tree.

    Args:
        tree: the whole tree.
        vectors: the registers of the machine.
        spare: registers that are left free beyond what operands are known to need.
    """

    def __init__(self, tree: LoopTree, vectors: Vectors, spare: int = 0) -> None:
        self.tree = tree
        self.vectors = vectors
        self.spare = spare
        self._uses: dict[str, int] = {}
        # By identity, for comparing nodes means comparing all below them; kept with them, so that no id is
        # reused.
        self._below: dict[int, tuple[Node, int, list[Site]]] = {}
        self._moves: dict[int, bool] = {}
        self._unrolls: dict[int, bool] = {}
        self._scopes: dict[tuple[int, ...], Scope] = {}
        for leaf in leaves((*tree.body, *tree.ahead)):
            for ref in leaf.refs:
                self._uses[ref.buffer] = self._uses.get(ref.buffer, 0) + 1

    def moves_target(self, loop: Loop) -> bool:
        """Whether some leaf below writes along the loop; if not, the loop only reduces."""
        return self._moves[id(loop)]

    def buffers_from(self, size: int) -> dict[str, int]:
        """Give the buffers of so many bytes or more, with the bytes of their elements."""
        pairs = [(b, DTYPES[b.dtype]) for b in self.tree.buffers]
        return {b.name: itemsize for b, itemsize in pairs if b.size * itemsize >= size}

    def named_once(self, buffers: Container[str]) -> list[Site]:
        """Give the leaves of the body that write some of the buffers, where nothing else names these."""
        sites = [site for node in self.tree.body for site in self._scope((node,)).sites]
        targets = [(site, site.leaf.target.buffer) for site in sites]
        return [site for site, name in targets if name in buffers and self._uses[name] == 1]

    def unrolls(self, node: Node) -> bool:
        """Whether no loop of the node only reduces."""
        return self._unrolls[id(node)]

    def unrolled(self, nodes: tuple[Node, ...]) -> list[Loop]:
        """List the loops of a scope that something is written along."""
        scope = self._scope(nodes)
        if scope.unrolled is None:
            scope.unrolled = [loop for loop in loops(nodes) if self.moves_target(loop)]
        return scope.unrolled

    def leaves(self, node: Node) -> list[Leaf]:
        """List the leaves of a node of a scope."""
        return [site.leaf for site in self._below[id(node)][2]]

    def allocate(self, nodes: tuple[Node, ...], inside: Inside) -> Allocation | None:
        """Plan the registers of a scope; None if it does not fit. A single element always does."""
        planned = self._planned(nodes, inside)
        if planned is None and len(nodes) == 1 and isinstance(nodes[0], Leaf):
            return Allocation(Held(set()), {}, {}, 1, self.vectors.registers)
        return planned

    def _planned(self, nodes: tuple[Node, ...], inside: Inside) -> Allocation | None:
        scope = self._scope(nodes)
        if scope.too_large(inside) or not self._fits(scope, nodes, inside):
            return None
        held = scope.held
        # A register holds one result: what begins again in the scope would need it stored in between.
        if held is None or any(site.begins_again(inside, scope.depth) for site in held.starts):
            return None
        homes = self._homes(held, inside)
        if homes is None:
            return None
        if not homes:
            return Allocation(held, {}, {}, 1, self.vectors.registers)
        number = sum(map(len, homes.values()))
        budget = max(1, scope.budget - self.spare)
        if number > budget:
            return None
        # Eight sums in flight keep two units of four cycles busy (see `_registers`): only fewer of them wait.
        few = 0 < sum([len(homes[buffer]) for buffer in held.reduce]) < 8
        crowd = few and instances(self.tree, nodes, inside, self.vectors.lanes, UNROLLED_MAX) > 2 * number
        return self._registers(held, homes, budget if crowd and not held.early else 0)

    def _scope(self, nodes: tuple[Node, ...]) -> Scope:
        # By identity, as above: scopes are asked about again with other remaining axes.
        key = tuple(map(id, nodes))
        known = self._scopes.get(key)
        if known is None:
            for node in nodes:
                if id(node) not in self._below:
                    self._enter(node)
            depth = self._below[key[0]][1]
            sites = [site for node in key for site in self._below[node][2]]
            known = self._scopes[key] = Scope(self.tree, self.vectors, sites, depth, self._uses)
        return known

    def _enter(self, top: Node) -> None:
        """Note what is below a node that has not been seen."""
        for site in self._sites(top, ()):
            site.mark(self._moves, self.vectors.lanes)

    def _sites(self, node: Node, path: Path) -> list[Site]:
        if isinstance(node, Leaf):
            found = [Site(self.tree, node, path)]
            self._unrolls[id(node)] = True
        else:
            inner = (*path, node)
            below = [self._sites(inside, inner) for inside in node.body]
            found = below[0] if len(below) == 1 else [site for sites in below for site in sites]
            # Here and below lists stand for generators, which take longer: this runs for each candidate.
            moves = True in [node.id in site.leaf.target.stride for site in found]
            self._moves[id(node)] = moves
            self._unrolls[id(node)] = moves and False not in [self._unrolls[id(n)] for n in node.body]
        self._below[id(node)] = node, len(path), found
        return found

    def _fits(self, scope: Scope, nodes: tuple[Node, ...], inside: Inside) -> bool:
        """Whether what must be unrolled is short enough, and the reductions' results are few enough."""
        if scope.carrying and not self._short(nodes, inside, scope.carrying):
            return False
        if not scope.buffers:
            return instances(self.tree, nodes, inside, self.vectors.lanes, STREAM_MAX) <= STREAM_MAX
        for site in scope.sites:
            if site.copies(inside, scope.depth) > (scope.budget if site.leaf.reduce else UNROLLED_MAX):
                return False
        return True

    def _short(self, nodes: tuple[Node, ...], inside: Inside, carrying: Set[int]) -> bool:
        """Whether the loops that read from registers along them, by identity, may be unrolled."""
        for node in nodes:
            if isinstance(node, Leaf):
                continue
            # A schedule that asks for it may have more code.
            most = UNROLLED_MAX if node.kind != "unroll" else 4 * UNROLLED_MAX
            if id(node) in carrying:
                if instances(self.tree, (node,), inside, self.vectors.lanes, most) > most:
                    return False
                continue
            rest = min(node.step, remaining(self.tree, inside, node.axis))
            if not self._short(node.body, {**inside, node.axis: rest}, carrying):
                return False
        return True

    def _homes(self, held: Held, inside: Inside) -> dict[str, dict[Place, Ref]] | None:
        """List the vectors to hold; None if they overlap, or something else is read."""
        lanes = self.vectors.lanes
        homes: dict[str, dict[Place, Ref]] = {}
        for walk in held.written:
            found = dict.fromkeys(walk.vectors(lanes, inside), walk.ref)
            homes.setdefault(walk.ref.buffer, {}).update(found)
        for walk in held.read:
            # A vector that is read but was not written as such, as one at another offset, has no register to
            # be in.
            known = homes[walk.ref.buffer].keys()
            if not known >= set(walk.vectors(lanes, inside)):
                return None
        if any(_overlap(places, held.stride.get(buffer, 1)) for buffer, places in homes.items()):
            return None
        return homes

    def _registers(self, held: Held, homes: Mapping[str, dict[Place, Ref]], budget: int) -> Allocation:
        """Give each vector its registers, and sums several, within a budget, so that they do not wait."""
        reduced = {buffer: places for buffer, places in homes.items() if buffer in held.reduce}
        others = {buffer: places for buffer, places in homes.items() if buffer not in held.reduce}
        copies = 1
        if budget:
            sums, rest = (sum(map(len, part.values())) for part in (reduced, others))
            # Eight in flight: a fused multiply-add takes some four cycles, and two begin in each.
            copies = max(1, min(4, -(-8 // sums), (budget - rest) // sums))
        registers: dict[str, dict[Place, list[int]]] = {}
        # From the last register down: the first ones are left for operands.
        number = self.vectors.registers
        for part, take in ((reduced, copies), (others, 1)):
            for buffer, places in part.items():
                first = number - 1
                number -= take * len(places)
                tops = range(first, number - 1, -take)
                registers[buffer] = {
                    p: [top] if take == 1 else list(range(top, top - take, -1))
                    for p, top in zip(places, tops, strict=True)
                }
        return Allocation(held, {**reduced, **others}, registers, copies, number)


def _overlap(places: Iterable[Place], stride: int) -> bool:
    """Whether vectors of a buffer share elements."""
    if stride > 1:
        elements = [offset + i * stride for offset, lanes in places for i in range(lanes)]
        return len(set(elements)) < len(elements)
    end = None
    for offset, lanes in sorted(places):
        if end is not None and end > offset:
            return True
        end = offset + lanes
    return False
