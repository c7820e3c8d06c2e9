"""Facts of a nest and a target, which the template space needs before any schedule, and cost estimates.

A rough count of the cycles that the main nest takes with each register tile only ranks, and says what to try
first. It is for a core that does two vector operations and two loads a cycle. It knows of what decides
between register tiles: unused lanes, loads for each operation, results taken to memory one by one, and
tensors that must be copied because the vector axis does not walk them in sequence. Of memory it knows
operands that are scattered over pages, streamed once, or evict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import gcd, inf, prod

from planish.core import Machine, Target
from planish.levels.loops.ir.schedule import Graph, Nest, Order, graph_of
from planish.levels.loops.lang.program import DTYPES, Access, Program

OTHER_REGISTERS = 4
"""Vector registers that hold operands; results may have the others."""
WIDE, NARROW = Machine(64, 32), Machine(32, 16)  # AVX-512 and AVX2
"""Facts of a target of which nothing is known but its features."""


def machine_of(target: Target) -> Machine:
    """Return the vector registers of a target's processor; of a stored one, as far as its features say."""
    wide = any("avx512" in feature for feature in target.features)
    return target.machine or (WIDE if wide else NARROW)


@dataclass(frozen=True)
class Moves:
    """Strides of a tensor of a nest by its axes.

    Args:
        tensor: its name.
        strides: axis to elements of memory for each of its steps; without axes that do not move it.
        alone: the axes that subscript a dimension alone, so that a packed tile has them in sequence.
        elements: how many elements the nest touches.
        single: whether the nest reads or writes it in one way, so that it can be packed.
        padded: whether it is read beyond its edges, from a copy with these if it is not packed.
    """

    tensor: str
    strides: Mapping[str, int]
    alone: frozenset[str]
    elements: int
    single: bool
    padded: bool


@dataclass(frozen=True)
class Facts:
    """A nest, its tensors and the target's processor.

    Args:
        program: what is scheduled.
        machine: the processor.
        cores: how many may be used.
        other: number of the nest, where it is not the main one.
        around: loops around what is looked at; its axes are as long as one iteration of these.
    """

    program: Program
    machine: Machine
    cores: int
    other: int | None = None
    around: Order = ()

    @staticmethod
    def of(program: Program, target: Target) -> Facts:
        """Collect the facts."""
        return Facts(program, machine_of(target), target.cores)

    @property
    def vector_bytes(self) -> int:
        """Of a vector register."""
        return self.machine.vector_bytes

    @cached_property
    def graph(self) -> Graph:
        """The program's."""
        return graph_of(self.program)

    @property
    def number(self) -> int:
        """The nest's, in the graph."""
        return self.graph.main if self.other is None else self.other

    @property
    def nest_name(self) -> str:
        """The nest's, as steps name it: empty for the main one."""
        return "" if self.other is None else self.nest.name

    @cached_property
    def nest(self) -> Nest:
        """Return the nest that is looked at."""
        return self.graph.nests[self.number]

    @cached_property
    def size(self) -> Mapping[str, int]:
        """Axis to extent, of the nest's axes that the loops around leave."""
        steps = dict(self.around)  # the innermost loop of an axis comes last
        extents = {axis: steps.get(axis, self.program.size[axis]) for axis in self.nest.axes}
        return {axis: extent for axis, extent in extents.items() if steps.get(axis) != 1}

    @cached_property
    def reduced(self) -> frozenset[str]:
        """The axes that the target lacks: unlike its own, they leave a result where it is."""
        return self.nest.reduced.difference(self.nest.statement.output_axes)

    @cached_property
    def parallel_axes(self) -> tuple[str, ...]:
        """The axes that are not reduced."""
        return tuple(axis for axis in self.size if axis not in self.reduced)

    @cached_property
    def reduced_axes(self) -> tuple[str, ...]:
        """The others, in program order."""
        return tuple(axis for axis in self.size if axis in self.reduced)

    def apart(self, axes: Iterable[str]) -> bool:
        """Return whether each axis is the longest of those that it may meet: these do not meet one another.

        A tile over a short one, as over a window, meets the next tile at once, and what was just stored is
        not ready to be loaded in another vector.
        """
        size = self.program.size
        return all(
            axis == max(sorted(self.beside(axis)), key=lambda n: size[n], default=axis) for axis in axes
        )

    def beside(self, axis: str) -> frozenset[str]:
        """Return the axes whose iterations may write what those of an axis write, with the axis itself."""
        target = self.nest.statement.target
        spread = [frozenset(a for a, _ in target.index[d].terms) for d in self.nest.scattered]
        return next((axes for axes in spread if axis in axes), frozenset())

    def fits(self, axis: str, step: int) -> bool:
        """Return whether an axis can be split so: the steps of its loops divide one another."""
        return 1 < step < self.size[axis] and not (dict(self.around).get(axis, step) % step)

    @cached_property
    def lanes(self) -> int:
        """Elements of a vector register."""
        return self.machine.lanes(DTYPES[self.program.arithmetic])

    def permutes(self, tensor: str) -> bool:
        """Return whether lanes of two registers make one, of a tensor that is computed with as it lies."""
        return self.vector_bytes == 64 and self.program.type[tensor].dtype == self.program.arithmetic

    @cached_property
    def registers(self) -> int:
        """Vector registers that can hold results."""
        return self.machine.vector_registers - OTHER_REGISTERS

    @cached_property
    def output(self) -> Moves:
        """The tensor that the nest writes."""
        return self._moves(self.nest.statement.target)

    @cached_property
    def operands(self) -> tuple[Moves, ...]:
        """Return the accesses that the nest reads, each distinct one once."""
        return tuple(self._moves(operand.access) for operand in self.nest.operands)

    def _moves(self, access: Access) -> Moves:
        type_ = self.program.type[access.tensor]
        strides: dict[str, int] = {}
        for index, stride in zip(access.index, type_.strides(), strict=True):
            for axis, coefficient in index.terms:
                if axis in self.size:
                    strides[axis] = strides.get(axis, 0) + coefficient * stride
        pairs = [[axis for axis, _ in index.terms if axis in self.size] for index in access.index]
        used = [axis for axes in pairs for axis in axes]
        # An axis of two dimensions walks a diagonal, which no packed tile has in sequence.
        alone = frozenset(axes[0] for axes in pairs if len(axes) == 1 and used.count(axes[0]) == 1)
        ways = sum(operand.access.tensor == access.tensor for operand in self.nest.operands)
        # Windows that overlap, as y + ky, touch an element more than once.
        elements = min(type_.size, prod(self.size[axis] for axis in strides))
        is_index = access.tensor in self.program.integer_indices
        gathers = is_index or access in self.nest.tables
        single = ways <= 1 and not gathers
        return Moves(access.tensor, strides, alone, elements, single, access.pad is not None)


# Memory

PAGE = 4096
"""Bytes of a page; lines as far apart as that share a set of the first cache, too."""
PAGES_NEAR = 96
"""Pages whose addresses the processor has at hand, in its first-level TLB."""
WAYS = 10
"""Lines of one set that stay in the first-level cache beside what flows through it."""
SHARE = 1 / 6
"""The share of the second-level cache that a panel, or a tensor that is read for each panel, may take."""
REUSES = 192
"""An operand that is used less often is not worth a copy."""

STREAM_ROWS = (8, 16)
"""Rows that are read side by side where a matrix is streamed, the default first."""
REDUCE_TILES = (64, 128, 256, 512, 1024)
"""Steps of a reduction that is split for a cache."""
SLABS = 8
"""Splits of a matrix that is read by rows, at least; fewer rows stay in a cache by themselves."""
SECOND_CACHE = 1 << 20
"""A usual size, in bytes, for a target that does not state its own."""


def second_cache(facts: Facts) -> int:
    """Bytes of the target's second cache."""
    cache = facts.machine.cache(2)
    return cache.size if cache else SECOND_CACHE


def item_bytes(facts: Facts) -> int:
    """Bytes of an element."""
    return facts.vector_bytes // facts.lanes


def is_scattered(facts: Facts, operand: Moves, vector: str) -> bool:
    """Return whether a reduction walks an operand over enough pages for a packed copy to pay.

    It is so for the rows of large matrices: each vector of a column of tiles lies on a page of its own.
    """
    return _wanders(facts, operand, vector) and _reuses(facts, operand) >= REUSES


def is_scattered_constant(facts: Facts, operand: Moves, vector: str) -> bool:
    """Return whether tiles read a constant piece by piece, from far: a copy costs nothing later.

    In sequence it comes from memory as fast as that can be read; in pieces, several times more slowly.
    """
    if operand.tensor not in facts.program.constants or _reuses(facts, operand) <= 1:
        return False
    in_pieces = operand.strides.get(vector) == 1 and operand.single and vector in operand.alone
    return _wanders(facts, operand, vector) or (in_pieces and is_large(facts, operand))


def _wanders(facts: Facts, operand: Moves, vector: str) -> bool:
    """Return whether a reduction walks an operand, which could be packed, over many pages."""
    # What the vector axis does not walk in sequence is packed for that reason, if at all.
    if operand.strides.get(vector) != 1 or not operand.single or vector not in operand.alone:
        return False
    pages = 1.0
    for axis in facts.reduced_axes:
        apart = operand.strides.get(axis, 0) * item_bytes(facts)
        if axis != vector and apart:
            # Steps shorter than a page share one.
            pages *= max(1.0, facts.size[axis] * min(1.0, apart / PAGE))
    return pages > PAGES_NEAR


def is_large(facts: Facts, operand: Moves) -> bool:
    """Return whether an operand does not fit the second cache."""
    return operand.elements * item_bytes(facts) > second_cache(facts)


def spilled(facts: Facts, operand: Moves, vector: str, vectors: int) -> float:
    """Return which share of the second cache a register tile's panel takes, beyond what does no harm."""
    if not _wanders(facts, operand, vector) or _reuses(facts, operand) <= 1:
        return 0.0
    steps = prod(facts.size[axis] for axis in facts.reduced_axes if axis in operand.strides)
    return max(0.0, steps * vectors * facts.vector_bytes / second_cache(facts) - SHARE)


def is_memory_bound(facts: Facts) -> bool:
    """Return whether a nest is bound by memory: what it touches is used about once, beyond near caches."""
    touched = sum(moves.elements for moves in (*facts.operands, facts.output))
    return prod(facts.size.values()) <= touched and touched * item_bytes(facts) > second_cache(facts)


def is_beyond_caches(facts: Facts) -> bool:
    """Return whether a nest without reductions writes more than the largest known cache holds."""
    largest = max((cache.size for cache in facts.machine.caches), default=None)
    written = facts.output.elements * item_bytes(facts)
    return largest is not None and not facts.reduced_axes and written > largest


def streamed(facts: Facts, vector: str) -> str | None:
    """Find the reduced axis to walk a few rows at a time, where a matrix that is used once is read by rows.

    The results, which each row adds to, stay in a cache; a column of tiles would read a piece of every row.
    """
    for operand in facts.operands:
        if operand.strides.get(vector) != 1 or _reuses(facts, operand) > 1:
            continue
        if not is_large(facts, operand) or len(facts.reduced_axes) != 1:
            continue
        axis = facts.reduced_axes[0]
        if axis != vector and operand.strides.get(axis, 0) * item_bytes(facts) >= PAGE // 4:
            return axis
    return None


def slab(facts: Facts, vector: str) -> tuple[str, int] | None:
    """Find the split of a reduction that goes outside all else, where what is read again is too large.

    A matrix of many rows that are far apart, and which is not copied, comes from a far cache, page by page,
    for each row of tiles; its rows of one split stay in the second cache. Each panel of a tensor that vectors
    are loaded from is multiplied by all of another tensor. If that does not stay in the third cache, it comes
    from memory for each panel; its columns of one split do stay.

    Returns:
        A reduced axis and a step; None where everything stays, or nothing would.
    """
    axes = [axis for axis in facts.reduced_axes if axis != vector]
    if not axes:
        return None
    axis, rows = max(axes, key=lambda each: facts.size[each]), REDUCE_TILES[0]
    for operand in facts.operands:
        split = _read_by_rows(facts, operand, vector) * rows / facts.size[axis]
        near = 0 < split <= second_cache(facts) / 2 and axis in operand.strides
        if near and facts.size[axis] >= SLABS * rows and facts.fits(axis, rows):
            return axis, rows
    cache = facts.machine.cache(3)
    if cache is None:
        return None
    most = cache.size / 2
    panels = {each for m in facts.operands if vector in m.strides for each in m.strides}
    for operand in facts.operands:
        if vector not in operand.strides and axis in operand.strides:
            # What moves both, as the number of a batch, is outside, and counts for neither.
            moved = [each for each in operand.strides if each in facts.reduced or each not in panels]
            elements = min(operand.elements, prod(facts.size.get(each, 1) for each in moved))
            whole = elements * item_bytes(facts)
            steps = [n for n in REDUCE_TILES if whole * n <= most * facts.size[axis] and facts.fits(axis, n)]
            if whole > most and steps:
                return axis, steps[-1]
    return None


def _read_by_rows(facts: Facts, operand: Moves, vector: str) -> int:
    """Return the bytes of a matrix that is read again, not copied, and beyond the second cache; else 0."""
    wanders = _wanders(facts, operand, vector) and operand.tensor not in facts.program.constants
    if not wanders or not 1 < _reuses(facts, operand) < REUSES:
        return 0
    # What moves all tensors, as the number of a batch, is outside.
    every = (*facts.operands, facts.output)
    own = (axis for axis in operand.strides if any(axis not in moves.strides for moves in every))
    size = prod(facts.size[axis] for axis in own) * item_bytes(facts)
    return size if size > second_cache(facts) else 0


def flows(facts: Facts, vector: str) -> bool:
    """Return whether large tensors are passed through once, each in sequence: memory is the bound."""
    tensors = (facts.output, *facts.operands)
    through = all(m.strides.get(vector, 1) == 1 and _reuses(facts, m) <= 1 for m in tensors)
    return through and not facts.reduced_axes and is_large(facts, facts.output)


def conflicts(facts: Facts, operand: Moves, rows: dict[str, int]) -> bool:
    """Return whether the rows of a tile are so far apart that their lines drive each other from the cache."""
    for axis, count in rows.items():
        apart = operand.strides.get(axis, 0) * item_bytes(facts)
        # Such rows are in PAGE / gcd different sets of the cache, each of which keeps WAYS lines.
        if apart >= PAGE and count > WAYS * (PAGE // gcd(apart, PAGE)):
            return True
    return False


def _reuses(facts: Facts, operand: Moves) -> int:
    return prod(facts.size.values()) // max(1, operand.elements)


# Register tiles

COPY = 1.5
"""Cycles to copy an element where reading or writing is not in sequence."""
TURN = 0.7
"""Cycles to store a result where the vector axis does not walk memory in sequence."""
TURN_RUN = 6.0
"""Further cycles, there, for each run of results that do lie in sequence."""
GATHER = 2.5
"""Loads for each lane of a vector that is not in sequence."""
ALTERNATE = 3.0
"""Loads for a vector of every second element, where permutations of two registers are there."""
BROADCAST = 1.0
"""Loads for each element that is loaded into all lanes."""
FAR = 0.02
"""Further loads of a vector for each row that has cache lines of its own: the rows evict each other's."""
CONFLICT = 0.15
"""Cycles of a load from rows that evict each other from the cache."""
ROWS_BESIDE = 0.1
"""Cycles for each element of large streamed tensors where several rows are read side by side."""
SPILL = 0.1
"""Cycles to load a vector of a panel that takes all of the second-level cache."""
RELOAD = 0.01
"""Cycles to load an element of a tensor that exceeds the second-level cache, and is read for each panel."""
STREAM, STREAMS = 4.0, 16
"""Cycles that a load from beyond the second-level cache waits, where a tensor that is used once is read in
one sequence; and the most sequences that divide them: the processor fetches each ahead for itself."""
COLD = 1 / 4
"""Share of the second-level cache from which on a constant is beyond it when it is used once more."""
LOAD = 0.003
"""Cycles of a load that operations hide; they decide between tiles that are equal otherwise."""
SUM_LANES = 12.0
"""Cycles to sum the lanes of a register."""
FOLLOWED_REGISTERS = 4
"""Registers that what follows a tile needs beside its results; fewer, and results go through memory."""
CROWDED = 15.0
"""Cycles for each vector of results that does."""
VECTORS = (1, 2, 3, 4)


@dataclass(frozen=True)
class RegisterTile:
    """Tile of the output that is kept in registers.

    Args:
        rows: (axis, elements), outermost first; not over reduced axes.
        vector: the axis that is vectorized.
        width: its elements.
    """

    rows: tuple[tuple[str, int], ...]
    vector: str
    width: int

    def __str__(self) -> str:
        return " ".join(f"{axis}={n}" for axis, n in (*self.rows, (self.vector, self.width)))


def tiles(facts: Facts, vector: str) -> list[tuple[RegisterTile, float]]:
    """List the register tiles with a vector axis that the register file holds, with their cycles."""
    found = {tile: cycles(facts, tile) for tile in _tiles(facts, vector)}
    return sorted(found.items(), key=lambda item: item[1])


def _tiles(facts: Facts, vector: str) -> Iterator[RegisterTile]:
    reduced = vector in facts.reduced
    for count in VECTORS:
        if (count - 1) * facts.lanes >= facts.size[vector]:  # one more register would hold nothing
            break
        width = min(count * facts.lanes, facts.size[vector])
        # Where lanes are summed a result takes one register, however wide the tile is.
        budget = facts.registers // (1 if reduced else count)
        yield RegisterTile((), vector, width)
        for axis in facts.parallel_axes:
            if axis != vector:
                yield from _rows(facts, axis, vector, width, budget)


def _rows(facts: Facts, axis: str, vector: str, width: int, budget: int) -> Iterator[RegisterTile]:
    """List tiles of rows of an axis; if all rows fit, also of several of a second axis."""
    extent = facts.size[axis]
    for rows in range(2, min(extent, budget) + 1):
        yield RegisterTile(((axis, rows),), vector, width)
    for other in facts.parallel_axes:
        if other not in (axis, vector):
            for rows in range(2, min(facts.size[other], budget // extent) + 1):
                yield RegisterTile(((other, rows), (axis, extent)), vector, width)


def cycles(facts: Facts, tile: RegisterTile) -> float:
    """Estimate the cycles of the main nest."""
    reduced = tile.vector in facts.reduced
    inside = {tile.vector, *(axis for axis, _ in tile.rows)}
    steps = prod(facts.size[axis] for axis in facts.reduced_axes if axis != tile.vector)
    outer = prod(facts.size[axis] for axis in facts.parallel_axes if axis not in inside)
    sides = [_parts(facts.size[axis], rows) for axis, rows in tile.rows]
    total = ROWS_BESIDE * prod(facts.size.values()) if tile.rows and flows(facts, tile.vector) else 0.0
    # The tail of each axis is code of its own, with a shape of its own.
    for (width, count), *rows in product(_parts(facts.size[tile.vector], tile.width), *sides):
        shape = {axis: n for (axis, _), (n, _) in zip(tile.rows, rows, strict=True)}
        times = outer * prod(n for _, n in rows)
        vectors = -(-width // facts.lanes)
        total += times * count * steps * _step(facts, tile.vector, shape, vectors)
        total += times * (1 if reduced else count) * _end(facts, tile, shape, vectors)
    copied = [o for o in facts.operands if is_copied(facts, o, tile.vector)]
    return total + sum(o.elements * COPY for o in copied if o.tensor not in facts.program.constants)


def _parts(extent: int, tile: int) -> list[tuple[int, int]]:
    """List (elements, how often): the full tiles, and the tail."""
    full, tail = divmod(extent, tile)
    return [(tile, full)] * (full > 0) + [(tail, 1)] * (tail > 0)


def _step(facts: Facts, vector: str, rows: dict[str, int], vectors: int) -> float:
    """Count the cycles of all operations for one step of the reduction."""
    loads = late = 0.0
    for operand in facts.operands:
        each = prod(n for axis, n in rows.items() if axis in operand.strides)
        if vector not in operand.strides:
            # Where the vector axis does not move it, one element serves all lanes.
            loads += each * BROADCAST
            late += each * (CONFLICT * conflicts(facts, operand, rows) + RELOAD * is_large(facts, operand))
        else:
            far = any(operand.strides.get(axis, 0) >= facts.lanes for axis in rows)
            in_sequence = not _strided(operand, vector) or is_copied(facts, operand, vector)
            of_vector = 1.0 if in_sequence else _strided_loads(facts, operand, vector)
            loads += each * vectors * (of_vector + FAR * each * far)
            late += vectors * SPILL * spilled(facts, operand, vector, vectors)
            late += each * vectors * STREAM / _sequences(facts, operand, vector, each)
    # Two operations and two loads begin in each cycle: the scarcer of both sets the pace.
    return max(prod(rows.values()) * vectors, loads) / 2 + loads * LOAD + late


def _sequences(facts: Facts, operand: Moves, vector: str, rows: int) -> float:
    """Return how many sequences an operand that is used once is read in; infinity where a cache has it."""
    share = COLD if operand.tensor in facts.program.constants else 1.0
    near = operand.elements * item_bytes(facts) <= share * second_cache(facts)
    if near or not facts.reduced_axes or _reuses(facts, operand) > 1:
        return inf
    if streamed(facts, vector) is not None:
        return STREAM_ROWS[0]
    return 1 if is_copied(facts, operand, vector) else min(rows, STREAMS)


def _end(facts: Facts, tile: RegisterTile, rows: dict[str, int], vectors: int) -> float:
    """Count the cycles to begin a tile and to take its results to memory."""
    results = prod(rows.values())
    if tile.vector in facts.reduced:
        return 6 + results * SUM_LANES
    if not _strided(facts.output, tile.vector):
        # What follows, such as a bias and an activation, needs registers beside those of the results.
        followed = facts.output.tensor not in facts.program.outputs
        crowded = followed and results * vectors > facts.registers - FOLLOWED_REGISTERS
        return 6 + results * vectors * (2.0 + CROWDED * crowded)
    run = next((n for axis, n in rows.items() if facts.output.strides[axis] == 1), 1)
    return 6 + results * vectors * facts.lanes * (TURN + TURN_RUN / run)


def is_copied(facts: Facts, operand: Moves, vector: str) -> bool:
    """Return whether packing an operand pays, so that the vector axis walks it in sequence."""
    if not _strided(operand, vector) or not operand.single or vector not in operand.alone:
        return False
    reuse = prod(facts.size.values()) / operand.elements
    lane = _strided_loads(facts, operand, vector) / facts.lanes
    # Constants are copied before the first call, which costs nothing later.
    return operand.tensor in facts.program.constants or reuse * lane > 2 * COPY


def _strided_loads(facts: Facts, operand: Moves, vector: str) -> float:
    two = operand.strides[vector] == 2 and facts.permutes(operand.tensor)
    return ALTERNATE if two else GATHER * facts.lanes


def _strided(moves: Moves, vector: str) -> bool:
    return moves.strides.get(vector, 1) != 1
