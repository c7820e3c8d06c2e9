"""How a program is run: what the options say of arguments, input, harness and libraries."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from planish.core import ProgramError
from planish.llvm.program import Harness, Running

STDIN_MOST = 16 << 20
_YES = "yes"
_OPERATORS = frozenset("();<>|&")


def running_by(options: Mapping[str, str], stored: Running | None) -> Running | None:
    """Give how it is run; who says how a function is run has a harness in mind, and it can be run."""
    if not any(options.get(name) for name in ("args", "stdin", "harness", "run", "link")):
        return stored
    options = _spelled_out(options)
    changed = stored or Running()
    if options.get("run"):
        changed = replace(changed, asked=True)
    if args := options.get("args"):
        changed = replace(changed, args=_words(args))
    if link := options.get("link"):
        changed = replace(changed, link=_words(link))
    if path := options.get("stdin"):
        changed = replace(changed, stdin=_input(path))
    if path := options.get("harness"):
        changed = replace(changed, harness=_harness(path))
    return changed


def _spelled_out(options: Mapping[str, str]) -> Mapping[str, str]:
    """Give `args` and `stdin` where `run` is a command line.

    Raises:
        ProgramError: it cannot be read, needs a shell, or says what `args` or `stdin` say too.
    """
    run = options.get("run", "")
    if run in ("", _YES):
        return options
    if options.get("args") or options.get("stdin"):
        raise ProgramError("run= says what --args and --stdin say", "Leave out one or the other.")
    words = _parsed(run)
    args, path = (words[1:-2], words[-1]) if words[-2:-1] == ["<"] else (words[1:], "")
    for word in args:
        # No shell is started, so a pipe would silently be an argument.
        if _OPERATORS.issuperset(word):
            raise ProgramError(f"run={run} needs a shell for '{word}'", "Write it as run='./prog 5 < input'.")
    asked = {} if args or path else {"run": _YES}
    return {**options, "run": "", "args": shlex.join(args), "stdin": path, **asked}


def _parsed(run: str) -> list[str]:
    lexer = shlex.shlex(run, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise ProgramError(f"run={run} cannot be read: {error}", "Quote as in a shell.") from error
    if not words or _OPERATORS.issuperset(words[0]) or (words == [words[0]] and "/" not in run):
        raise ProgramError(f"run cannot be '{run}'", "Write run=yes, or as run='./prog 5 < input'.")
    return words


def _words(args: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(args))
    except ValueError as error:
        raise ProgramError(f"the arguments cannot be read: {error}", "Quote them as in a shell.") from error


def _input(path: str) -> bytes:
    data = read_bytes(path)
    if len(data) > STDIN_MOST:
        most = STDIN_MOST >> 20
        raise ProgramError(f"'{path}' has over {most} MiB", "Give less input: it is stored with the program.")
    return data


def _harness(path: str) -> Harness:
    kind = Path(path).suffix.removeprefix(".")
    if kind not in ("c", "ll"):
        raise ProgramError(f"the harness '{path}' is no .c or .ll file", "Write it in C, or as LLVM IR.")
    try:
        return Harness(kind, read_bytes(path).decode())
    except UnicodeDecodeError as error:
        raise ProgramError(f"'{path}' is not a text: {error.reason}", "Write it in UTF-8.") from error


def read_bytes(path: str) -> bytes:
    """Read a file that the user named.

    Raises:
        ProgramError: it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ProgramError(f"cannot read '{path}': {error.strerror}", "Check the path.") from error
