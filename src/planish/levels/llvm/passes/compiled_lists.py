"""Functions compiled by pass lists, each in a forked child: lists that models write may end LLVM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from planish.core import PlanishError
from planish.levels.llvm.backend import Backend, IRError, PassError
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.ir.normalise import normalise
from planish.levels.llvm.passes.pipeline import print_pipeline
from planish.sandbox.fork_pool import Watchdog, forked

Passes = tuple[str, ...]


@dataclass(frozen=True)
class Compiled:
    """A function as a list compiles it.

    Args:
        instructions: of it.
        code: it, normalised as the corpus is.
    """

    instructions: int
    code: str


def compile_lists(
    backend: Backend, jobs: Iterable[tuple[str, Passes]], processes: int = 1
) -> list[Compiled | None]:
    """Run lists on functions, prepared for size as clang's -Oz has it.

    Returns:
        In the order of the jobs; None where the list is refused, is invalid, or ends LLVM.
    """

    def work(job: tuple[int, str, Passes], watchdog: Watchdog) -> tuple[int, Compiled | None]:
        return job[0], _compiled(backend, *job[1:], watchdog)

    numbered = [(index, *job) for index, job in enumerate(jobs)]
    found: list[Compiled | None] = [None] * len(numbered)
    with closing(forked(numbered, work, tuple[int, Compiled | None], processes, at_once=64)) as over:
        for one in over:
            one.check()
            if one.answer:
                found[one.answer[0]] = one.answer[1]
    return found


def reading_error(backend: Backend, ir: str) -> str:
    """Return what LLVM says of a text that a model wrote; "" where it is a valid module."""
    try:
        backend.parse(ir).close()
    except IRError as error:
        return error.message
    return ""


def _compiled(backend: Backend, ir: str, passes: Sequence[str], watchdog: Watchdog) -> Compiled | None:
    pipeline = _pipeline(passes)
    if pipeline is None or not watchdog.enter(pipeline):
        return None
    try:
        module = backend.parse(for_size(ir))
    except IRError:
        return None
    with closing(module):
        try:
            module.run(pipeline)
        except PassError:
            return None
        return None if module.verify() else Compiled(module.instructions(), normalise(module.text()))


def _pipeline(passes: Sequence[str]) -> str | None:
    try:
        return print_pipeline(passes)
    except PlanishError:  # a model may name a pass that this LLVM lacks
        return None
