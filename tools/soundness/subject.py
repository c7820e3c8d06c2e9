"""Programs that the passes are tried on: samples, and random ones of csmith."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from planish.levels.llvm.clang import Compiler
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.program import Running
from planish.train.corpus.programs import random_program

Form = Literal["size", "typed", "plain", "fast"]
"""What the passes are given.

`size` is what the level tunes for size: code of -O0, with `minsize optsize`. `typed` is what clang -Oz gives
its passes: with these attributes, types of memory accesses, lifetimes, and functions that may be inlined.
`plain` is code of -O0. `fast` is what clang -O3 gives its passes.
"""

SAMPLES = Path(__file__).with_name("samples")
"""Small programs in C."""
_LEVELS = {"typed": "Oz", "fast": "O3"}
_UNOPTIMIZED = ("-Xclang", "-disable-llvm-passes")


@dataclass(frozen=True)
class Subject:
    """A program that can be run.

    Args:
        name: for people, and for the folders of reproducers.
        modules: the IR of its modules; passes transform each by itself.
        running: how it is run.
    """

    name: str
    modules: tuple[str, ...]
    running: Running = field(default_factory=Running)


def compile_subject(
    name: str,
    sources: Sequence[Path],
    compiler: Compiler,
    form: Form,
    flags: Sequence[str] = (),
    running: Running | None = None,
) -> Subject:
    """Compile C files to a subject.

    Args:
        name: its name; the form is added to it.
        sources: one for each module.
        compiler: makes the IR.
        form: what the passes are given.
        flags: further arguments of the compiler.
        running: how it is run.

    Raises:
        ProgramError: a file does not compile.
    """
    modules = tuple(_compiled(source, compiler, form, flags) for source in sources)
    return Subject(f"{name}-{form}", modules, running or Running())


def _compiled(source: Path, compiler: Compiler, form: Form, flags: Sequence[str]) -> str:
    if form in _LEVELS:
        return compiler.to_ir(source, (*_UNOPTIMIZED, *flags), _LEVELS[form])
    ir = compiler.to_ir(source, flags)
    return for_size(ir) if form == "size" else ir


def samples(compiler: Compiler, form: Form) -> Subject:
    """Compile the sample programs: small ones in one executable, a module each."""
    return compile_subject("samples", sorted(SAMPLES.glob("*.c")), compiler, form)


_CSMITH_OPTIONS = (
    *("--max-funcs", "6", "--max-block-depth", "3", "--max-block-size", "3"),
    *("--max-expr-complexity", "5"),
)
# With an argument, the program prints the checksum after each global: a difference shows where it begins.
_CSMITH_RUNNING = Running(args=("1",))


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
        source.write_text(random_program(program, seed, _CSMITH_OPTIONS))
        return compile_subject(
            f"csmith{seed}", [source], compiler, form, ("-w", f"-I{headers}"), _CSMITH_RUNNING
        )
