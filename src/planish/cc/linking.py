"""Sources to a program: each is compiled by itself, and clang links what comes of it."""

from __future__ import annotations

import os
import tempfile

from planish.cc.arguments import Invocation
from planish.cc.cc_settings import CompileSettings
from planish.cc.compiler import Compiler
from planish.cc.compiling import compile_unit
from planish.cc.frontend import Unit, wait
from planish.cc.interrupts import Stoppable
from planish.cc.object_cache import ObjectCache


def compile_and_link(
    compiler: Compiler, invocation: Invocation, settings: CompileSettings, cache: ObjectCache
) -> int | None:
    """Make a program; the exit code, or None where clang shall do it all by itself."""
    words = list(invocation.words)
    program = invocation.output or "a.out"
    with Stoppable(), tempfile.TemporaryDirectory(prefix="planish-") as folder:
        for source in invocation.sources:
            if source.language:
                name = os.path.splitext(os.path.basename(source.path))[0]
                path = os.path.join(folder, f"{name}-{source.index}.o")
                if not compile_unit(Unit(compiler, invocation, source, path, program), settings, cache):
                    return None
                words[source.index] = path
        command = [*compiler.command, *words, "-Qunused-arguments"]
        code = _code(wait(os.posix_spawn(compiler.path, command, os.environ)))
        if not code and settings.for_time:
            from planish.cc.timed_program import speed_up_program

            speed_up_program(compiler, words, program, settings, cache)
        return code


def _code(ended: int) -> int:
    """Give an exit code as a shell does: a signal is 128 and its number."""
    return ended if ended >= 0 else 128 - ended
