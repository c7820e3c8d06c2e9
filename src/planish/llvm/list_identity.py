"""When two pass lists make the same: the same code, or as much of it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from functools import cache, partial

from planish.core import Candidate, Identity, PlanishError, Task
from planish.isolation import ForkLimits, in_child
from planish.llvm.backend import open_backend
from planish.llvm.evaluator import COUNTS
from planish.llvm.evaluator_spec import prepared
from planish.llvm.passes import passes_of, print_pipeline, vary
from planish.llvm.program import IRProgram
from planish.llvm.repeating import reproduces

_LIMITS = ForkLimits(seconds=10.0)


@contextmanager
def identities(task: Task[IRProgram]) -> Generator[Callable[[Candidate], Identity]]:
    """Give what names pass lists: by the code that they make, where the time leads; else by its size.

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
        passes = passes_of(candidate)
        doubtful = vary(passes)
        # Other code from run to run: one look tells nothing of the next.
        if timed and doubtful:
            return candidate.hash
        try:
            look = partial(_made, ir, backend, print_pipeline(passes), leads, least if doubtful else -1)
            made = in_child(look, Identity | None, _LIMITS)  # LLVM may crash
        except PlanishError:
            return candidate.hash
        if isinstance(made, int):
            least = min(least, made)
        return made if isinstance(made, str | int) else candidate.hash

    yield name


def _made(ir: str, backend: str, pipeline: str, leads: str, doubted: float) -> Identity | None:
    """Name what a pipeline makes; None where that is invalid, or of at most a doubted size and varies."""
    with ExitStack() as stack:
        original = stack.enter_context(closing(open_backend(backend).parse(ir)))
        module = stack.enter_context(closing(original.clone()))
        module.run(pipeline)
        if module.verify():
            return None
        if leads not in COUNTS:
            return hashlib.sha256(module.object_code()).hexdigest()
        count = module.instructions() if leads == "instructions" else module.text_bytes()
        return None if count <= doubted and not reproduces(original, module, pipeline) else count
