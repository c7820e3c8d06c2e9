"""A whole command line: whether it is ours, and what is made of it."""

from __future__ import annotations

import os

from planish.cc.arguments import Invocation, Source
from planish.cc.cc_settings import CompileSettings, say
from planish.cc.compiler import Compiler
from planish.cc.compiling import compile_unit, make_object
from planish.cc.frontend import Unit
from planish.cc.installation import find_installation
from planish.cc.noting import note, refused
from planish.cc.object_cache import ObjectCache, open_cache

VARIABLES = (
    *("CCC_OVERRIDE_OPTIONS", "QA_OVERRIDE_GCC3_OPTIONS", "RC_DEBUG_OPTIONS", "AS_SECURE_LOG_FILE"),
    *("DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "CC_LOG_DIAGNOSTICS", "CC_PRINT_HEADERS"),
    *("CC_PRINT_OPTIONS", "CC_PRINT_PROC_STAT", "CC_PRINT_INTERNAL_STAT"),
)
"""Variables by which clang takes other options, or writes something else besides."""


def compile_all(compiler: Compiler, invocation: Invocation, settings: CompileSettings) -> int | None:
    """Make a command line's objects, and link them where it says so.

    Returns:
        The exit code; None where clang shall do it all by itself: as for sources with errors, so that the
        messages are its own.
    """
    cache = open_cache()
    why = _refusal(invocation)
    if why:
        _note_refused(cache, invocation, settings, why)
        return None
    if not find_installation(compiler, cache):
        settings.fall_back(f"{compiler.path} is no clang")
        return None
    try:
        if not invocation.compiles:
            from planish.cc.linking import compile_and_link

            return compile_and_link(compiler, invocation, settings, cache)
        outputs = [_output(invocation, source) for source in invocation.sources]
        pairs = zip(invocation.sources, outputs, strict=True)
        units = [Unit(compiler, invocation, source, path, path) for source, path in pairs]
        if len(units) == 1:
            return 0 if compile_unit(units[0], settings, cache) else None
        return max([make_object(unit, settings, cache) for unit in units])
    finally:
        if cache.trouble:
            say(f"warning: {cache.trouble}")


def _output(invocation: Invocation, source: Source) -> str:
    if invocation.output is not None:
        return invocation.output
    return os.path.splitext(os.path.basename(source.path))[0] + ".o"


def _refusal(invocation: Invocation) -> str:
    """Say why clang's own result must stay; empty where it need not."""
    variable = next(filter(os.environ.get, VARIABLES), None)
    if variable:
        return f"clang does other things for the variable {variable}"
    if invocation.keeps:
        return f"planish cc does not handle {invocation.keeps}"
    if any(source.path == "-" or not os.path.isfile(source.path) for source in invocation.sources):
        return "a source can be read only once"
    output = invocation.output
    if output is not None and (output == "-" or os.path.islink(output) or _is_special(output)):
        return f"the output {output} is no file"
    return _refusal_to_compile(invocation) if invocation.compiles else _refusal_to_link(invocation)


def _refusal_to_compile(invocation: Invocation) -> str:
    if any(source.language is None for source in invocation.sources):
        return "a source is neither C nor C++"
    shared = invocation.output is not None or invocation.dependency_file is not None
    return "several sources have one output" if shared and len(invocation.sources) > 1 else ""


def _refusal_to_link(invocation: Invocation) -> str:
    if invocation.makes_dependencies and invocation.sources:
        return "it links, and writes dependencies"
    return "it links, and says what language its inputs are in" if invocation.language_given else ""


def _is_special(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)


def _note_refused(cache: ObjectCache, invocation: Invocation, settings: CompileSettings, why: str) -> None:
    for source in invocation.sources:
        if source.language:
            note(cache, settings, _output(invocation, source), source.path, "clang", refused(why), 0.0)
