"""The template space of AutoTVM: knobs, derived from the program instead of written for each operator.

The knobs form a tree: what each offers depends on the choices before it. A path through it, the names of the
alternatives that are chosen, makes a candidate.

The first knobs order the outer loops, and add packing and threads. A nest beside the main one may follow
it: then it has what it shares of the main one's loops, which suits what is done to each result. One that
reduces by itself, as the second of two products, is better off with the vector axis, the tile and the packing
that suit it; it may stay inside the outermost loops of the main nest, so that what passes from one to the
other stays in a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    FeatureSchema,
    ScheduleError,
    SearchContext,
    Space,
    Step,
    Target,
)
from planish.levels.loops.context import Peak, context_of, unknown_peak
from planish.levels.loops.ir.schedule import Order, Schedule, loop_text, plain_axis, unscheduled
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.cursor import resolve
from planish.levels.loops.space.facts import (
    REDUCE_TILES,
    Facts,
    RegisterTile,
    is_beyond_caches,
    is_memory_bound,
)
from planish.levels.loops.space.knobs import (
    FUSED,
    TILES_MAX,
    UNROLLS,
    Knob,
    KnobContext,
    KnobOption,
    Options,
    Tiling,
    can_be_packed,
    fusing,
    knob_name,
    pack,
    pack_most,
    parallel,
    placing_knobs,
    reduce,
    unroll,
)
from planish.levels.loops.steps import LoopStep, Merge, Reorder

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray


# Nests beside the main one

HEAVY = 1 / 8
"""Share of the main nest's iterations from which on a reduction may deserve a tile of its own."""
REUSES = 16
"""Least uses of each element that it reads; else memory sets the pace, and sharing helps."""
FOLLOW, TURNED = "follow", "turned"
_NONE: Options = {"none": KnobOption((), 1.0)}


def nest_knobs(main: Facts) -> Iterator[Knob]:
    """List the knobs of all nests but the main one, in the order of their steps."""
    for i in range(len(main.graph.nests)):
        if i != main.graph.main:
            yield from NestKnobs(replace(main, other=i), main).knobs()


class NestKnobs:
    """Makes the knobs of one nest.

    Args:
        facts: of the whole nest.
        main: of the main nest.
    """

    def __init__(self, facts: Facts, main: Facts) -> None:
        self.facts = facts
        work = prod(facts.size.values())
        reuses = all(work >= REUSES * moves.elements for moves in facts.operands)
        self.heavy = bool(facts.reduced_axes) and work >= HEAVY * prod(main.size.values()) and reuses
        self._tilings: dict[Order, Tiling] = {}
        self._weights: dict[str, float] = {}

    def knobs(self) -> Iterator[Knob]:
        facts = self.facts
        if not facts.size:
            return
        yield Knob(
            knob_name("loops", facts),
            self._loops,
            # Followed, turned or not; or each axis inside any number of shared loops, of which an axis has
            # three at most.
            2 + len(facts.size) * (len(facts.size) * 3 + 1),
            self._entered,
        )
        yield self._knob(
            "tile",
            lambda c: self._tiling(c.facts.around).tile(c),
            TILES_MAX,
            lambda c, name: self._tiling(c.facts.around).tiled(c, name),
        )
        yield self._knob("unroll", unroll, len(UNROLLS) + 2)
        yield self._knob("reduce", reduce, len(REDUCE_TILES) + 2)
        for moves in (*facts.operands, facts.output):
            if can_be_packed(facts, moves):
                yield self._knob(
                    f"pack {moves.tensor}", lambda c, t=moves.tensor: pack(c, t), pack_most(facts)
                )
        if facts.cores > 1:
            yield self._knob("parallel", parallel, 2)

    def _knob(
        self,
        kind: str,
        options: Callable[[KnobContext], Options],
        most: int,
        after: Callable[[KnobContext, str], KnobContext] = lambda context, _: context,
    ) -> Knob:
        """Make a knob that is turned only where the nest has loops of its own."""

        def offered(context: KnobContext) -> Options:
            # A nest that follows has the main one's loops: there is nothing of its own to turn.
            return options(context) if context.facts.other == self.facts.other else _NONE

        def entered(context: KnobContext, name: str) -> KnobContext:
            return after(context, name) if context.facts.other == self.facts.other else context

        return Knob(knob_name(kind, self.facts), offered, most, entered)

    def _tiling(self, around: Order) -> Tiling:
        if around not in self._tilings:
            self._tilings[around] = Tiling(replace(self.facts, around=around))
        return self._tilings[around]

    def _loops(self, context: KnobContext) -> Options:
        """Offer to follow, turned or not, or each axis as the vector axis, inside some shared loops."""
        options = {FOLLOW: KnobOption((), 1.0), **self._turned(context)}
        # Alternatives of equal steps could not be distinguished when a candidate is read back.
        known = {option.steps for option in options.values()}
        shared = self._shared(context)
        for depth in range(len(shared) + 1):
            for axis in replace(self.facts, around=shared[:depth]).size:
                steps = self._own(context, depth, axis)
                if steps not in known:
                    known.add(steps)
                    options[f"{depth} {axis}"] = KnobOption(steps, self._weight(axis, depth))
        return options

    def _turned(self, context: KnobContext) -> Options:
        """Offer that the nest walks its result as that lies in memory, inside the main one's loops."""
        outer = set(_main(context).outer)
        inner = [loop for loop in context.schedule.loops[self.facts.number] if loop not in outer]
        axes = [plain_axis(index) for index in self.facts.nest.statement.target.index]
        position = {axis: d for d, axis in enumerate(axes)}
        turned = sorted(inner, key=lambda loop: position.get(loop[0], -1))
        if turned == inner or any(axis in self.facts.nest.reduced for axis, _ in inner):
            return {}
        return {TURNED: KnobOption((Reorder(tuple(map(loop_text, turned)), self.facts.nest_name),), 2.0)}

    def _own(self, context: KnobContext, depth: int, axis: str) -> tuple[LoopStep, ...]:
        """Undo the splits inside a number of shared loops, and put an axis innermost."""
        name = self.facts.nest_name
        inner = context.schedule.loops[self.facts.number][depth:]
        merged = tuple(Merge(a, step, name) for a, step in inner if step > 1)
        # Merged, each axis has one loop left, that of step 1.
        rest = [loop for loop in inner if loop[1] == 1]
        rest.sort(key=lambda loop: loop[0] == axis)
        return (*merged, Reorder(tuple(map(loop_text, rest)), name)) if len(rest) > 1 else merged

    def _weight(self, axis: str, depth: int) -> float:
        """Prefer loops of its own for a nest that reduces much, and the axis of the fewest cycles."""
        if not self.heavy:
            return 0.05
        if not self._weights:
            cycles = self._tiling(()).fewest()
            self._weights = {a: (min(cycles.values()) / n) ** 4 for a, n in cycles.items()}
        return self._weights[axis] * (0.3 if depth else 2.0)

    def _entered(self, context: KnobContext, name: str) -> KnobContext:
        if name in (FOLLOW, TURNED):
            return context
        depth, axis = name.split()
        around = self._shared(context)[: int(depth)]
        # A placeholder until the knob "tile" is turned.
        facts, tile = replace(self.facts, around=around), RegisterTile((), axis, 1)
        return replace(context, facts=facts, vector=axis, tile=tile, main=_main(context))

    def _shared(self, context: KnobContext) -> Order:
        """Find the main nest's outermost loops that this one begins with when it follows."""
        main = _main(context)
        own = context.schedule.loops[self.facts.number]
        count = 0
        while count < min(len(main.outer), len(own)) and main.outer[count] == own[count]:
            count += 1
        return own[:count]


def _main(context: KnobContext) -> KnobContext:
    """Return where the main nest's knobs ended."""
    return context.main or context


KNOWN_MAX = 4096
"""Nodes of the tree that are cached: neighbors have most of their path in common."""

BUILD_WEIGHT, BEST_BUILD = 0.5, 2.0
"""Weights of another code generator, where the target's own has 1; the second where it is the default."""

NO_BUILDS: Mapping[str, Step] = MappingProxyType({})
Choices = Mapping[str, str]
"""Knob to the name of the alternative that is chosen."""
_Names = tuple[str, ...]
"""Alternatives of the first knobs: the path to a node."""


@dataclass(frozen=True)
class _Node:
    """State after alternatives of the first knobs, and what the next knob offers; nothing at the end."""

    space: TemplateSpace
    context: KnobContext
    steps: tuple[Step, ...]
    names: _Names
    knob: Knob | None
    options: Options

    @cached_property
    def made(self) -> Candidate:
        """The candidate of all knobs' alternatives, which may be met again and again."""
        return _Made(self)

    @cached_property
    def by_first(self) -> Mapping[Step | None, Sequence[str]]:
        """The first step of alternatives to their names; None for those that have no steps."""
        found: dict[Step | None, list[str]] = {}
        for name, option in self.options.items():
            found.setdefault(option.steps[0] if option.steps else None, []).append(name)
        return found

    def chosen(self, steps: tuple[Step, ...]) -> str | None:
        """Return the name of the alternative that steps begin with; None where there is none."""
        names = [*self.by_first.get(None, ()), *(self.by_first.get(steps[0], ()) if steps else ())]
        fits = [n for n in names if steps[: len(self.options[n].steps)] == self.options[n].steps]
        # "none" fits everywhere, and the steps of one alternative may begin those of another.
        return max(fits, key=lambda n: len(self.options[n].steps), default=None)


class _Made(Candidate):
    """A candidate that keeps the path that it was made by, which reading back its steps finds, too."""

    def __init__(self, node: _Node) -> None:
        super().__init__(node.steps)
        self.space: TemplateSpace
        self.names: _Names
        self.__dict__.update(space=node.space, names=node.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidate) and self.steps == other.steps

    __hash__ = Candidate.__hash__

    def __reduce__(self) -> tuple[type[Candidate], tuple[tuple[Step, ...]]]:
        return Candidate, (self.steps,)


class TemplateSpace(Space):
    """Candidates that are made of one alternative of each knob, in the knobs' order.

    AutoTVM's templates are written by hand for each operator and each processor (section 2 of its
    paper). Here the knobs are derived: axes that are one in memory, the vector axis, a register tile that
    the register file holds, unrolling, tiles for the caches, the order of the outer loops, packing of each
    tensor, threads; of every other nest whether it follows the main one's loops, or has its own; and which
    code generator compiles what only flows through memory.

    Args:
        program: what is scheduled.
        target: whose vector registers and cores are reckoned with.
        builds: other code generators that may be chosen, name to step.
        peak: of the target, for features.

    Attributes:
        facts: of the program on the target.
    """

    def __init__(
        self,
        program: Program,
        target: Target,
        builds: Mapping[str, Step] = NO_BUILDS,
        peak: Peak = unknown_peak,
    ) -> None:
        self.facts, self._peak = Facts.of(program, target), peak
        self.conditions: Mapping[str, str | int] = {
            "element type": program.arithmetic,
            "cores": target.cores,
            "vector bytes": self.facts.vector_bytes,
        }
        last = (_build(builds, self.facts),) if builds and is_memory_bound(self.facts) else ()
        self._first: tuple[Knob, ...] = ()
        self._forms = {"none": (*_knobs_of(self.facts), *last)}
        if fuse := fusing(self.facts):
            self._first = (fuse[0],)
            self._forms[FUSED] = (*_knobs_of(fuse[1]), *last)
        self._node = lru_cache(maxsize=KNOWN_MAX)(self._find_node)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """All knobs, each once; those that stand for axes depend on whether axes are fused."""
        every = (*self._first, *(knob for knobs in self._forms.values() for knob in knobs))
        return tuple({knob.name: knob for knob in reversed(every)}.values())[::-1]

    def start(self) -> Candidate:
        """Return the default schedule: the most plausible alternative of each knob."""
        return self.candidate({})

    def seeds(self, context: SearchContext = EMPTY_CONTEXT) -> tuple[Candidate, ...]:  # noqa: ARG002
        """Return the default schedule."""
        return (self.start(),)

    def focused(self, candidates: Sequence[Candidate]) -> TemplateSpace:
        """Return this space: its knobs have weights already."""
        del candidates
        return self

    def sample(self, rng: Generator) -> Candidate:
        """Draw each knob's alternative by its weight."""
        return self._made_by(lambda _, options: _draw(options, rng))

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        """Choose anew for one knob; the others keep their alternatives where these are still offered."""
        path = [*self._path(candidate)]
        old = {node.knob.name: name for node, name in path if node.knob}
        free = [node.knob.name for node, _ in path if node.knob and len(node.options) > 1]
        if not free:
            return candidate
        changed = free[int(rng.integers(len(free)))]

        def choose(knob: Knob, options: Options) -> str:
            if knob.name != changed:
                return _keep(options, old.get(knob.name, ""))
            # Without the old one: a mutation that changes nothing would be drawn for nothing.
            return _draw({n: o for n, o in options.items() if n != old[knob.name]}, rng)

        return self._made_by(choose)

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        """Return two children: each knob's alternative comes from either parent, for one or the other."""
        parents = self.choices(a), self.choices(b)
        sides = {knob.name: int(rng.integers(2)) for knob in self.knobs}

        def child(flip: int) -> Candidate:
            return self.candidate({name: parents[side ^ flip].get(name, "") for name, side in sides.items()})

        return child(0), child(1)

    def size(self) -> int:
        """Bound the number of candidates from above."""
        return sum(prod(knob.most for knob in knobs) for knobs in self._forms.values())

    def candidates(self) -> Iterator[Candidate]:
        """List every candidate, the last knob's alternatives fastest."""
        return self._below(self._node(()))

    def choices(self, candidate: Candidate) -> Choices:
        """Read a candidate back into the alternatives that it is made of.

        Raises:
            ScheduleError: it is not a candidate of this space.
        """
        return {node.knob.name: name for node, name in self._path(candidate) if node.knob}

    def candidate(self, choices: Choices) -> Candidate:
        """Make a candidate; a knob whose alternative is not named, or not offered, takes its default."""
        return self._made_by(lambda knob, options: _keep(options, choices.get(knob.name, "")))

    def schedule(self, candidate: Candidate) -> Schedule:
        """Return a candidate's schedule; raises ScheduleError where it is illegal."""
        try:
            names = self._names(candidate)
        except ScheduleError:  # of another space
            return resolve(self.facts.program, candidate)
        return self._node(names).context.schedule

    @property
    def schema(self) -> FeatureSchema:
        """Return the schema of `features`."""
        from planish.levels.loops.features import SCHEMA

        return SCHEMA

    def features(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Describe candidates by their schedules; any schedule of the program will do.

        Raises:
            ScheduleError: one is illegal.
        """
        from planish.levels.loops.features import features_of

        facts = self.facts
        context = context_of(facts.program, facts.machine, facts.cores, self._peak)
        return features_of([*map(self.schedule, candidates)], facts.lanes, facts.machine, context)

    def _made_by(self, choose: Callable[[Knob, Options], str]) -> Candidate:
        node = self._node(())
        while node.knob:
            node = self._node((*node.names, choose(node.knob, node.options)))
        return node.made

    def _path(self, candidate: Candidate) -> Iterator[tuple[_Node, str]]:
        """List the nodes that lead to a candidate, each with the alternative that is chosen there."""
        names = self._names(candidate)
        return ((self._node(names[:i]), name) for i, name in enumerate(names))

    def _names(self, candidate: Candidate) -> _Names:
        if isinstance(candidate, _Made) and candidate.space is self:
            return candidate.names
        node, left = self._node(()), candidate.steps
        while node.knob and (name := node.chosen(left)) is not None:
            left = left[len(node.options[name].steps) :]
            node = self._node((*node.names, name))
        if left:
            raise ScheduleError(
                f"{left[0]} is not a step of this template", "Use the space's own candidates."
            )
        return node.names

    def _find_node(self, names: _Names) -> _Node:
        if names:
            # From the node before it, which is mostly known: each knob costs its own steps alone.
            return self._after(self._node(names[:-1]), names[-1])
        unchosen = unscheduled(self.facts.program), {}, "", RegisterTile((), "", 1)
        return self._node_at(KnobContext(self.facts, *unchosen), (), ())

    def _after(self, node: _Node, name: str) -> _Node:
        """Return the node that an alternative stands for."""
        assert node.knob is not None
        option, schedule = node.options[name], node.context.schedule
        for step in option.steps:
            if isinstance(step, LoopStep):
                schedule = step.apply(schedule)
        chosen = {**node.context.chosen, node.knob.name: name}
        context = node.knob.after(replace(node.context, schedule=schedule, chosen=chosen), name)
        return self._node_at(context, node.steps + option.steps, (*node.names, name))

    def _node_at(self, context: KnobContext, steps: tuple[Step, ...], names: _Names) -> _Node:
        # The first knob's choice decides which form of the program the others are for.
        knobs = (*self._first, *self._forms[context.chosen.get("fuse", "none")])
        knob = knobs[len(names)] if len(names) < len(knobs) else None
        return _Node(self, context, steps, names, knob, knob.options(context) if knob else {})

    def _below(self, node: _Node) -> Iterator[Candidate]:
        if node.knob is None:
            yield Candidate(node.steps)
        for name in node.options:
            yield from self._below(self._after(node, name))


def _knobs_of(facts: Facts) -> tuple[Knob, ...]:
    if not facts.nest.axes:
        return ()
    return (*Tiling(facts).knobs(), *placing_knobs(facts), *nest_knobs(facts))


def _build(builds: Mapping[str, Step], facts: Facts) -> Knob:
    weight = BEST_BUILD if is_beyond_caches(facts) else BUILD_WEIGHT
    others = {name: KnobOption((step,), weight) for name, step in builds.items()}
    options = {"own": KnobOption((), 1.0), **others}
    return Knob("build", lambda _: options, len(options))


def _keep(options: Options, name: str) -> str:
    """Return an alternative, or the default where it is not offered."""
    return name if name in options else max(options, key=lambda name: options[name].weight)


def _draw(options: Options, rng: Generator) -> str:
    point = rng.random() * sum(option.weight for option in options.values())
    for name, option in options.items():
        point -= option.weight
        if point < 0:
            return name
    return list(options)[-1]  # rounding may leave the point at the very end
