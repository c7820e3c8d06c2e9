"""Sources to a program: each is compiled by itself, and clang links what comes of it."""

from __future__ import annotations

import os
import tempfile

from planish.cc.arguments import Invocation
from planish.cc.cc_settings import CompileSettings
from planish.cc.compiler import Compiler
from planish.cc.compiling import make_object
from planish.cc.frontend import Unit, shell_code, wait
from planish.cc.interrupts import Stoppable
from planish.cc.object_cache import ObjectCache


def compile_and_link(
    compiler: Compiler, invocation: Invocation, settings: CompileSettings, cache: ObjectCache
) -> int:
    """Make a program; return the exit code."""
    words = list(invocation.words)
    program = invocation.output or "a.out"
    failed = 0
    with Stoppable(), tempfile.TemporaryDirectory(prefix="planish-") as folder:
        for source in invocation.sources:
            if source.language:
                name = os.path.splitext(os.path.basename(source.path))[0]
                path = os.path.join(folder, f"{name}-{source.index}.o")
                unit = Unit(compiler, invocation, source, path, program)
                failed = make_object(unit, settings, cache) or failed
                words[source.index] = path
        if failed:
            return failed
        command = [*compiler.command, *words, "-Qunused-arguments"]
        code = shell_code(wait(os.posix_spawn(compiler.path, command, os.environ)))
        if not code and settings.for_time:
            from planish.cc.timed_program import speed_up_program

            speed_up_program(compiler, words, program, settings, cache)
        return code
