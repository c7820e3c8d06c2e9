"""The knob that makes one axis of those along which all tensors have their elements in sequence."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from planish.loops.ir.fuse import fusable, fused
from planish.loops.lang.program import Program
from planish.loops.space.facts import Facts
from planish.loops.space.knob import Knob, KnobContext, KnobOption, Options
from planish.loops.space.tiling import Tiling
from planish.loops.steps import Fuse

FUSED = "all"
GAIN = 0.97
"""Share of the cycles below which the first guess has axes fused."""
PREFERENCE = 4
"""How much more plausible fewer cycles are, as a power of their ratio."""


def fusing(facts: Facts) -> tuple[Knob, Facts] | None:
    """Make the knob, with the facts of the program after it; None where there is nothing to fuse."""
    steps, program = _all(facts.program)
    if not steps:
        return None
    after = replace(facts, program=program)

    @cache
    def offered() -> Options:
        two, one = (min(Tiling(f).fewest().values(), default=1.0) for f in (facts, after))
        # By the best vector axis of each form: a fused axis is longer, so fewer lanes are unused.
        return {"none": KnobOption((), 1.0), FUSED: KnobOption(steps, (GAIN * two / one) ** PREFERENCE)}

    def options(context: KnobContext) -> Options:
        del context
        return offered()

    return Knob("fuse", options, 2, lambda c, name: replace(c, facts=after) if name == FUSED else c), after


def _all(program: Program) -> tuple[tuple[Fuse, ...], Program]:
    """Fuse as long as there are two axes that can become one."""
    steps: tuple[Fuse, ...] = ()
    while pair := next(fusable(program), None):
        steps, program = (*steps, Fuse(*pair)), fused(program, *pair) or program
    return steps, program
