"""Steps of a schedule: which loops a nest has, in which order, how they run, and what is packed.

Each step checks its rule, so no illegal schedule can be built. The rules that join a schedule's parts are
checked after every step.

Two axes can become one where the tensors of a program have their elements in sequence along both. The program
then computes the same with the same arrays: row-major `O[k, y, x]` is `O[k, y.x]` where y.x counts the
elements of whole rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from planish.core import ScheduleError, Step, did_you_mean
from planish.levels.loops.ir.schedule import Order, Packing, Schedule, loop_text, unscheduled
from planish.levels.loops.lang.draft import is_spread, tables
from planish.levels.loops.lang.program import (
    Access,
    Apply,
    Expr,
    Index,
    Program,
    Statement,
    TensorType,
    accesses,
)

if TYPE_CHECKING:
    from planish.levels.loops.ir.tree import LoopId


def fusable(program: Program) -> Iterator[tuple[str, str]]:
    """List the pairs of axes, (outer, inner), that can become one; those of equal loops first."""
    pairs = dict.fromkeys(
        pair
        for statement in program.statements
        for access in _accesses(statement)
        for pair in pairwise([_alone(index, program.size) for index in access.index])
    )
    for outer, inner in pairs:
        if outer and inner and outer != inner and fused(program, outer, inner) is not None:
            yield outer, inner


def fused(program: Program, outer: str, inner: str) -> Program | None:
    """Make one axis of two; None where a tensor's elements are not in sequence along both."""
    dimensions: dict[str, int | None] = {}
    for statement in program.statements:
        # A table is looked up by values, which count along one dimension and know of no fused one.
        looked_up = {
            axis for table in tables(statement.value) for index in table.index for axis, _ in index.terms
        }
        if {outer, inner} & looked_up:
            return None
        for access in _accesses(statement):
            dimension = _dimension(access, program, outer, inner)
            # A tensor keeps one type: its accesses must agree where the axes are.
            if dimension == _APART or dimensions.setdefault(access.tensor, dimension) != dimension:
                return None
    name = f"{outer}.{inner}"
    sizes = {axis: n for axis, n in program.sizes if axis not in (outer, inner)}
    sizes[name] = program.size[outer] * program.size[inner]
    types: list[tuple[str, TensorType]] = []
    for tensor, type_ in program.types:
        d, shape = dimensions.get(tensor), type_.shape
        if d is not None:
            type_ = replace(type_, shape=(*shape[:d], shape[d] * shape[d + 1], *shape[d + 2 :]))
        types.append((tensor, type_))
    statements = tuple(_rewritten(s, dimensions, name) for s in program.statements)
    return replace(program, statements=statements, sizes=tuple(sorted(sizes.items())), types=tuple(types))


_APART = -1
"""Position of axes that are there, but not side by side."""


def _accesses(statement: Statement) -> Iterator[Access]:
    yield statement.target
    yield from accesses(statement.value)


def _alone(index: Index, size: Mapping[str, int]) -> str | None:
    """Return the axis that is the whole subscript; axes of one element change nothing."""
    terms = [(axis, times) for axis, times in index.terms if size[axis] > 1]
    return terms[0][0] if len(terms) == 1 and terms[0][1] == 1 and index.offset == 0 else None


def _dimension(access: Access, program: Program, outer: str, inner: str) -> int | None:
    """Find the dimension of the outer axis, where the inner one's is next; None where there is neither."""
    used = [axis for index in access.index for axis, _ in index.terms]
    if outer not in used and inner not in used:
        return None
    # Edges would lie inside the fused axis.
    if used.count(outer) != 1 or used.count(inner) != 1 or access.pad is not None:
        return _APART
    names = [_alone(index, program.size) for index in access.index]
    if outer not in names[:-1]:
        return _APART
    d = names.index(outer)
    # The next row follows only where rows are walked to their end.
    whole = program.type[access.tensor].shape[d + 1] == program.size[inner]
    return d if names[d + 1] == inner and whole else _APART


def _rewritten(statement: Statement, dimensions: Mapping[str, int | None], name: str) -> Statement:
    def access(old: Access) -> Access:
        dimension = dimensions[old.tensor]
        if dimension is None:
            return old
        index = (*old.index[:dimension], Index(((name, 1),)), *old.index[dimension + 2 :])
        return replace(old, index=index)

    def value(expr: Expr) -> Expr:
        if isinstance(expr, Access):
            return access(expr)
        return replace(expr, args=tuple(map(value, expr.args))) if isinstance(expr, Apply) else expr

    return replace(statement, target=access(statement.target), value=value(statement.value))


# Rules


def checked(schedule: Schedule) -> Schedule:
    """Return the schedule if it is legal.

    Raises:
        ScheduleError: a parallel loop is not outermost or is reduced; a packing or a staging has lost its
            loop, or makes no sense there. The message names the rule, the loop and the tensor.
    """
    for nest, loop in schedule.parallel:
        _check_parallel(schedule, nest, loop_text(loop))
    for pack in schedule.packs:
        _check_pack(schedule, pack)
    for tensor, loop in schedule.staged:
        if not any(loop in schedule.loops[i] for i in schedule.graph.writers[tensor]):
            raise ScheduleError(
                f"loop '{loop_text(loop)}' cannot go: tensor '{tensor}' is staged there", "Stage it last."
            )
    return schedule


def _check_parallel(schedule: Schedule, i: int, text: str) -> None:
    nest, order = schedule.graph.nests[i], schedule.loops[i]
    # Threads share the work once a call: inside another loop they would meet in each of its passes.
    if loop_text(order[0]) != text:
        raise ScheduleError(
            f"parallel loop '{text}' must be outermost in nest '{nest.name}'",
            f"The outermost is '{loop_text(order[0])}'.",
        )
    if order[0][0] in nest.reduced:
        axis, target = order[0][0], nest.statement.target
        if axis in nest.statement.output_axes:
            raise ScheduleError(
                f"loop '{text}' cannot be parallel: its iterations meet in elements of {target}",
                "Put a loop outermost whose axis subscripts a dimension alone.",
            )
        raise ScheduleError(
            f"loop '{text}' cannot be parallel: nest '{nest.name}' reduces axis '{axis}'",
            "Put a loop over an axis of the result outermost.",
        )


def _check_pack(schedule: Schedule, pack: Packing) -> None:
    nest, order = schedule.graph.nests[pack.nest], schedule.loops[pack.nest]
    at = loop_text(pack.at) if pack.at else "root"
    if pack.at is not None and pack.at not in order:
        raise ScheduleError(f"loop '{at}' cannot go: tensor '{pack.tensor}' is packed there", "Pack it last.")
    depth = order.index(pack.at) + 1 if pack.at else 0
    around, inside = order[:depth], order[depth:]
    if pack.tensor == nest.statement.target.tensor:
        axes = _check_output(schedule, pack, at, [axis for axis, _ in around])
    else:
        axes = _check_input(schedule, pack)
    if not any(axis in axes for axis, _ in inside):
        raise ScheduleError(
            f"cannot pack '{pack.tensor}' at '{at}': no loop inside moves it", "Pack it further out."
        )


def _check_output(schedule: Schedule, pack: Packing, at: str, around: list[str]) -> set[str]:
    nest = schedule.graph.nests[pack.nest]
    if pack.ahead or pack.tensor not in schedule.program.outputs:
        raise ScheduleError(
            f"cannot pack '{pack.tensor}'{' ahead' if pack.ahead else ''}: its nest writes it",
            "Ahead goes with inputs; and a tensor between nests has a tile of its own.",
        )
    if is_spread(nest.statement.target):
        raise ScheduleError(
            f"cannot pack output '{pack.tensor}': it is written as {nest.statement.target}",
            "Only what is written axis by axis can be packed.",
        )
    reduced = sorted(nest.reduced.intersection(around))
    # The tile would be taken away after each pass of that loop, with a part of the sum in it.
    if reduced:
        raise ScheduleError(
            f"cannot pack output '{pack.tensor}' at '{at}': a loop around it reduces axis '{reduced[0]}'",
            "Pack it outside all loops of reduced axes.",
        )
    return set(nest.statement.output_axes)


def _check_input(schedule: Schedule, pack: Packing) -> set[str]:
    nest = schedule.graph.nests[pack.nest]
    ways = [o.access for o in nest.operands if o.access.tensor == pack.tensor]
    if not ways:
        known = [*(o.access.tensor for o in nest.operands), nest.statement.target.tensor]
        raise ScheduleError(
            f"nest '{nest.name}' neither reads nor writes tensor '{pack.tensor}'",
            did_you_mean(pack.tensor, known),
        )
    if pack.tensor in schedule.program.integer_indices:
        raise ScheduleError(
            f"cannot pack '{pack.tensor}': it has indices of {schedule.program.type[pack.tensor].dtype}",
            "Only what is computed with can be packed.",
        )
    if ways[0] in nest.tables:
        raise ScheduleError(
            f"cannot pack '{pack.tensor}': nest '{nest.name}' reads it by the elements of another tensor",
            "Only a tensor that is read by loops alone can be packed.",
        )
    # A packed tile lies in the order of the one way in which it is read.
    if len(ways) > 1:
        raise ScheduleError(
            f"cannot pack '{pack.tensor}': nest '{nest.name}' reads it in {len(ways)} ways",
            "Only a tensor that is read in one way can be packed.",
        )
    # What is packed once for all calls is packed as a whole: no loop runs yet.
    if pack.ahead and pack.at is not None:
        raise ScheduleError(f"cannot pack '{pack.tensor}' ahead inside a loop", "Use at='root'.")
    if pack.ahead and pack.tensor not in schedule.program.constants:
        raise ScheduleError(
            f"cannot pack '{pack.tensor}' ahead: it is not constant",
            f'If it keeps its value from call to call, say so: constant="{pack.tensor}".',
        )
    return {axis for index in ways[0].index for axis, _ in index.terms}


# Steps


@dataclass(frozen=True)
class LoopStep(Step):
    """A transformation of a schedule.

    Loops are named as they are printed: "m" (step 1) or "m:32". A step that changes the loops of a nest other
    than the main one ends that nest's following of the main nest.
    """

    def apply(self, schedule: Schedule) -> Schedule:
        """Return the changed schedule.

        Raises:
            ScheduleError: the step is illegal here; the message names the rule and the axis.
        """
        raise NotImplementedError


def _with_order(schedule: Schedule, nest: int, order: Order) -> Schedule:
    """Replace the loops of a nest, if the new ones are legal."""
    around: dict[str, LoopId] = {}
    for loop in order:
        axis, step = loop
        if axis in around and around[axis][1] <= step:
            raise ScheduleError(
                f"loop '{loop_text(loop)}' cannot be inside '{loop_text(around[axis])}'",
                f"The loops of axis '{axis}' keep their order: larger steps outside.",
            )
        around[axis] = loop
    orders = (*schedule.orders[:nest], order, *schedule.orders[nest + 1 :])
    unrolled = frozenset((n, loop) for n, loop in schedule.unrolled if n != nest or loop in order)
    return checked(replace(schedule, orders=orders, unrolled=unrolled))


# Annotations: how a loop runs, and what is packed or staged


@dataclass(frozen=True)
class Unroll(LoopStep):
    """Unroll a loop: its body is repeated instead of looped over.

    ::

        m, n, k:4, k   -- Unroll("k") -->   m, n, k:4, k unroll

    Args:
        loop: any loop.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    loop: str
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        nest = schedule.nest(self.nest)
        loop = schedule.find(nest, self.loop)
        order = schedule.loops[nest]
        return replace(_with_order(schedule, nest, order), unrolled=schedule.unrolled | {(nest, loop)})


@dataclass(frozen=True)
class Parallel(LoopStep):
    """Run the iterations of the outermost loop on several cores.

    ::

        m:32, n, m, k   -- Parallel("m:32") -->   m:32 parallel, n, m, k

    Args:
        loop: the outermost loop, over an axis that is not reduced.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    loop: str
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        nest = schedule.nest(self.nest)
        marked = schedule.parallel | {(nest, schedule.find(nest, self.loop))}
        return checked(replace(_with_order(schedule, nest, schedule.loops[nest]), parallel=marked))


@dataclass(frozen=True)
class Pack(LoopStep):
    """Copy the tile that a loop's inner loops touch into a contiguous buffer, in the order of use.

    ::

        n:64, k, m, n   -- Pack("B", "n:64") -->   n:64 (k, n: B.packed = B), k, m, n (reading B.packed)
        k:16, x, c, k   -- Pack("O", "k:16") -->   k:16, x, c, k (writing O.tile), (k, x: O = O.tile)

    What the nest reads is copied before the inner loops; what it writes is computed in the buffer and taken
    to memory after them. Only a loop that encloses no part of a reduction can hold the tile of an output.

    Args:
        tensor: what the nest reads in one way, or the output that it writes.
        at: the loop around the copy, or "root".
        ahead: copy the tensor once, before the first call; only at the root, and only a constant of the
            program.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    tensor: str
    at: str = "root"
    ahead: bool = False
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        nest = schedule.nest(self.nest)
        at = None if self.at == "root" else schedule.find(nest, self.at)
        if any(p.nest == nest and p.tensor == self.tensor for p in schedule.packs):
            raise ScheduleError(f"tensor '{self.tensor}' is packed already", "A nest packs a tensor once.")
        pack = Packing(nest, self.tensor, at, self.ahead)
        return checked(replace(schedule, packs=(*schedule.packs, pack)))


@dataclass(frozen=True)
class Stage(LoopStep):
    """Forbid the readers of a tensor to share a loop with the nest that writes it (thesis listing 5).

    ::

        x, z (a = ...; b = f(a))   -- Stage("a", "z") -->   x, (z: a = ...), (z: b = f(a))

    The tensor's buffer then holds the whole loop. The loops inside that loop are not shared either.

    Args:
        tensor: written and read by the program.
        loop: of the nest that writes it.
    """

    tensor: str
    loop: str

    def apply(self, schedule: Schedule) -> Schedule:
        intermediate = sorted(set(schedule.program.written) & set(schedule.program.read))
        if self.tensor not in intermediate:
            raise ScheduleError(
                f"cannot stage '{self.tensor}': the program does not both write and read it",
                did_you_mean(self.tensor, intermediate),
            )
        loop = schedule.find(schedule.graph.writers[self.tensor][0], self.loop)
        return checked(replace(schedule, staged=schedule.staged | {(self.tensor, loop)}))


# Loops and their order


@dataclass(frozen=True)
class Split(LoopStep):
    """Walk an axis in tiles: add the loop `axis:factor` just outside the axis' next smaller loop.

    ::

        m, n, k   -- Split("m", 32) -->   m:32, m, n, k

    Tiles are full but for the last one, which has what remains of the axis. Further splits of the axis may
    be larger or smaller, and its steps divide one another.

    Args:
        axis: what is split.
        factor: elements in a tile; more than 1, less than the axis' extent.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    axis: str
    factor: int
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        nest = schedule.nest(self.nest)
        order = schedule.loops[nest]
        self._check(schedule, [step for axis, step in order if axis == self.axis])
        at = next(i for i, (axis, step) in enumerate(order) if axis == self.axis and step < self.factor)
        return _with_order(schedule, nest, (*order[:at], (self.axis, self.factor), *order[at:]))

    def _check(self, schedule: Schedule, steps: list[int]) -> None:
        extent = schedule.program.size.get(self.axis)
        if not steps or extent is None:
            nest = schedule.graph.nests[schedule.nest(self.nest)]
            known = ", ".join(nest.axes) or "none"
            raise ScheduleError(
                f"nest '{nest.name}' has no loop over axis '{self.axis}'", f"Its axes: {known}."
            )
        if not 1 < self.factor < extent:
            raise ScheduleError(
                f"cannot split axis '{self.axis}' by {self.factor}: it has {extent} elements",
                f"A factor is more than 1 and less than {extent}.",
            )
        for step in steps:
            # Else every pass of the larger loop would end with a tail of the smaller one.
            if max(step, self.factor) % min(step, self.factor) or step == self.factor:
                raise ScheduleError(
                    f"cannot split axis '{self.axis}' by {self.factor}: it has a loop of step {step}",
                    "The steps of one axis differ and divide one another.",
                )


@dataclass(frozen=True)
class Fuse(LoopStep):
    """Make one axis of two, along which every tensor that has them has its elements in sequence.

    ::

        k, y, x, c   -- Fuse("y", "x") -->   k, y.x, c

    The short axis of images of 28 by 28 fills no vectors; the one of 784 does.

    Args:
        outer: an axis.
        inner: the axis that moves fastest of the two.
    """

    outer: str
    inner: str

    def apply(self, schedule: Schedule) -> Schedule:
        program = schedule.program
        for axis in (self.outer, self.inner):
            if axis not in program.size:
                raise ScheduleError(f"the program has no axis '{axis}'", did_you_mean(axis, program.size))
        # Loops, marks and packings are named by axes, two of which this step takes away.
        if schedule.text != unscheduled(program).text:
            raise ScheduleError(
                f"cannot fuse '{self.outer}' and '{self.inner}' now", "Fuse before all other steps."
            )
        one = fused(program, self.outer, self.inner)
        if one is None:
            raise ScheduleError(
                f"cannot fuse '{self.outer}' and '{self.inner}': a tensor has other elements between",
                "Every tensor that has one of the axes must have both, side by side and whole.",
            )
        return unscheduled(one)


@dataclass(frozen=True)
class Merge(LoopStep):
    """Remove the loop `axis:step`; the inverse of `Split`.

    ::

        m:32, m, n, k   -- Merge("m", 32) -->   m, n, k

    Args:
        axis: whose loop is removed.
        step: its step; not 1.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    axis: str
    step: int
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        nest = schedule.nest(self.nest)
        loop = schedule.find(nest, loop_text((self.axis, self.step)))
        # Without the loop of step 1 not every element would be reached.
        if self.step == 1:
            raise ScheduleError(
                f"cannot merge loop '{self.axis}' of step 1", "Only the loops of splits can be merged."
            )
        return _with_order(schedule, nest, tuple(x for x in schedule.loops[nest] if x != loop))


@dataclass(frozen=True)
class Swap(LoopStep):
    """Exchange two loops.

    ::

        m, n, k   -- Swap("n", "k") -->   m, k, n

    The loops of one axis keep their order: larger steps outside.

    Args:
        a: a loop.
        b: another loop.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    a: str
    b: str
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        return _reordered(schedule, self.nest, (self.a, self.b), lambda loops: loops[::-1])


@dataclass(frozen=True)
class Reorder(LoopStep):
    """Put loops into the given order, at the positions that they have; other loops stay.

    ::

        m:32, m, n, k   -- Reorder(("m:32", "k", "n", "m")) -->   m:32, k, n, m

    The loops of one axis keep their order: larger steps outside.

    Args:
        loops: two or more loops, outermost first.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    loops: tuple[str, ...]
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        nest = schedule.nest(self.nest)
        wanted = [schedule.find(nest, text) for text in self.loops]
        return _reordered(schedule, self.nest, self.loops, lambda _: wanted)


@dataclass(frozen=True)
class Vectorize(LoopStep):
    """Make a loop the innermost, which is the one that code generators vectorize (thesis 3.4.2).

    ::

        m, n, k   -- Vectorize("n") -->   m, k, n

    Args:
        loop: a loop of step 1.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    loop: str
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        nest = schedule.nest(self.nest)
        loop = schedule.find(nest, self.loop)
        if loop[1] != 1:
            raise ScheduleError(
                f"cannot vectorize loop '{self.loop}': its step is not 1", f"Vectorize '{loop[0]}' instead."
            )
        rest = [x for x in schedule.loops[nest] if x != loop]
        return _with_order(schedule, nest, (*rest, loop))


def _reordered(
    schedule: Schedule, name: str, texts: tuple[str, ...], permute: Callable[[list[LoopId]], list[LoopId]]
) -> Schedule:
    nest = schedule.nest(name)
    named = {schedule.find(nest, text) for text in texts}
    if len(named) != len(texts):
        raise ScheduleError(
            f"cannot reorder {', '.join(texts)}: a loop is named twice", "Name each loop once."
        )
    order = list(schedule.loops[nest])
    positions = [i for i, loop in enumerate(order) if loop in named]
    for i, loop in zip(positions, permute([order[i] for i in positions]), strict=True):
        order[i] = loop
    return _with_order(schedule, nest, tuple(order))
