"""Register allocation: annotation of loop trees for all code generators.

LoopNest holds the output of the largest scope that fits the register file (thesis 3.4.2, "no spilling of the
result tensor"), unrolls what writes along it, and counts the rest. A scope is accepted here when all elements
that its reductions write, and all elements that pass between its leaves, have a register each, and the
processor keeps enough others for the operands. Around such regions are loops over memory.

Where a compiler allocates the processor's registers, and keeps the order of loads and stores, loops along
which memory alone is written need not be unrolled, and a scope may read again what it stores.

Results are stored past the caches where they are large and nothing reads them again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import combinations, pairwise
from typing import NamedTuple

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
    Vectors,
    entry_groups,
    is_start,
    memory_space_of,
)
from planish.levels.loops.ir.tree import Leaf, Loop, LoopTree, Node, Ref, leaves, loops, remaining
from planish.levels.loops.lang.program import DTYPES, Const
from planish.levels.loops.lower.register_scopes import (
    STREAM_MAX,
    UNROLLED_MAX,
    Held,
    Path,
    Scope,
    Site,
    instances,
)

# Allocation

NONTEMPORAL_FROM = 1 << 26
"""Bytes of a result from which on no usual cache would keep it for its reader."""
LINE = 64
"""Bytes of a cache line."""


class Allocation(NamedTuple):
    """The registers of a scope; see `planish.levels.loops.ir.annotated.Region`."""

    held: Held
    homes: dict[str, dict[Slot, Ref]]
    registers: dict[str, dict[Slot, list[int]]]
    copies: int
    free: int


class Analyzer:
    """Decides about scopes of one tree.

    Args:
        spare: registers that are left free beyond what operands are known to need.
    """

    def __init__(self, tree: LoopTree, vectors: Vectors, spare: int = 0) -> None:
        self.tree = tree
        self.vectors = vectors
        self.spare = spare
        # By identity, for comparing nodes means comparing all below them; kept with them, so that no id is
        # reused.
        self._below: dict[int, tuple[Node, int, list[Site]]] = {}
        self._moves: dict[int, bool] = {}
        self._unrolls: dict[int, bool] = {}
        self._scopes: dict[tuple[int, ...], Scope] = {}
        self._uses = Counter([ref.buffer for leaf in leaves((*tree.body, *tree.ahead)) for ref in leaf.refs])

    def moves_target(self, loop: Loop) -> bool:
        """Return whether some leaf below writes along the loop; if not, the loop only reduces."""
        return self._moves[id(loop)]

    def buffers_from(self, size: int) -> dict[str, int]:
        """Return the buffers of at least this number of bytes, with the bytes of their elements."""
        pairs = [(b, DTYPES[b.dtype]) for b in self.tree.buffers]
        return {b.name: itemsize for b, itemsize in pairs if b.size * itemsize >= size}

    def nontemporal_stores(self, least: int) -> frozenset[str]:
        """Return the names of the outputs of at least this number of bytes, whose stores go past the caches.

        An ordinary store first reads the line that it writes to: of what `A + B` moves, that is a quarter.
        Stores past the caches need whole vectors at multiples of their size, and pay where a line is filled
        at once, by the only leaf that names the output.
        """
        large = self.buffers_from(least)
        outputs = {b.name for b in self.tree.buffers if b.kind == "output" and b.name in large}
        found: set[str] = set()
        for site in (
            [site for node in self.tree.body for site in self._scope((node,)).sites] if outputs else ()
        ):
            name = site.leaf.target.buffer
            alone = name in outputs and self._uses[name] == 1
            if alone and _fills_lines(site, large[name], self.vectors.lanes):
                found.add(name)
        return frozenset(found)

    def unrolls(self, node: Node) -> bool:
        """Return whether no loop of the node only reduces."""
        return self._unrolls[id(node)]

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
        # Whether the leaves agree is the same for all that remains: it is asked before what depends on it.
        held = None if scope.too_large(inside) else scope.held
        if held is None or not self._fits(scope, nodes, inside):
            return None
        # A register holds one result: what begins again in the scope would need it stored in between.
        if any(site.begins_again(inside, scope.depth) for site in held.starts):
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
        # A compiler has instructions of the next region between those that wait.
        waits = few and not held.early and (held.lanewise or not self.vectors.compiled)
        crowd = waits and instances(self.tree, nodes, inside, self.vectors.lanes, UNROLLED_MAX) > 2 * number
        return self._registers(held, homes, budget if crowd else 0)

    def _scope(self, nodes: tuple[Node, ...]) -> Scope:
        # By identity, as above: scopes are asked about again with other remaining axes.
        key = tuple(map(id, nodes))
        known = self._scopes.get(key)
        if known is None:
            for node in nodes:
                if id(node) not in self._below:
                    for site in self._sites(node, ()):
                        site.mark(self._moves, self.vectors.lanes)
            depth = self._below[key[0]][1]
            sites = [site for node in key for site in self._below[node][2]]
            known = self._scopes[key] = Scope(self.tree, self.vectors, sites, depth, self._uses)
        return known

    def _sites(self, node: Node, path: Path) -> list[Site]:
        """Note what is below a node that has not been seen."""
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
        """Return whether what must be unrolled is short, and the reductions' results are few enough."""
        if False in [self._short(path, inside) for path in scope.carrying]:
            return False
        if not scope.buffers:
            return instances(self.tree, nodes, inside, self.vectors.lanes, STREAM_MAX) <= STREAM_MAX
        for site in scope.sites:
            if scope.copies(site, inside) > (scope.budget if site.leaf.reduce else UNROLLED_MAX):
                return False
        return True

    def _short(self, path: Path, inside: Inside) -> bool:
        """Return whether the last loop of a path, which reads from registers along it, may be unrolled."""
        *around, loop = path
        for outer in around:
            inside = {**inside, outer.axis: min(outer.step, remaining(self.tree, inside, outer.axis))}
        # A schedule that asks for it may have more code.
        most = UNROLLED_MAX if loop.kind != "unroll" else 4 * UNROLLED_MAX
        return instances(self.tree, (loop,), inside, self.vectors.lanes, most) <= most

    def _homes(self, held: Held, inside: Inside) -> dict[str, dict[Slot, Ref]] | None:
        """List the vectors to hold; None if they overlap, or something else is read."""
        lanes = self.vectors.lanes
        homes: dict[str, dict[Slot, Ref]] = {}
        for walk in held.written:
            found = dict.fromkeys(walk.vectors(lanes, inside), walk.ref)
            homes.setdefault(walk.ref.buffer, {}).update(found)
        for walk in held.read:
            # A vector that is read but was not written as such, as one at another offset, has no register to
            # be in.
            known = homes[walk.ref.buffer].keys()
            if not known >= set(walk.vectors(lanes, inside)):
                return None
        if any(_overlap(slots, held.stride.get(buffer, 1)) for buffer, slots in homes.items()):
            return None
        return homes

    def _registers(self, held: Held, homes: Mapping[str, dict[Slot, Ref]], budget: int) -> Allocation:
        """Allocate registers to vectors within a budget, and several to a sum, so that it does not wait."""
        reduced = {buffer: slots for buffer, slots in homes.items() if buffer in held.reduce}
        others = {buffer: slots for buffer, slots in homes.items() if buffer not in held.reduce}
        copies = 1
        if budget:
            sums, rest = (sum(map(len, part.values())) for part in (reduced, others))
            # Eight in flight: a fused multiply-add takes some four cycles, and two begin in each.
            copies = max(1, min(4, -(-8 // sums), (budget - rest) // sums))
        registers: dict[str, dict[Slot, list[int]]] = {}
        # From the last register down: the first ones are left for operands.
        number = self.vectors.registers
        for part, take in ((reduced, copies), (others, 1)):
            for buffer, slots in part.items():
                first = number - 1
                number -= take * len(slots)
                tops = range(first, number - 1, -take)
                registers[buffer] = {
                    p: [top] if take == 1 else list(range(top, top - take, -1))
                    for p, top in zip(slots, tops, strict=True)
                }
        return Allocation(held, {**reduced, **others}, registers, copies, number)


def _begins(start: Node, node: Node) -> bool:
    """Return whether a node sets just what the next one reduces into to its first value."""
    first, rest = leaves((start,)), leaves((node,))
    begun = {leaf.target.buffer for leaf in first if isinstance(leaf.value, Const) and not leaf.reduce}
    return len(begun) == len(first) and begun == {leaf.target.buffer for leaf in rest if leaf.reduce}


def _separate(loop: Loop, extent: int) -> tuple[Loop, ...]:
    """Divide a loop whose leaves write parts of one tensor each, as of a concatenation; () where it is none.

    Args:
        loop: whose leaves may write the same elements in different iterations: then their order counts.
        extent: its elements.
    """
    found = loop.leaves
    written = {leaf.target.buffer for leaf in found}
    read = {ref.buffer for leaf in found for ref in leaf.refs[1:]}
    if not loop.innermost or len(written) == len(found) or written & read:
        return ()
    parts = tuple([Loop(loop.axis, loop.step, (leaf,), loop.kind) for leaf in found])
    alone = all(part.side_by_side and not leaf.reduce for part, leaf in zip(parts, found, strict=True))
    targets = [leaf.target for leaf in found]
    apart = all(_apart(one, other, loop, extent) for one, other in combinations(targets, 2))
    return parts if alone and apart else ()


def _apart(one: Ref, other: Ref, loop: Loop, extent: int) -> bool:
    """Return whether a loop over a number of elements writes none by both references."""
    if one.buffer != other.buffer:
        return True
    span = abs(one.stride.get(loop.id, 0)) * -(-extent // loop.step)
    return one.strides == other.strides and abs(one.offset - other.offset) >= max(1, span)


def _overlap(slots: Iterable[Slot], stride: int) -> bool:
    """Return whether vectors of a buffer share elements."""
    if stride > 1:
        elements = [offset + i * stride for offset, lanes in slots for i in range(lanes)]
        return len(set(elements)) < len(elements)
    return True in [first + lanes > second for (first, lanes), (second, _) in pairwise(sorted(slots))]


def _fills_lines(site: Site, itemsize: int, lanes: int) -> bool:
    """Return whether the innermost loop walks the target in sequence, from whole vectors to whole vectors."""
    target, path = site.leaf.target, site.path
    if site.leaf.reduce or not path or target.stride.get(path[-1].id) != 1 or target.offset:
        return False
    # The loops around a vector loop of the same axis move by whole lines, which are written at once.
    units = [LINE if loop.axis == path[-1].axis else lanes * itemsize for loop in path[:-1]]
    moves = [target.stride.get(loop.id, 0) * itemsize for loop in path[:-1]]
    return not any(move % unit for move, unit in zip(moves, units, strict=True))


# Loops

LOOP_WORK = 32
"""A loop that only reduces, around less work than this many operations, is unrolled in part, up to it."""
UNROLL_WORK = 64
"""Such a loop is unrolled altogether if that gives no more operations than this."""
SMALL = 16
"""Operations in the body of a loop over memory, as a compiler writes it."""

FETCHED_FROM = 1 << 15
"""A buffer of fewer bytes stays in the first cache: its lines are not asked for."""
LINES_MAX = 8
"""Lines beyond which an iteration does not walk memory in sequence."""

Pass = tuple[str, int, tuple[Ref, ...]]
"""Kind, copies, and the references that are fetched; see `planish.levels.loops.ir.annotated.Part`."""


def _annotated_loop(
    loop: Loop,
    here: int,
    unit: int,
    body: Callable[[int], Item],
    how: Callable[[int, Item], Pass],
    lanes: int = 1,
) -> AnnotatedLoop:
    """Cut a loop into full passes, executed alike, and what is left.

    Args:
        here: elements of its axis.
        unit: of them in a full pass: those of one iteration, or of several.
        body: annotates a pass over a number of elements.
        how: plans full passes, given how many there are, and one.
        lanes: of the vector that a pass is.
    """
    full, tail = divmod(here, unit)
    width = 1 if unit == loop.step else unit
    parts: list[Part] = []
    if full:
        item = body(unit)
        kind, copies, fetched = how(full, item)
        parts.append(Part(kind, 0, full, width, item, lanes, copies, fetched))
    if tail:
        parts.append(Part("unrolled", full * width, 1, min(width, tail), body(tail), lanes))
    return AnnotatedLoop(loop, tuple(parts))


def _moves_held(loop: Loop, held: Allocation) -> bool:
    """Return whether iterations name different held vectors: a register's number is written into the code.

    The analyzer has seen to it that such a loop is short enough to be unrolled.
    """
    for leaf in loop.leaves:
        for ref in leaf.refs:
            if ref.buffer in held.registers and loop.id in ref.stride:
                return True
    return False


def walked(loop: Loop, times: int, buffers: Mapping[str, int]) -> tuple[Ref, ...]:
    """List the references to some buffers that a loop walks in sequence.

    Args:
        times: its iterations in one of the machine's.
        buffers: those that count, with the bytes of their elements.
    """
    refs = [ref for leaf in loop.leaves for ref in leaf.refs if ref.buffer in buffers]
    far = [ref.stride.get(loop.id, 0) * times * buffers[ref.buffer] for ref in refs]
    # Less than a line a pass, and most requests would be for a line that was asked for already.
    return tuple([ref for ref, move in zip(refs, far, strict=True) if LINE <= move <= LINES_MAX * LINE])


# Annotation

FLOWS_FROM = 1 << 22
"""A buffer of fewer bytes, which is passed through once, is not asked for ahead of time."""


def annotate(
    tree: LoopTree, vectors: Vectors, spare: int = 0, nontemporal_from: int = NONTEMPORAL_FROM
) -> AnnotatedTree:
    """Decide how a tree is executed.

    Args:
        tree: what is executed.
        vectors: of the machine.
        spare: registers that are left free beyond what operands are known to need.
        nontemporal_from: bytes of a result from which on it may be stored past the caches.
    """
    annotator = _Annotator(tree, vectors, spare)
    body = [annotator.function(nodes) for nodes in entry_groups(tree.body[tree.views :])]
    if tree.views:
        body.insert(0, _views(annotator))
    ahead = [annotator.function(nodes) for nodes in entry_groups(tree.ahead)]
    spaces = memory_space_of(tree, (*body, *ahead))
    past = annotator.analyzer.nontemporal_stores(nontemporal_from)
    return AnnotatedTree(tree, vectors, tuple(body), tuple(ahead), spaces, past)


_known_views: dict[Hashable, Function] = {}
_VIEWS_MAX = 1000


def _views(annotator: _Annotator) -> Function:
    """Annotate the copies of padded inputs, once for all schedules of a program."""
    tree = annotator.tree
    nodes = tree.body[: tree.views]
    sizes = tuple([tree.size[loop.axis] for loop in loops(nodes)])
    used = tuple([tree.buffer[ref.buffer] for leaf in leaves(nodes) for ref in leaf.refs])
    key = nodes, sizes, used, annotator.vectors
    known = _known_views.get(key)
    if known is None:
        if len(_known_views) >= _VIEWS_MAX:
            _known_views.clear()
        known = _known_views[key] = annotator.function(nodes)
    return known


class _Annotator:
    def __init__(self, tree: LoopTree, vectors: Vectors, spare: int) -> None:
        self.tree = tree
        self.vectors = vectors
        self.analyzer = Analyzer(tree, vectors, spare)
        self._large = self.analyzer.buffers_from(FETCHED_FROM)
        self._flowing = self.analyzer.buffers_from(FLOWS_FROM)

    def function(self, nodes: tuple[Node, ...]) -> Function:
        """Annotate some root nodes."""
        node = nodes[0]
        # Threads start at a function's beginning and meet at its end, so a parallel loop is a function of its
        # own.
        if isinstance(node, Loop) and node.concurrent and len(nodes) == 1:
            return Function(nodes, self._outer(node, node.body, {}, node.step, "parallel"), "parallel")
        return Function(nodes, self._nodes(nodes, {}))

    # Around regions

    def _nodes(self, nodes: tuple[Node, ...], inside: Inside) -> Item:
        allocation = self.analyzer.allocate(nodes, inside)
        if allocation is not None:
            return self._region(nodes, inside, allocation)
        if len(nodes) == 1 and isinstance(nodes[0], Loop):
            return self._loop(nodes[0], inside)
        return Block(nodes, tuple(self._groups(nodes, inside)))

    def _groups(self, nodes: tuple[Node, ...], inside: Inside) -> Iterator[Item]:
        """Annotate nodes that fit no region together: each by itself, but a reduction with its start."""
        start: Node | None = None
        for node in nodes:
            if start is not None:
                pair = (start, node)
                # Of two nodes, this is the scope that was refused already.
                together = len(nodes) > 2 and _begins(*pair)
                allocation = self.analyzer.allocate(pair, inside) if together else None
                if allocation is not None:
                    yield self._region(pair, inside, allocation)
                    start = None
                    continue
                yield self._nodes((start,), inside)
            start = node
        if start is not None:
            yield self._nodes((start,), inside)

    def _loop(self, loop: Loop, inside: Inside) -> Item:
        if not loop.side_by_side:
            if parts := _separate(loop, remaining(self.tree, inside, loop.axis)):
                return Block(parts, tuple([self._nodes((part,), inside) for part in parts]))
            return self._outer(loop, loop.body, inside, loop.step)
        lanes, here = self.vectors.lanes, remaining(self.tree, inside, loop.axis)
        # Longer strips first: fewer passes, and more sums side by side.
        for elements in (8 * lanes, 4 * lanes, 2 * lanes, lanes):
            strip = {**inside, loop.axis: elements}
            # Shorter than what is there: a strip as long as the loop was refused as a whole already.
            allocation = elements < here and self.analyzer.allocate((loop,), strip)
            if allocation:
                region = self._region((loop,), strip, allocation)
                return self._outer(loop, (loop,), inside, elements, full=region)
        if len(loop.body) == 1:
            return self._outer(loop, loop.body, inside, 1, fetches=False)
        # Where one leaf reads what another writes, a vector's worth of each in turn.
        apart = tuple(Loop(loop.axis, loop.step, (leaf,)) for leaf in loop.body)
        return self._outer(loop, apart, inside, lanes, fetches=False)

    def _outer(
        self,
        loop: Loop,
        body: tuple[Node, ...],
        inside: Inside,
        unit: int,
        kind: str = "counted",
        *,
        full: Region | None = None,
        fetches: bool = True,
    ) -> AnnotatedLoop:
        """Annotate a loop over memory, a pass of whose body takes `unit` elements of its axis.

        Args:
            body: what a pass executes.
            inside: what remains around the loop.
            unit: elements.
            kind: of full passes.
            full: how one is executed, if that is known.
            fetches: whether it may ask ahead of time for large buffers that its passes only pass through.
        """

        def pass_of(rest: int) -> Item:
            return full if full and rest == unit else self._nodes(body, {**inside, loop.axis: rest})

        def how(passes: int, item: Item) -> Pass:
            if kind != "counted" or not isinstance(item, Region):
                return kind, 1, ()
            copies, width = 1, 1 if unit == loop.step else unit
            if self.vectors.compiled:
                within = {**inside, loop.axis: unit}
                copies = max(1, SMALL // instances(self.tree, body, within, self.vectors.lanes, SMALL))
            passes_on = fetches and self._flowing and not item.registers
            return kind, min(passes, copies), walked(loop, width, self._flowing) if passes_on else ()

        here = remaining(self.tree, inside, loop.axis)
        return _annotated_loop(loop, here, unit, pass_of, how)

    # Regions

    def _is_short(self, node: Loop, inside: Inside, held: Held) -> bool:
        """Return whether a nest along all of whose loops something is written is unrolled."""
        repeats = held.counted and any(id(loop) in held.counted for loop in loops((node,)))
        if not self.vectors.compiled and not repeats:
            return True
        return instances(self.tree, (node,), inside, self.vectors.lanes, UNROLL_WORK) <= UNROLL_WORK

    def _unrolled_work(self, held: Allocation) -> tuple[int, int]:
        """Return up to how many operations a loop that only reduces is unrolled, altogether and in part."""
        if not self.vectors.compiled:
            return UNROLL_WORK, LOOP_WORK
        # Of what neighboring iterations load, a compiler keeps what is equal: in registers that results need,
        # where these have most of them.
        return (2 * UNROLL_WORK, LOOP_WORK) if 2 * held.free >= self.vectors.registers else (0, 0)

    def _region(self, nodes: tuple[Node, ...], inside: Inside, allocation: Allocation) -> Region:
        held, homes, registers, copies, free = allocation
        items: list[Item] = []
        made: list[set[str]] = []
        combines = copies > 1 or held.lanewise
        for node in nodes:
            found = self.analyzer.leaves(node)
            if False in [is_start(leaf, held.fresh, held.reduce) for leaf in found]:
                items.append(self._inside(node, inside, None, allocation))
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
            [loop for loop in loops(nodes) if self.analyzer.moves_target(loop)],
        )

    def _inside(self, node: Node, inside: Inside, vector: Loop | None, held: Allocation) -> Item:
        if isinstance(node, Leaf) or (
            self.analyzer.unrolls(node) and self._is_short(node, inside, held.held)
        ):
            return Unrolled(node, inside, vector)
        # One that is reduced a vector at a time, or in turn.
        inner = node if node.side_by_side else None
        unit = self.vectors.lanes if inner else node.step

        def body(rest: int) -> Item:
            within = {**inside, node.axis: rest}
            items = [self._inside(below, within, inner, held) for below in node.body]
            return items[0] if len(items) == 1 else Block(node.body, tuple(items))

        def how(full: int, _item: Item) -> Pass:
            in_registers = not self.vectors.compiled and id(node) not in held.held.counted
            if inner is None and in_registers and self.analyzer.moves_target(node):
                return "unrolled", full, ()
            work = len(node.body)
            if inner is None:
                within = {**inside, node.axis: unit}
                work = instances(self.tree, node.body, within, self.vectors.lanes, UNROLLED_MAX)
            # A short one is unrolled; a schedule that asks for it may have more code, as in the analyzer.
            whole, part = self._unrolled_work(held)
            most = 4 * UNROLLED_MAX if node.kind == "unroll" else whole
            if full * work <= most or _moves_held(node, held):
                return "unrolled", full, ()
            # Others run several iterations at a time, as many as a sum has registers at least: passes take
            # these alternately.
            copies = min(full, max(held.copies, part // work)) if work < LOOP_WORK else 1
            return "counted", copies, walked(node, copies * (unit if inner else 1), self._large)

        here = remaining(self.tree, inside, node.axis)
        return _annotated_loop(node, here, unit, body, how, self.vectors.lanes if inner else 1)
