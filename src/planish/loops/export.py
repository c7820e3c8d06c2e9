"""Takes a kernel home: assembly, a C header and the schedule, to be used without planish."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planish.core import Candidate, PlanishError, ProgramError, Task, content_hash
from planish.loops.build import compile_with, tree_of
from planish.loops.lang.program import Program
from planish.loops.library import backend_of, library_of
from planish.loops.runtime.c_names import can_name_function
from planish.loops.runtime.header import Exported, header
from planish.loops.runtime.kernels import Kernel
from planish.loops.target import available_backends
from planish.loops.verifying import refuse_wrong


def export_kernel(task: Task[Program], candidate: Candidate, path: Path, name: str = "") -> list[Path]:
    """Write NAME.s, NAME.h and NAME.json.

    Args:
        task: of a program of this level.
        candidate: a schedule.
        path: the folder; it is made if it is not there.
        name: of the C function and the files; by default `kernel_` and eight hexadecimal digits, which
            tell the program and the schedule.

    Returns:
        The files.

    Raises:
        ProgramError: the candidate is a library's implementation, or the name is none for C.
        PlanishError: the kernel gives a wrong answer on this machine, or a file cannot be written.
    """
    library = library_of(candidate)
    if library:
        raise ProgramError(
            f"this result is computed by {library}: there is no kernel to export", "Export a schedule."
        )
    program = task.program
    name = name or f"kernel_{content_hash(program.text + candidate.text)[:8]}"
    if not can_name_function(name):
        hint = "Use letters, digits and underscores, and no word of C, C++ or <stdint.h>."
        raise ProgramError(f"'{name}' cannot name a C function", hint)
    tree = tree_of(program, candidate)
    backend = backend_of(candidate) or task.target.toolchain["backend"]
    code = compile_with(backend, tree)
    if backend in available_backends():  # else it is for another machine
        refuse_wrong(Kernel(program, tree, code, task.target.cores))
    texts = {
        "s": code.assembly(name),
        "h": header(Exported(name, program, tree, code), _title(task)),
        "json": json.dumps(_record(task, candidate, name), indent=2) + "\n",
    }
    return _write(path, name, texts)


def _title(task: Task[Program]) -> str:
    return f"{task.program.text}\nMade by planish for {task.target.processor}."


def _record(task: Task[Program], candidate: Candidate, name: str) -> Mapping[str, Any]:
    return {
        "name": name,
        "level": task.level,
        "level_version": task.level_version,
        "program": task.program.text,
        "target": json.loads(task.target.text),
        "steps": [step.to_json() for step in candidate.steps],
    }


def _write(path: Path, name: str, texts: Mapping[str, str]) -> list[Path]:
    files: list[Path] = []
    try:
        path.mkdir(parents=True, exist_ok=True)
        for suffix, text in texts.items():
            files.append(path / f"{name}.{suffix}")
            files[-1].write_text(text)
    except OSError as error:
        raise PlanishError(f"cannot write to '{path}': {error.strerror}", "Choose another folder.") from error
    return files
