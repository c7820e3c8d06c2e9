"""Random programs of csmith as subjects; they print a checksum of their globals."""

from __future__ import annotations

import tempfile
from pathlib import Path

from planish.levels.llvm.clang import Compiler
from planish.levels.llvm.program import Running
from planish.train.corpus.programs import random_program
from soundness.subject import Form, Subject, compile_subject

_OPTIONS = (
    *("--max-funcs", "6", "--max-block-depth", "3", "--max-block-size", "3"),
    *("--max-expr-complexity", "5"),
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
        source.write_text(random_program(program, seed, _OPTIONS))
        return compile_subject(f"csmith{seed}", [source], compiler, form, ("-w", f"-I{headers}"), _RUNNING)
