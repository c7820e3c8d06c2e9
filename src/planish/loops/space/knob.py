"""What a knob of the template space is, and where it stands when it is turned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from planish.core import Step
from planish.loops.ir.schedule import Order, Schedule
from planish.loops.ir.tree import LoopId
from planish.loops.space.estimate import RegisterTile
from planish.loops.space.facts import Facts


@dataclass(frozen=True)
class KnobOption:
    """An alternative.

    Args:
        steps: what it does; none for leaving things as they are. One that is no step of a schedule says who
            makes its code.
        weight: how plausible it is; it is drawn in proportion, and the first guess is the greatest.
    """

    steps: tuple[Step, ...]
    weight: float


Options = Mapping[str, KnobOption]
"""Name of an alternative to the alternative; one name means the same wherever it is offered."""


@dataclass(frozen=True)
class KnobContext:
    """Where the knobs before this one have led.

    Args:
        facts: of the nest whose knobs are turned, and of the target.
        schedule: so far.
        chosen: knob to alternative, so far.
        vector: the nest's vector axis, once it is chosen.
        tile: its register tile, once it is chosen.
        main: where the main nest's knobs ended, once another nest's are turned.
    """

    facts: Facts
    schedule: Schedule
    chosen: Mapping[str, str]
    vector: str
    tile: RegisterTile
    main: KnobContext | None = None

    @cached_property
    def order(self) -> Order:
        """The nest's loops."""
        return self.schedule.loops[self.facts.number]

    def of(self, kind: str) -> str | None:
        """Give what was chosen for the nest's knob of a kind, if it was turned."""
        return self.chosen.get(knob_name(kind, self.facts))

    @cached_property
    def outer(self) -> Order:
        """The loops around the register tile and its reduction, and that reduction's cache tile."""
        core = {(axis, 1) for axis, _ in (*self.tile.rows, (self.tile.vector, 0))}
        for i, loop in enumerate(self.order):
            # The alternatives of the knob "reduce" are named after their factor.
            reduces = loop[0] in self.facts.reduced and str(loop[1]) != self.of("reduce")
            if reduces or loop in core:
                return self.order[:i]
        return self.order

    def trips(self, loops: Order) -> dict[LoopId, int]:
        """Count the iterations of each of the outermost loops, tails included."""
        left = dict(self.facts.program.size)
        found: dict[LoopId, int] = {}
        for axis, step in loops:
            found[axis, step] = -(-left[axis] // step)
            # Inside a loop an axis is as long as its step.
            left[axis] = step
        return found


@dataclass(frozen=True)
class Knob:
    """A choice.

    Args:
        name: unique in the space.
        options: what is offered where the knobs before it have led; at least one alternative, and no two of
            the same steps.
        most: it never offers more.
        after: what else the choice changes in where one stands, beside the schedule.
    """

    name: str
    options: Callable[[KnobContext], Options]
    most: int
    after: Callable[[KnobContext, str], KnobContext] = lambda context, _: context


def knob_name(kind: str, facts: Facts) -> str:
    """Name a nest's knob: "tile" for the main nest's, "tile O" for that of the nest that writes O."""
    return f"{kind} {facts.nest_name}".rstrip()
