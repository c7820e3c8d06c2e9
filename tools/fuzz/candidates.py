"""Random candidates of a program, of every kind that users and searchers make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from numpy.random import Generator

from fuzz.case import Case
from fuzz.draw import chance, draw_program, pick, shuffled
from planish.core import Candidate, ScheduleError, Target, rng
from planish.levels.loops.backends import PREFERRED
from planish.levels.loops.ir.schedule import Schedule, loop_text
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.cursor import CursorSpace, resolve
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.steps import (
    Fuse,
    LoopStep,
    Merge,
    Pack,
    Parallel,
    Reorder,
    Split,
    Stage,
    Swap,
    Unroll,
    Vectorize,
    fusable,
)

FACTORS = (2, 3, 4, 5, 6, 8, 12, 16, 17, 32)
MOST_STEPS = 12
SPECIAL_SHARE = 0.25

_Make = Callable[[Program, TemplateSpace, Generator], Candidate]


def cases(seed: int, number: int, programs: str = "") -> Iterator[Case]:
    """List the cases of a random program, of one kind or any: a candidate of each kind for each back end."""
    random = rng(seed, number)
    program = draw_program(random, programs)
    special = chance(random, SPECIAL_SHARE)
    base = Case(program.text, "[]", PREFERRED[0], 1, special, int(random.integers(1 << 30)))
    for backend in PREFERRED:
        for kind, make in KINDS.items():
            cores = pick(random, (1, 1, 2))
            space = TemplateSpace(program, Target("", frozenset({backend}), cores, {"backend": backend}))
            found = make(program, space, random)
            yield replace(base, steps=found.text, backend=backend, cores=cores, kind=kind)


def _template(program: Program, space: TemplateSpace, random: Generator) -> Candidate:
    del program
    return space.sample(random)


def _first_guess(program: Program, space: TemplateSpace, random: Generator) -> Candidate:
    del program, random
    return space.start()


def _own_loops(program: Program, space: TemplateSpace, random: Generator) -> Candidate:
    """Draw each nest's vector axis, and how many loops it shares, where a sample mostly follows."""
    chosen = dict(space.choices(space.sample(random)))
    for knob in space.knobs:
        if knob.name.startswith("loops "):
            chosen[knob.name] = f"{int(random.integers(3))} {pick(random, tuple(program.size))}"
    return space.candidate(chosen)


def _mutation(program: Program, space: TemplateSpace, random: Generator) -> Candidate:
    del program
    candidate, _ = space.crossover(space.sample(random), space.start(), random)
    for _ in range(int(random.integers(1, 4))):
        candidate = space.mutate(candidate, random)
    return candidate


def _cursor(program: Program, space: TemplateSpace, random: Generator) -> Candidate:
    del space
    return CursorSpace(program).sample(random)


def _steps(program: Program, space: TemplateSpace, random: Generator) -> Candidate:
    del space
    pairs = list(fusable(program))
    fused = (Fuse(*pick(random, pairs)),) if pairs and chance(random, 0.5) else ()
    return _walked(program, Candidate(fused), random)


def _template_and_steps(program: Program, space: TemplateSpace, random: Generator) -> Candidate:
    return _walked(program, space.sample(random), random)


def _packs(program: Program, space: TemplateSpace, random: Generator) -> Candidate:
    """Put copies of tensors into a sample, the whole of a tensor being the likeliest."""
    candidate = space.sample(random)
    schedule = resolve(program, candidate)
    for _ in range(pick(random, (1, 1, 2, 3))):
        i = int(random.integers(len(schedule.graph.nests)))
        nest, loops = schedule.graph.nests[i], [loop_text(loop) for loop in schedule.loops[i]]
        tensor = pick(random, [*(o.access.tensor for o in nest.operands), nest.statement.target.tensor])
        step = Pack(tensor, pick(random, ["root", "root", *loops]), chance(random, 0.1), nest.name)
        try:
            schedule = step.apply(schedule)
        except ScheduleError:
            continue
        candidate = candidate.then(step)
    return candidate


KINDS: Mapping[str, _Make] = {
    "first guess": _first_guess,
    "template": _template,
    "own loops": _own_loops,
    "mutation": _mutation,
    "packs": _packs,
    "cursor": _cursor,
    "steps": _steps,
    "template, steps": _template_and_steps,
}


def _walked(program: Program, candidate: Candidate, random: Generator) -> Candidate:
    """Add random steps on any of the nests, without those that are illegal."""
    schedule = resolve(program, candidate)
    for _ in range(int(random.integers(1, MOST_STEPS + 1))):
        step = _step(schedule, random)
        try:
            schedule = step.apply(schedule) if step else schedule
        except ScheduleError:
            continue
        candidate = candidate.then(step) if step else candidate
    return candidate


def _step(schedule: Schedule, random: Generator) -> LoopStep | None:
    """Draw a step on some nest, legal or not; None where the nest has no loops."""
    i = int(random.integers(len(schedule.graph.nests)))
    nest, loops = schedule.graph.nests[i], [loop_text(loop) for loop in schedule.loops[i]]
    if not loops:
        return None
    loop, name = pick(random, loops), nest.name
    axis, _, step = loop.partition(":")
    tensors = [*(o.access.tensor for o in nest.operands), nest.statement.target.tensor]
    ahead = chance(random, 0.2)
    made: Sequence[LoopStep] = (
        Split(axis, pick(random, FACTORS), name),
        Split(axis, pick(random, FACTORS), name),
        Pack(pick(random, tensors), "root" if ahead else pick(random, ["root", *loops]), ahead, name),
        Pack(pick(random, tensors), "root" if ahead else pick(random, ["root", *loops]), ahead, name),
        Reorder(tuple(shuffled(random, loops)), name),
        Swap(loop, pick(random, loops), name),
        Merge(axis, int(step or 1), name),
        Stage(nest.statement.target.tensor, loop),
        Parallel(loops[0], name),
        Unroll(loop, name),
        Vectorize(loop, name),
    )
    return pick(random, made)
