"""Evaluator, baseline and identities of a task.

Two lists are identical where they make the same code.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any

from planish.core import Candidate, Identity, PlanishError, ProgramError, Task
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.c_source import is_source
from planish.levels.llvm.evaluator import (
    COUNTS,
    LAST_TIMING,
    TIMING,
    LlvmEvaluatorSpec,
    TimedEvaluatorSpec,
    reproduces,
)
from planish.levels.llvm.function_steps import is_of_functions
from planish.levels.llvm.ir.attributes import for_size, without_optnone
from planish.levels.llvm.machine import elements_of
from planish.levels.llvm.passes.catalogue import vary
from planish.levels.llvm.passes.pipeline import candidate_of, passes_of, print_pipeline
from planish.levels.llvm.passes.space import oz_of
from planish.levels.llvm.program import IRProgram, Running
from planish.sandbox import Limits
from planish.sandbox.fork_pool import ForkLimits, in_child

_FAST = "default<O3>"
_PAIRED_S = 40.0
"""Seconds that interleaved measuring, perhaps twice, may take longer than measuring alone."""
_PACE = 1000.0
"""Instructions for which the limit of each stage is a second longer."""


def evaluator_spec_of(task: Task[IRProgram], *, final: bool = False) -> LlvmEvaluatorSpec:
    """Make the spec for a task's evaluator; in a search by time the baseline comes first, and is sampled.

    Raises:
        ProgramError: as `plain_spec_of`.
    """
    spec = plain_spec_of(task, final=final)
    if final or task.objectives[0].name != "time_s":
        return spec
    return timed_spec_of(task, [baseline_of(task)])


def plain_spec_of(task: Task[IRProgram], *, final: bool = False) -> LlvmEvaluatorSpec:
    """Make the spec for an evaluator that measures each candidate alone.

    Raises:
        ProgramError: the time is asked for, and neither the module nor a harness has a `main`.
    """
    program = task.program
    names = frozenset(objective.name for objective in task.objectives)
    if "time_s" in names and not program.can_run:
        raise ProgramError(
            f"{program.title} has no 'main' that could be timed", 'Give one that calls it: harness="FILE.c".'
        )
    if program.linked and not program.linked.code:
        raise ProgramError(f"{program.title} is a part of a linked program", "Link it again by planish cc.")
    backend = task.target.toolchain["backend"]
    more = program.instructions / _PACE
    limits = Limits(
        transform=10 + more,
        build=10 + more,
        verify=20 + more,
        run=20 + more,
        worker=60 + more,
        lifetime=open_bindings(backend).lifetime,
    )
    return LlvmEvaluatorSpec(
        prepared(task),
        program.running if is_run(task) else None,
        names,
        backend,
        limits,
        LAST_TIMING if final else TIMING,
        remember=not final,
        linked=program.linked,
        passes=baseline_passes(task),
    )


def timed_spec_of(task: Task[IRProgram], sampled: Sequence[Candidate]) -> TimedEvaluatorSpec:
    """Make the spec of a search by time; of some candidates it is measured, too, where their time goes.

    Raises:
        ProgramError: as `plain_spec_of`.
    """
    plain = plain_spec_of(task)
    known: dict[str, Any] = vars(plain) | {"limits": replace(plain.limits, run=plain.limits.run + _PAIRED_S)}
    hashes = frozenset(each.hash for each in sampled)
    return TimedEvaluatorSpec(**known, baseline=baseline_of(task), sampled=hashes)


def is_run(task: Task[IRProgram]) -> bool:
    """Return whether candidates are run: where the time is measured, or where the user asked for it.

    A module is code that may do anything, so its `main` alone is not a reason to.
    """
    program = task.program
    timed = any(objective.name == "time_s" for objective in task.objectives)
    return program.can_run and (timed or program.running != Running())


def prepared(task: Task[IRProgram]) -> str:
    """Return the module that every candidate starts from.

    Where size leads, every definition is `minsize optsize`, as clang -Oz has it; `default<Oz>` alone is
    weaker. Where time leads, they keep what they have. None is `optnone`.
    """
    change = without_optnone if task.objectives[0].name == "time_s" else for_size
    return change(task.program.ir)


def baseline_of(task: Task[IRProgram]) -> Candidate:
    """Return the baseline: what a user has without planish; of a linked program the compiler's object."""
    return Candidate() if task.program.linked else candidate_of(baseline_passes(task))


def baseline_passes(task: Task[IRProgram]) -> tuple[str, ...]:
    """Return the baseline: what a user has without planish.

    For size this is -Oz as clang means it: `default<Oz>` on what `prepared` returns; `default<O2>` on the
    same makes as small code where LLVM (from 23 on), or the back end, has no `default<Oz>`. For time it is
    -O3: -Oz would flatter every gain.
    """
    if task.objectives[0].name == "time_s":
        return (_FAST,)
    oz = oz_of({element.text for element in elements_of(task.target)})
    assert oz is not None
    return (oz,)


def baseline_text(task: Task[IRProgram]) -> str:
    """Print what the baseline makes of the module that every candidate starts from."""
    with closing(open_bindings(task.target.toolchain["backend"]).parse(prepared(task))) as module:
        module.run(print_pipeline(baseline_passes(task)))
        return module.text()


_LIMITS = ForkLimits(seconds=10.0)


@contextmanager
def identities(task: Task[IRProgram]) -> Generator[Callable[[Candidate], Identity]]:
    """Provide what names pass lists: by the code that they make, where the time leads; else by its size.

    A list that fails names itself, and so does one that makes other code from run to run: where the time
    leads any that may, and of a size those that are no larger than all before and did.
    """
    leads = task.objectives[0].name
    timed = leads == "time_s"
    ir, backend = prepared(task), task.target.toolchain["backend"]
    least = math.inf

    @cache
    def name(candidate: Candidate) -> Identity:
        nonlocal least
        if is_of_functions(candidate) or is_source(candidate):
            return candidate.hash
        passes = passes_of(candidate)
        may_vary = vary(passes)
        # Other code from run to run: one measurement says nothing about the next.
        if timed and may_vary:
            return candidate.hash
        try:
            look = partial(_made, ir, backend, print_pipeline(passes), leads, least if may_vary else -1)
            made = in_child(look, Identity | None, _LIMITS)  # LLVM may crash
        except PlanishError:
            return candidate.hash
        if isinstance(made, int):
            least = min(least, made)
        return made if isinstance(made, str | int) else candidate.hash

    yield name


def _made(ir: str, backend: str, pipeline: str, leads: str, check_up_to: float) -> Identity | None:
    """Name what a pipeline makes; None where it is invalid, or varies at a size up to `check_up_to`."""
    with ExitStack() as stack:
        original = stack.enter_context(closing(open_bindings(backend).parse(ir)))
        module = stack.enter_context(closing(original.clone()))
        module.run(pipeline)
        if module.verify():
            return None
        if leads not in COUNTS:
            return hashlib.sha256(module.object_code()).hexdigest()
        count = module.instructions() if leads == "instructions" else module.text_bytes()
        return None if count <= check_up_to and not reproduces(original, module, pipeline) else count
