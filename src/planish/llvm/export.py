"""Writing a result for use without planish."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from planish.core import Candidate, Evaluator, Measured, Outcome, PlanishError, StageClock, Task, evaluate
from planish.executors import LocalExecutor
from planish.llvm.backend import open_backend
from planish.llvm.commands import OBJECT, OPTIMISED, PREPARED, commands
from planish.llvm.evaluator_spec import prepared
from planish.llvm.passes import passes_of, print_pipeline

PIPELINE, READ_ME = "pipeline.txt", "README.txt"


def export_module(task: Task, candidate: Candidate, path: Path) -> Sequence[Path]:
    """Write the module before and after, its object, the pipeline, and how to repeat it.

    LLVM works in a process of its own, since it may crash.

    Args:
        task: the module.
        candidate: the pass list.
        path: the folder; made where it is missing.

    Returns:
        The files.

    Raises:
        PlanishError: LLVM refuses the list, or crashes.
        OSError: a file cannot be written.
    """
    path.mkdir(parents=True, exist_ok=True)
    before, passes = prepared(task), passes_of(candidate)
    (path / PREPARED).write_text(before, encoding="utf-8", errors="surrogateescape")
    (path / PIPELINE).write_text(print_pipeline(passes) + "\n")
    (path / READ_ME).write_text(_read_me(task, passes))
    with closing(LocalExecutor(_Writer(before, task.target.toolchain["backend"], path.absolute()))) as worker:
        (answer,) = evaluate(worker, [candidate])
    if not isinstance(answer.outcome, Measured):
        failed = answer.outcome
        raise PlanishError(f"cannot make {path / OPTIMISED}: {failed.reason}: {failed.detail}")
    return [path / name for name in (PREPARED, OPTIMISED, OBJECT, PIPELINE, READ_ME)]


@dataclass(frozen=True)
class _Writer:
    """Makes what writes the optimised module and its object, in a worker.

    Args:
        ir: the prepared module.
        backend: the back end's name.
        folder: where to write; an absolute path.
    """

    ir: str
    backend: str
    folder: Path

    def __call__(self) -> Evaluator:
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Write the files."""
        module = open_backend(self.backend).parse(self.ir, PREPARED)
        try:
            with clock("transform"):
                module.run(print_pipeline(passes_of(candidate)))
            with clock("build"):
                text, code = module.text(), module.object_code()
        finally:
            module.close()
        (self.folder / OPTIMISED).write_text(text, encoding="utf-8", errors="surrogateescape")
        (self.folder / OBJECT).write_bytes(code)
        return Measured({})


def _read_me(task: Task, passes: Sequence[str]) -> str:
    return f"""{PREPARED}   the module that the passes start from
{OPTIMISED}  the module that they make
{OBJECT}    the same, compiled
{PIPELINE}   the passes, as opt takes them

To repeat it:

{commands(task, tuple(passes))}
"""
