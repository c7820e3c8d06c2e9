"""When two pass lists make the same code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from functools import cache, partial

from planish.core import Candidate, PlanishError, Task
from planish.isolation import ForkLimits, in_child
from planish.llvm.backend import open_backend
from planish.llvm.evaluator_spec import prepared
from planish.llvm.passes import passes_of, print_pipeline, vary
from planish.llvm.program import IRProgram

_LIMITS = ForkLimits(seconds=10.0)


@contextmanager
def identities(task: Task[IRProgram]) -> Generator[Callable[[Candidate], str]]:
    """Give what names pass lists: by the code that they make, where the time leads.

    Where a size leads, each list names itself: searches shorten lists for size as they go, by the size. So
    does a list that fails, or that makes other code from run to run.
    """
    timed = task.objectives[0].name == "time_s"
    ir, backend = prepared(task), task.target.toolchain["backend"]

    @cache
    def name(candidate: Candidate) -> str:
        passes = passes_of(candidate)
        if not timed or vary(passes):
            return candidate.hash
        try:
            # LLVM may crash.
            made = in_child(partial(_made, ir, backend, print_pipeline(passes)), _LIMITS)
        except PlanishError:
            return candidate.hash
        return made if isinstance(made, str) else candidate.hash

    yield name


def _made(ir: str, backend: str, pipeline: str) -> str:
    with closing(open_backend(backend).parse(ir)) as module:
        module.run(pipeline)
        return hashlib.sha256(module.object_code()).hexdigest()
