"""When two pass lists make the same: the same code, or as much of it."""

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
    """Give what names pass lists: by the code that they make, where the time leads; else by its size.

    A list that fails names itself, and so does one that makes other code from run to run, where the time
    leads; of a size that is no matter: what is left is measured again.
    """
    leads = task.objectives[0].name
    timed = leads == "time_s"
    ir, backend = prepared(task), task.target.toolchain["backend"]

    @cache
    def name(candidate: Candidate) -> str:
        passes = passes_of(candidate)
        # Other code from run to run: one look tells nothing of the next.
        if timed and vary(passes):
            return candidate.hash
        try:
            # LLVM may crash.
            made = in_child(partial(_made, ir, backend, print_pipeline(passes), leads), _LIMITS)
        except PlanishError:
            return candidate.hash
        return made if isinstance(made, str) else candidate.hash

    yield name


def _made(ir: str, backend: str, pipeline: str, leads: str) -> str:
    with closing(open_backend(backend).parse(ir)) as module:
        module.run(pipeline)
        if leads == "instructions":
            return str(module.instructions())
        if leads == "text_bytes":
            return str(module.text_bytes())
        return hashlib.sha256(module.object_code()).hexdigest()
