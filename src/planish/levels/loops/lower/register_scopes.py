"""Scopes of a loop tree: the loops that lead to its leaves, and what register allocation asks of them.

A scope's facts hold whatever remains of its axes. They say what is vectorized, what is repeated, and which
vectors that touches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from planish.levels.loops.ir.annotated import Inside, Vectors
from planish.levels.loops.ir.tree import Call, Leaf, Loop, LoopId, LoopTree, Node, Ref, Value, remaining
from planish.levels.loops.lang.program import IDENTITY, Const, lazy
from planish.levels.loops.lower.mathlib import EXPANDED

# Paths

Path = tuple[Loop, ...]


class Site:
    """A leaf of a tree: what is known of it, whatever remains of the axes.

    A scope around it is given by its depth: how many of the leaf's loops are outside.

    Args:
        path: all the loops that lead to it.
    """

    def __init__(self, tree: LoopTree, leaf: Leaf, path: Path) -> None:
        self._tree = tree
        self.leaf = leaf
        self.path = path
        # The loop that it is vectorized along: the innermost, if its iterations are independent.
        self.vector = path[-1] if path and path[-1].side_by_side else None
        # From this depth on every loop has an axis of its own whose extent depends on no other.
        self._plain = len(path)
        axes = [loop.axis for loop in path]
        while self._plain and not (
            axes[self._plain - 1] in tree.window or axes[self._plain - 1] in axes[self._plain :]
        ):
            self._plain -= 1
        self._moving: list[tuple[int, str, int, int]] = []

    def mark(self, moves: Mapping[int, bool], lanes: int) -> None:
        """Note which loops, by identity, something is written along; they are unrolled, the rest is not."""
        size = self._tree.size
        self._moving = [
            (depth, loop.axis, lanes if loop is self.vector else loop.step, size.get(loop.axis, 0))
            for depth, loop in enumerate(self.path)
            if moves[id(loop)]
        ]

    def copies(self, inside: Inside, depth: int, counted: Set[int] = frozenset()) -> int:
        """Count its repetitions in a scope where all loops along which something is written are unrolled.

        Args:
            inside: what remains around the scope.
            depth: how many of the leaf's loops are outside.
            counted: loops, by identity, that are not unrolled all the same.
        """
        count = 1
        moving = self._moving
        if counted:
            moving = [step for step in moving if id(self.path[step[0]]) not in counted]
        if depth >= self._plain:  # the counts multiply
            for at, axis, step, size in moving:
                if at >= depth:
                    count *= -(-inside.get(axis, size) // step)
            return count
        left = dict(inside)
        steps = {at: step for at, _, step, _ in moving}
        for at, loop in enumerate(self.path[depth:], depth):
            here = remaining(self._tree, left, loop.axis)
            if at in steps:
                count *= -(-here // steps[at])
            left[loop.axis] = min(loop.step, here)
        return count

    def begins_again(self, inside: Inside, depth: int) -> bool:
        """Return whether a scope writes an element of it several times: these are several results in turn."""
        stride = self.leaf.target.stride
        left = dict(inside)
        for loop in self.path[depth:]:
            here = remaining(self._tree, left, loop.axis)
            # More than one pass of a loop that does not move the target: the same element is written again.
            if here > loop.step and loop.id not in stride:
                return True
            left[loop.axis] = min(here, loop.step)
        return False


class Walk:
    """Path of a reference inside a scope.

    Args:
        path: the loops inside the scope that lead to it.
        vector: the loop of the path that is executed a vector at a time.
    """

    def __init__(self, tree: LoopTree, path: Path, ref: Ref, vector: Loop | None) -> None:
        self._tree = tree
        self._path = path
        self._vector = vector
        self.ref = ref
        self._moving = [(loop, ref.stride[loop.id]) for loop in path if loop.id in ref.stride]
        axes = [loop.axis for loop in path]
        self._single = all(
            axes.count(loop.axis) == 1 and loop.axis not in tree.window for loop, _ in self._moving
        )

    def vectors(self, lanes: int, inside: Inside) -> list[tuple[int, int]]:
        """List the vectors that it names, as (offset, lanes).

        Loops that do not move it are visited once, and once for their tail, which may be a shorter vector.
        """
        return self._of_single_loops(lanes, inside) if self._single else self._of_any(lanes, inside)

    def _of_single_loops(self, lanes: int, inside: Inside) -> list[tuple[int, int]]:
        """Every axis that moves the reference has one loop: the common case, made quick."""
        offsets, parts = [self.ref.offset], [(0, 1)]
        for loop, stride in self._moving:
            here = remaining(self._tree, inside, loop.axis)
            if loop is self._vector:
                parts = [(first * stride, min(lanes, here - first)) for first in range(0, here, lanes)]
            else:
                moves = range(0, -(-here // loop.step) * stride, stride)
                offsets = [offset + move for offset in offsets for move in moves]
        return [(offset + move, count) for offset in offsets for move, count in parts]

    def _of_any(self, lanes: int, inside: Inside) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        stack: list[tuple[int, int, Inside]] = [(0, self.ref.offset, inside)]
        while stack:
            depth, offset, left = stack.pop()
            if depth == len(self._path):
                found.append((offset, 1))
                continue
            loop = self._path[depth]
            stride = self.ref.stride.get(loop.id, 0)
            here = remaining(self._tree, left, loop.axis)
            if loop is self._vector:
                if stride == 0:
                    found.append((offset, 1))
                else:
                    ends = range(0, here, lanes)
                    found += [(offset + first * stride, min(lanes, here - first)) for first in ends]
                continue
            full, tail = divmod(here, loop.step)
            if stride == 0:
                full = min(full, 1)
            # A stack: the tail first and the iterations in reverse, so that they are visited in order.
            if tail:
                stack.append((depth + 1, offset + full * stride, {**left, loop.axis: tail}))
            inner = {**left, loop.axis: loop.step}
            stack.extend((depth + 1, offset + i * stride, inner) for i in reversed(range(full)))
        return found


def instances(
    tree: LoopTree, nodes: tuple[Node, ...], inside: Mapping[str, int], lanes: int, cap: int
) -> int:
    """Count the vector operations of nodes when all is unrolled; counting ends above the cap."""
    total = 0
    for node in nodes:
        if isinstance(node, Leaf):
            total += 1
        elif node.innermost:
            total += len(node.body) * -(-remaining(tree, inside, node.axis) // lanes)
        else:
            full, tail = divmod(remaining(tree, inside, node.axis), node.step)
            if full:
                total += full * instances(tree, node.body, {**inside, node.axis: node.step}, lanes, cap)
            if tail and total <= cap:
                total += instances(tree, node.body, {**inside, node.axis: tail}, lanes, cap)
        # The product of loops grows fast, and by how much it is too large does not matter.
        if total > cap:
            break
    return total


# Scopes

UNROLLED_MAX = 320
STREAM_MAX = 8


@dataclass(eq=False)
class Held:
    """Contents of the registers in a scope, if they fit.

    Args:
        local: buffers that live inside the scope only, so that memory is not written.
        counted: loops, by identity, along which memory alone is written.
        reduce: how the parts of a buffer's vectors are combined, for buffers that are reduced.
        lanewise: vectors that are summed lane by lane until the scope's end, as reduced buffers' scalars.
        fresh: buffers that the scope initializes, so that memory is not read.
        stride: elements between lanes of each held buffer.
        starts: the leaves that initialize; each must do so once only.
        written: how the targets go through their buffers.
        read: the same for what is read from registers.
        early: the reduced buffers that are read in the very node that reduces them, before it has ended.
    """

    local: set[str]
    counted: set[int] = field(default_factory=set[int])
    reduce: dict[str, str] = field(default_factory=dict[str, str])
    lanewise: set[str] = field(default_factory=set[str])
    fresh: set[str] = field(default_factory=set[str])
    stride: dict[str, int] = field(default_factory=dict[str, int])
    starts: list[Site] = field(default_factory=list[Site])
    written: list[Walk] = field(default_factory=list["Walk"])
    read: list[Walk] = field(default_factory=list["Walk"])
    early: set[str] = field(default_factory=set[str])


class Scope:
    """Some neighboring nodes.

    Args:
        sites: the leaves of the nodes, in order.
        depth: how many loops are around the nodes.
        uses: how many references of the tree name each buffer.
    """

    def __init__(
        self, tree: LoopTree, vectors: Vectors, sites: Sequence[Site], depth: int, uses: Mapping[str, int]
    ) -> None:
        self._tree = tree
        self._vectors = vectors
        self._uses = uses
        self.depth = depth
        self.sites = sites
        self.reducing = [site for site in sites if site.leaf.reduce]

    def too_large(self, inside: Inside) -> bool:
        """Return whether a single leaf already has too many vectors; a quick check."""
        if self.reducing:
            return self.copies(self.reducing[0], inside) > self._vectors.registers
        copies = self.sites[0].copies(inside, self.depth)
        return copies > UNROLLED_MAX or (copies > STREAM_MAX and not self.local)

    def copies(self, site: Site, inside: Inside) -> int:
        """Count the repetitions of a site in the code."""
        return site.copies(inside, self.depth, self.counted)

    @lazy
    def counted(self) -> set[int]:
        """The loops, by identity, along which memory alone is written, which need not be unrolled."""
        memory = {site.leaf.target.buffer for site in self.sites}
        memory -= {site.leaf.target.buffer for site in self.reducing}
        memory -= self.local if memory else set()
        return self._moving(memory) - self._moving(self.buffers) if memory and self.buffers else set()

    def _moving(self, buffers: Set[str]) -> set[int]:
        """Return the loops, by identity, along which some buffers are written."""
        found = [site for site in self.sites if site.leaf.target.buffer in buffers]
        return {id(loop) for s in found for loop in s.path if loop.id in s.leaf.target.stride}

    @lazy
    def budget(self) -> int:
        """Return how many vectors may be held, so that registers are left for operands."""
        needed = max([self._operands(site) for site in self.sites])
        # A compiler stores what an expression needs besides for a while, which costs less than results do.
        return max(1, self._vectors.registers - (min(needed, 4) if self._vectors.compiled else needed))

    @lazy
    def local(self) -> set[str]:
        """The buffers that nothing outside uses."""
        buffer = self._tree.buffer
        found = {site.leaf.target.buffer for site in self.sites}
        found = {name for name in found if buffer[name].kind == "temporary"}
        if not found:
            return found
        counts = Counter([ref.buffer for site in self.sites for ref in site.leaf.refs])
        return {name for name in found if counts[name] == self._uses[name]}

    @lazy
    def buffers(self) -> set[str]:
        """The buffers to be held in registers."""
        return {site.leaf.target.buffer for site in self.reducing} | self.local

    @lazy
    def carrying(self) -> list[Path]:
        """The loops that move what is read from registers, but nothing that is written.

        Of several inside one another, the outermost; each is the last of a path from the scope's beginning.
        """
        buffers = self.buffers
        reads = [(s, ref) for s in self.sites for ref in s.leaf.refs[1:] if ref.buffer in buffers]
        if not reads:
            return []
        carrying = {id(loop) for s, ref in reads for loop in s.path[self.depth :] if loop.id in ref.stride}
        carrying -= self._moving(buffers)
        found: dict[int, Path] = {}
        for site in self.sites if carrying else ():
            for at, loop in enumerate(site.path[self.depth :], self.depth + 1):
                if id(loop) in carrying:
                    found[id(loop)] = site.path[self.depth : at]
                    break
        return list(found.values())

    @lazy
    def reread(self) -> set[str]:
        """The buffers in memory that are read again, but for elements that the same iteration has written.

        Where no compiler keeps the order of loads and stores, such a load might come too early.
        """
        if self._vectors.compiled:
            return set()
        writers: dict[str, list[int]] = {}
        for number, site in enumerate(self.sites):
            if site.leaf.target.buffer not in self.buffers:
                writers.setdefault(site.leaf.target.buffer, []).append(number)
        return {
            ref.buffer
            for number, site in enumerate(self.sites)
            for ref in site.leaf.refs[1:]
            if ref.buffer in writers and not self._passes_on(writers[ref.buffer], number, ref)
        }

    def _passes_on(self, writers: Sequence[int], reader: int, ref: Ref) -> bool:
        """Return whether what a leaf reads was written just before, in the same iteration of all loops."""
        (first, *others), site = writers, self.sites[reader]
        writer = self.sites[first]
        return not others and first < reader and writer.path == site.path and writer.leaf.target == ref

    @lazy
    def held(self) -> Held | None:
        """Plan what is held; None if the leaves do not agree on it."""
        held = Held(self.local, self.counted)
        if self.reread:
            return None
        if not self.buffers:
            return held
        # Here and below lists stand for generators, which take longer: this runs for each candidate.
        if not self._same_addresses() or False in [self._add_target(held, site) for site in self.sites]:
            return None
        if False in [self._add_reads(held, site) for site in self.sites]:
            return None
        if not all(self._is_summed_once(buffer) for buffer in held.lanewise):
            return None
        # What is read in a node that reduces it.
        inner = [(site.leaf, id(site.path[self.depth])) for site in self.sites if len(site.path) > self.depth]
        tops = {(leaf.target.buffer, node) for leaf, node in inner if leaf.reduce}
        held.early = {r.buffer for leaf, node in inner for r in leaf.refs[1:] if (r.buffer, node) in tops}
        held.early &= held.reduce.keys()
        held.written = self._written()
        # A sum that is still in lanes cannot be read yet.
        return None if held.early & held.lanewise else held

    def _vector(self, site: Site) -> Loop | None:
        """Return the loop of the scope that a leaf is vectorized along."""
        return site.vector if len(site.path) > self.depth else None

    def _operands(self, site: Site) -> int:
        """Vector registers that a leaf needs besides those that hold results."""
        leaf, vector = site.leaf, self._vector(site)
        strided = vector is not None and True in [r.stride.get(vector.id, 0) > 1 for r in leaf.refs]
        spare = strided + (not self._vectors.masks)
        # A product that is added is one instruction, of two operands.
        if leaf.reduce == "add" and _is_multiply(leaf.value):
            return 2 + spare
        base = 3 if self._vectors.masks else 5
        return base + _depth(leaf.value) + spare + (6 if _expanded(leaf.value) else 0)

    def _same_addresses(self) -> bool:
        """Return whether outer loops move all uses of a held buffer alike."""
        outer: dict[str, tuple[tuple[LoopId, int], ...]] = {}
        for site in self.sites:
            inner = {loop.id for loop in site.path[self.depth :]}
            for ref in site.leaf.refs:
                if ref.buffer in self.buffers:
                    outside = tuple([item for item in ref.strides if item[0] not in inner])
                    if outer.setdefault(ref.buffer, outside) != outside:
                        return False
        return True

    def _add_target(self, held: Held, site: Site) -> bool:
        leaf, vector = site.leaf, self._vector(site)
        buffer = leaf.target.buffer
        if buffer not in self.buffers:
            return True
        stride = leaf.target.stride.get(vector.id, 0) if vector else 0
        if leaf.reduce:
            if held.reduce.setdefault(buffer, leaf.reduce) != leaf.reduce:
                return False
            if vector is not None and stride == 0:
                held.lanewise.add(buffer)
        elif isinstance(leaf.value, Const):
            held.starts.append(site)
            held.fresh.add(buffer)
        elif buffer not in held.local:
            return False
        return not stride or held.stride.setdefault(buffer, stride) == stride

    def _add_reads(self, held: Held, site: Site) -> bool:
        leaf, vector = site.leaf, self._vector(site)
        target = leaf.target.buffer
        if isinstance(leaf.value, Const) and target in held.reduce:
            # Each part of a sum begins with the first value: only the identity may be counted several times.
            if leaf.value.value != IDENTITY[held.reduce[target]]:
                return False
        elif not leaf.reduce and target in held.reduce:
            return False
        for ref in leaf.refs[1:]:
            if ref.buffer not in self.buffers:
                continue
            stride = ref.stride.get(vector.id, 0) if vector else 0
            if stride and ref.buffer in held.lanewise:
                return False
            if stride != held.stride.get(ref.buffer, 0) and (stride or ref.buffer in held.stride):
                return False
            held.read.append(Walk(self._tree, site.path[self.depth :], ref, vector))
        return True

    def _written(self) -> list[Walk]:
        """List the targets that are held; one that a leaf before has named in the same loops is left out."""
        found: list[Walk] = []
        listed: list[tuple[Ref, list[LoopId], LoopId | None]] = []
        for site in self.sites:
            target, vector = site.leaf.target, self._vector(site)
            if target.buffer not in self.buffers:
                continue
            path = site.path[self.depth :]
            moving = [loop.id for loop in path if loop.id in target.stride]
            still = {loop.axis for loop in path if loop.id not in target.stride}
            names = target, moving, vector and vector.id
            if names not in listed:
                found.append(Walk(self._tree, path, target, vector))
            if still.isdisjoint([axis for axis, _ in moving]):
                listed.append(names)
        return found

    def _is_summed_once(self, buffer: str) -> bool:
        """Return whether one node alone reduces a buffer: the lanes are summed at its end."""
        reducing = [site for site in self.reducing if site.leaf.target.buffer == buffer]
        return len({id((*site.path, site.leaf)[self.depth]) for site in reducing}) == 1


def _is_multiply(value: Value) -> bool:
    return isinstance(value, Call) and value.function == "mul" and all(isinstance(a, Ref) for a in value.args)


def _depth(value: Value) -> int:
    """Count the registers that an expression takes at most; a choice keeps four values."""
    if not isinstance(value, Call):
        return 0
    return max(1, len(value.args) - 1) + max(map(_depth, value.args))


def _expanded(value: Value) -> bool:
    return isinstance(value, Call) and (value.function in EXPANDED or any(map(_expanded, value.args)))
