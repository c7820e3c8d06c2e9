"""Writing a result for use without planish."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from planish.core import Candidate, PlanishError, Task
from planish.isolation import End, ForkLimits, in_child
from planish.llvm.backend import open_backend
from planish.llvm.evaluator_spec import prepared
from planish.llvm.passes import passes_of, print_pipeline
from planish.llvm.program import IRProgram
from planish.llvm.repeat_commands import OBJECT, OPTIMISED, PREPARED, commands

_LIMITS = ForkLimits(seconds=60.0)
PIPELINE, READ_ME = "pipeline.txt", "README.txt"


def export_module(task: Task[IRProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
    """Write the module before and after, its object, the pipeline, and how to repeat it.

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
    text, code = _made_apart(path, before, task.target.toolchain["backend"], print_pipeline(passes))
    (path / OPTIMISED).write_text(text, encoding="utf-8", errors="surrogateescape")
    (path / OBJECT).write_bytes(code)
    return [path / name for name in (PREPARED, OPTIMISED, OBJECT, PIPELINE, READ_ME)]


def _made_apart(path: Path, ir: str, backend: str, pipeline: str) -> tuple[str, bytes]:
    """Do as `_made` in a child, since LLVM may crash."""
    try:
        made = in_child(partial(_made, ir, backend, pipeline), tuple[str, bytes], _LIMITS)
    except PlanishError as error:
        raise PlanishError(f"cannot make {path / OPTIMISED}: {error.message}") from error
    if isinstance(made, End):
        raise PlanishError(f"cannot make {path / OPTIMISED}: {made.detail}")
    return made


def _made(ir: str, backend: str, pipeline: str) -> tuple[str, bytes]:
    """Run the passes; gives the module's text and its object."""
    module = open_backend(backend).parse(ir, PREPARED)
    try:
        module.run(pipeline)
        return module.text(), module.object_code()
    finally:
        module.close()


def _read_me(task: Task, passes: Sequence[str]) -> str:
    return f"""{PREPARED}   the module that the passes start from
{OPTIMISED}  the module that they make
{OBJECT}    the same, compiled
{PIPELINE}   the passes, as opt takes them

To repeat it:

{commands(task, tuple(passes))}
"""
