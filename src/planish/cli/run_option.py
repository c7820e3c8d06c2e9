"""`--run './prog 5 < input'`: an option that has a value where one follows, and none where a program does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

_COMMANDS = frozenset(("tune", "compare"))
_RUN = "--run"


def how_run(words: Sequence[str]) -> list[str]:
    """Write `--run COMMAND` and `--run=COMMAND` as `--option run=COMMAND`; `--run` alone stays.

    What follows `--run` is a command where it has spaces or begins with `./`, and is no file of a program.
    """
    if not _COMMANDS.intersection(words[:2]):
        return list(words)
    return list(_rewritten(words))


def _rewritten(words: Sequence[str]) -> Iterator[str]:
    left = iter(words)
    for word in left:
        if word.startswith(f"{_RUN}="):
            yield from ("--option", word.removeprefix("--"))
        elif word != _RUN:
            yield word
        elif (following := next(left, None)) is None or not _is_command(following):
            yield word
            yield from () if following is None else (following,)
        else:
            yield from ("--option", f"run={following}")


def _is_command(word: str) -> bool:
    if word.startswith("-") or (word.endswith((".c", ".ll", ".bc")) and Path(word).is_file()):
        return False
    return word.startswith("./") or " " in word
