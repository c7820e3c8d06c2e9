"""Entry points of `planish cc` and `planish c++`: clang, and then something smaller where that can be had."""

from __future__ import annotations

import os
import sys

from planish.cc.arguments import Invocation, ResponseError, expand, translated, with_full_lto
from planish.cc.clang import VARIABLE, Compiler, find_compiler
from planish.cc.settings import RUN, CompileSettings, UsageError, read_settings, say

NO_CLANG = 5
_NOT_RUN = f"the program is run to find what is faster; set {RUN}='./program 5 < input'"
_USAGE = 2
# What build systems compile to learn of the compiler: it is not kept, and there is much of it.
_PROBES = (
    "conftest",
    "cmTC_",
    "CMakeCCompilerId",
    "CMakeCXXCompilerId",
    "CMakeCCompilerABI",
    "testCCompiler",
)
_PROBE_FOLDERS = ("CMakeScratch", "CMakeTmp", "meson-private", "CompilerIdC")


def cc() -> None:
    """Run the console script `planish-cc`, which compiles C."""
    leave(sys.argv[1:], plus=False)


def cxx() -> None:
    """Run the console script `planish-c++`, which compiles and links C++."""
    leave(sys.argv[1:], plus=True)


def leave(words: list[str], *, plus: bool) -> None:
    """Do what `main` does, and end the process at once: what the interpreter tidies up takes milliseconds."""
    os._exit(main(words, plus=plus))


def main(words: list[str], *, plus: bool) -> int:
    """Do what clang does with a command line; the process may become clang.

    Args:
        words: as clang takes them, and options of planish's own.
        plus: whether it is the compiler of C++.

    Returns:
        The exit code: clang's, 2 for options that are wrong, or where clang's result must do and may not,
        5 where there is no clang.
    """
    try:
        _open_standard_files()
        return _main(words, plus=plus)
    except UsageError as error:
        say(f"error: {error}")
        return _USAGE
    except KeyboardInterrupt:
        from planish.cc.interrupts import die_of_interrupt

        die_of_interrupt()
        return 130


def _open_standard_files() -> None:
    """Open those that are closed, as clang does: other files would get their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            os.set_inheritable(number, True)


def _main(words: list[str], *, plus: bool) -> int:
    settings, words = read_settings(_with_own_options(words))
    compiler = find_compiler(plus=plus)
    if compiler is None:
        named = os.environ.get(VARIABLE)
        what = f"{VARIABLE}={named} names no program" if named else "no clang is on PATH"
        say(f"error: {what}. Install clang-22, or name one: {VARIABLE}=/path/to/clang.")
        return NO_CLANG
    code = _compiled(compiler, words, settings)
    if code is not None:
        return code
    try:
        compiler.replace_process(words)
    except OSError as error:
        say(f"error: {compiler.path} does not run: {error.strerror}. Name another clang: {VARIABLE}.")
    return NO_CLANG


def _compiled(compiler: Compiler, words: list[str], settings: CompileSettings) -> int | None:
    """Do what planish has a part in; None where clang shall do it all."""
    try:
        folder, invocation = os.getcwd(), Invocation(with_full_lto(translated(expand(words))))
    except (ResponseError, OSError):
        return None  # clang says what is wrong, and knows what to do without a folder
    if not _is_ours(invocation, settings, folder):
        compiles = any(each.language for each in invocation.sources) and not invocation.asks
        if settings.reports and compiles and not settings.for_time:
            level = invocation.level or "-O0"
            say(f"left to clang: {level}. Use -Oz or -Os, or --planish-objective time with -O2 or -O3.")
        return None
    from planish.cc.driver import compile_all

    try:
        return compile_all(compiler, invocation, settings)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  (whatever it is, a build must not fail of it)
        sources = ", ".join(source.path for source in invocation.sources) or invocation.output
        settings.fall_back(f"{sources}: {type(error).__name__}: {error}")
        return None


def _with_own_options(words: list[str]) -> list[str]:
    """Replace response files that have options of planish's, which clang would not know."""
    try:
        expanded = expand(words)
    except ResponseError:
        return words
    has_more = sum(map(_is_own, expanded)) > sum(map(_is_own, words))
    return expanded if has_more else words


def _is_own(word: str) -> bool:
    return word.startswith("--planish-")


def _is_ours(invocation: Invocation, settings: CompileSettings, folder: str) -> bool:
    """Return whether a command line asks for small code, or has a part in the program that shall be fast."""
    if invocation.asks or any(_is_probe(f"{folder}/{source.path}") for source in invocation.sources):
        return False
    settings.for_time = settings.for_time and not invocation.is_small
    if not settings.for_time and invocation.may_link_small:
        return not _is_probe(invocation.output or "")
    compiles = any(source.language for source in invocation.sources)
    if not settings.for_time:
        return compiles and invocation.is_small
    if compiles and invocation.is_fast and not settings.run:
        settings.fall_back(_NOT_RUN)
    if invocation.compiles or not settings.run:
        return compiles and invocation.is_fast and bool(settings.run)
    return _is_program(invocation.output or "a.out", settings.run)


def _is_program(output: str, run: str) -> bool:
    import shlex

    try:
        words = shlex.split(run)
    except ValueError as error:
        raise UsageError(f"{RUN} cannot be read: {error}") from error
    return bool(words) and os.path.basename(words[0]) == os.path.basename(output)


def _is_probe(path: str) -> bool:
    return os.path.basename(path).startswith(_PROBES) or any(name in path for name in _PROBE_FOLDERS)
