"""The template space of AutoTVM: knobs, derived from the program instead of written for each operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from planish.core import UNTAUGHT, Candidate, FeatureSchema, SearchContext, Step, Target
from planish.loops.lang.program import Program
from planish.loops.space.knob import Knob, Options
from planish.loops.space.knob_tree import KnobTree

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

NO_BUILDS: Mapping[str, Step] = MappingProxyType({})
Choices = Mapping[str, str]
"""Knob to the name of the alternative that is chosen."""


class TemplateSpace:
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
        """Give the first guess: the most plausible alternative of each knob."""
        return self._tree.made_by(lambda _, options: _first_guess(options))

    def seeds(self, context: SearchContext = UNTAUGHT) -> tuple[Candidate, ...]:  # noqa: ARG002
        """Give the first guess."""
        return (self.start(),)

    def focused(self, candidates: Sequence[Candidate]) -> TemplateSpace:
        """Give this space: its knobs have weights already."""
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
        """Give two children: each knob's alternative comes from either parent, for one or the other."""
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
        """What `features` gives."""
        from planish.loops.features.schedule_columns import SCHEMA

        return SCHEMA

    def features(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Describe candidates by their schedules; any schedule of the program will do.

        Raises:
            ScheduleError: one is illegal.
        """
        from planish.loops.features.of_schedules import features_of

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
