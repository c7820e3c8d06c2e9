"""The template space of AutoTVM: knobs, derived from the program instead of written for each operator.

The knobs form a tree: what each offers depends on the choices before it.
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
from planish.levels.loops.ir.schedule import Schedule, unscheduled
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.costs import RegisterTile, is_beyond_caches, is_memory_bound
from planish.levels.loops.space.cursor import resolve
from planish.levels.loops.space.facts import Facts
from planish.levels.loops.space.knobs import FUSED, Knob, KnobContext, KnobOption, Options, Tiling, fusing
from planish.levels.loops.space.nest_knobs import nest_knobs, placing_knobs
from planish.levels.loops.steps import LoopStep

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

# Tree of knobs

KNOWN_MAX = 4096
"""Nodes of the tree that are cached: neighbours have most of their way in common."""

BUILD_WEIGHT, BEST_BUILD = 0.5, 2.0
"""Of another code generator, where the target's own has 1; and where it is the first guess."""

Choose = Callable[[Knob, Options], str]
_Names = tuple[str, ...]
"""Alternatives of the first knobs."""


@dataclass(frozen=True)
class _Node:
    """State after alternatives of the first knobs, and what the next knob offers; nothing at the end."""

    context: KnobContext
    knob: Knob | None
    options: Options

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


class KnobTree:
    """The ways through knobs, in the knobs' order: each is the names of alternatives, and makes a candidate.

    Args:
        program: what is scheduled.
        target: whose vector registers and cores are reckoned with.
        builds: other code generators that may be chosen, name to step.

    Attributes:
        facts: of the program on the target.
    """

    def __init__(self, program: Program, target: Target, builds: Mapping[str, Step]) -> None:
        self.facts = Facts.of(program, target)
        last = (_build(builds, self.facts),) if builds and is_memory_bound(self.facts) else ()
        self._first: tuple[Knob, ...] = ()
        self._forms = {"none": (*_knobs_of(self.facts), *last)}
        if fuse := fusing(self.facts):
            self._first = (fuse[0],)
            self._forms[FUSED] = (*_knobs_of(fuse[1]), *last)
        self._node = lru_cache(maxsize=KNOWN_MAX)(self._find_node)
        self._made = lru_cache(maxsize=KNOWN_MAX)(self._make)
        self._read = lru_cache(maxsize=KNOWN_MAX)(self._read_back)
        self._last: dict[Candidate, _Names] = {}  # candidates that were made lately, and of what

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """All knobs, each once; those that stand for axes depend on whether axes are fused."""
        every = (*self._first, *(knob for knobs in self._forms.values() for knob in knobs))
        return tuple({knob.name: knob for knob in reversed(every)}.values())[::-1]

    @property
    def most(self) -> int:
        """Bound the number of ways from above."""
        return sum(prod(knob.most for knob in knobs) for knobs in self._forms.values())

    def every(self) -> Iterator[Candidate]:
        """Return what each way makes, the last knob's alternatives fastest."""
        return (Candidate(steps) for steps in self._all(self._begin(), ()))

    def made_by(self, choose: Choose) -> Candidate:
        """Make the candidate of what is chosen at each knob."""
        names: _Names = ()
        while knob := (node := self._node(names)).knob:
            names = (*names, choose(knob, node.options))
        return self._made(names)

    def read(self, candidate: Candidate) -> tuple[tuple[str, str, Options], ...]:
        """List each knob with what a candidate chooses and what was offered.

        Raises:
            ScheduleError: the candidate is of another space.
        """
        return self._read(candidate)

    def schedule(self, candidate: Candidate) -> Schedule:
        """Return a candidate's schedule, which is known where it was made here."""
        names = self._last.get(candidate)
        if names is None:
            try:
                names = tuple([name for _, name, _ in self.read(candidate)])
            except ScheduleError:  # of another space
                return resolve(self.facts.program, candidate)
        return self._node(names).context.schedule

    def _begin(self) -> KnobContext:
        return KnobContext(self.facts, unscheduled(self.facts.program), {}, "", RegisterTile((), "", 1))

    def _make(self, names: _Names) -> Candidate:
        """Make the candidate of these alternatives, one for each knob; it may be met again and again."""
        options = (self._node(names[:i]).options[name] for i, name in enumerate(names))
        made = Candidate(tuple(step for option in options for step in option.steps))
        # It is only a short cut: what is forgotten is read back from its steps.
        if len(self._last) == KNOWN_MAX:
            self._last.clear()
        self._last[made] = names
        return made

    def _find_node(self, names: _Names) -> _Node:
        if names:
            # From the node before it, which is mostly known: each knob costs its own steps alone.
            before = self._node(names[:-1])
            assert before.knob is not None
            context = self._after(before.context, before.knob, names[-1], before.options[names[-1]])
        else:
            context = self._begin()
        knob = self._next(context)
        return _Node(context, knob, knob.options(context) if knob else {})

    def _next(self, context: KnobContext) -> Knob | None:
        """Return the knob to turn next; the first one says which form of the program the others are for."""
        knobs = (*self._first, *self._forms[context.chosen.get("fuse", "none")])
        return knobs[len(context.chosen)] if len(context.chosen) < len(knobs) else None

    def _after(self, context: KnobContext, knob: Knob, name: str, option: KnobOption) -> KnobContext:
        schedule = context.schedule
        for step in option.steps:
            if isinstance(step, LoopStep):
                schedule = step.apply(schedule)
        chosen = {**context.chosen, knob.name: name}
        return knob.after(replace(context, schedule=schedule, chosen=chosen), name)

    def _read_back(self, candidate: Candidate) -> tuple[tuple[str, str, Options], ...]:
        if made := self._last.get(candidate):
            nodes = ((name, self._node(made[:i])) for i, name in enumerate(made))
            return tuple([(node.knob.name, name, node.options) for name, node in nodes if node.knob])
        read: list[tuple[str, str, Options]] = []
        names, left = _Names(), candidate.steps
        while knob := (node := self._node(names)).knob:
            name = node.chosen(left)
            if name is None:
                break
            read.append((knob.name, name, node.options))
            names, left = (*names, name), left[len(node.options[name].steps) :]
        if left:
            raise ScheduleError(f"{left[0]} is no step of this template", "Use the space's own candidates.")
        return tuple(read)

    def _all(self, context: KnobContext, steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
        knob = self._next(context)
        if knob is None:
            yield steps
            return
        for name, option in knob.options(context).items():
            yield from self._all(self._after(context, knob, name, option), steps + option.steps)


def _knobs_of(facts: Facts) -> tuple[Knob, ...]:
    if not facts.nest.axes:
        return ()
    return (*Tiling(facts).knobs(), *placing_knobs(facts), *nest_knobs(facts))


def _build(builds: Mapping[str, Step], facts: Facts) -> Knob:
    weight = BEST_BUILD if is_beyond_caches(facts) else BUILD_WEIGHT
    others = {name: KnobOption((step,), weight) for name, step in builds.items()}
    options = {"own": KnobOption((), 1.0), **others}
    return Knob("build", lambda _: options, len(options))


# Space

NO_BUILDS: Mapping[str, Step] = MappingProxyType({})
Choices = Mapping[str, str]
"""Knob to the name of the alternative that is chosen."""


class TemplateSpace(Space):
    """Candidates that are made of one alternative of each knob, in the knobs' order.

    AutoTVM's templates are written by hand for each operator and each processor (section 2 of its
    paper). Here the knobs are derived: axes that are one in memory, the vector axis, a register tile that
    the register file holds, unrolling, tiles for the caches, the order of the outer loops, packing of each
    tensor, threads; of every other nest whether it follows the main one's loops, or has its own; and who
    makes the code of what only flows through memory.

    Args:
        program: what is scheduled.
        target: whose vector registers and cores are reckoned with.
        builds: other code generators that may be chosen, name to step.
    """

    def __init__(self, program: Program, target: Target, builds: Mapping[str, Step] = NO_BUILDS) -> None:
        self._tree = KnobTree(program, target, builds)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """All knobs, each once; those that stand for axes depend on whether axes are fused."""
        return self._tree.knobs

    def start(self) -> Candidate:
        """Return the first guess: the most plausible alternative of each knob."""
        return self._tree.made_by(lambda _, options: _first_guess(options))

    def seeds(self, context: SearchContext = EMPTY_CONTEXT) -> tuple[Candidate, ...]:  # noqa: ARG002
        """Return the first guess."""
        return (self.start(),)

    def focused(self, candidates: Sequence[Candidate]) -> TemplateSpace:
        """Return this space: its knobs have weights already."""
        del candidates
        return self

    def sample(self, rng: Generator) -> Candidate:
        """Draw each knob's alternative by its weight."""
        return self._tree.made_by(lambda _, options: _draw(options, rng))

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        """Choose anew for one knob; the others keep their alternatives where these are still offered."""
        read = self._tree.read(candidate)
        old = {name: chosen for name, chosen, _ in read}
        free = [name for name, _, options in read if len(options) > 1]
        if not free:
            return candidate
        changed = free[int(rng.integers(len(free)))]

        def choose(knob: Knob, options: Options) -> str:
            if knob.name != changed:
                return _keep(options, old.get(knob.name, ""))
            # Without the old one: a mutation that changes nothing would be drawn for nothing.
            return _draw({n: o for n, o in options.items() if n != old[knob.name]}, rng)

        return self._tree.made_by(choose)

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        """Return two children: each knob's alternative comes from either parent, for one or the other."""
        parents = self.choices(a), self.choices(b)
        sides = {knob.name: int(rng.integers(2)) for knob in self.knobs}

        def child(flip: int) -> Candidate:
            return self._tree.made_by(lambda k, o: _keep(o, parents[sides[k.name] ^ flip].get(k.name, "")))

        return child(0), child(1)

    def size(self) -> int:
        """Bound the number of candidates from above."""
        return self._tree.most

    def candidates(self) -> Iterator[Candidate]:
        """List every candidate, the last knob's alternatives fastest."""
        return self._tree.every()

    def choices(self, candidate: Candidate) -> Choices:
        """Read a candidate back into the alternatives that it is made of.

        Raises:
            ScheduleError: it is not a candidate of this space.
        """
        return {name: chosen for name, chosen, _ in self._tree.read(candidate)}

    def candidate(self, choices: Choices) -> Candidate:
        """Make a candidate; a knob whose alternative is not named, or not offered, takes the first guess."""
        return self._tree.made_by(lambda knob, options: _keep(options, choices.get(knob.name, "")))

    @property
    def schema(self) -> FeatureSchema:
        """Return what `features` gives."""
        from planish.levels.loops.features import SCHEMA

        return SCHEMA

    def features(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Describe candidates by their schedules; any schedule of the program will do.

        Raises:
            ScheduleError: one is illegal.
        """
        from planish.levels.loops.features import features_of

        return features_of(
            [*map(self._tree.schedule, candidates)], self._tree.facts.lanes, self._tree.facts.machine
        )


def _first_guess(options: Options) -> str:
    return max(options, key=lambda name: options[name].weight)


def _keep(options: Options, name: str) -> str:
    return name if name in options else _first_guess(options)


def _draw(options: Options, rng: Generator) -> str:
    point = rng.random() * sum(option.weight for option in options.values())
    for name, option in options.items():
        point -= option.weight
        if point < 0:
            return name
    return list(options)[-1]  # rounding may leave the point at the very end
