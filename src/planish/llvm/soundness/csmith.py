"""Random C programs without undefined behaviour, made by csmith; they print a checksum of their globals."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from planish.core import PlanishError
from planish.llvm.clang import Compiler
from planish.llvm.program import Running
from planish.llvm.soundness.subject import Form, Subject, compile_subject

_SECONDS = 60.0
_OPTIONS = (
    "--max-funcs",
    "6",
    "--max-block-depth",
    "3",
    "--max-block-size",
    "3",
    "--max-expr-complexity",
    "5",
)
# With an argument, the program prints the checksum after each global: a difference shows where it begins.
_RUNNING = Running(args=("1",))


def csmith_program(program: str, headers: Path, seed: int, compiler: Compiler, form: Form) -> Subject:
    """Make a random program; one seed gives one program.

    Args:
        program: csmith.
        headers: the folder of its run-time library's headers.
        seed: csmith's.
        compiler: makes the IR.
        form: what the passes are given.

    Raises:
        PlanishError: csmith fails, or does not end.
        ProgramError: the program does not compile.
    """
    with tempfile.TemporaryDirectory(prefix="planish-csmith-") as folder:
        source = Path(folder, f"csmith{seed}.c")
        command = [program, "--seed", str(seed), *_OPTIONS, "--output", str(source)]
        try:
            # It leaves a file where it is run.
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_SECONDS)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise PlanishError(f"csmith makes no program of seed {seed}: {error}") from error
        return compile_subject(f"csmith{seed}", [source], compiler, form, ("-w", f"-I{headers}"), _RUNNING)
