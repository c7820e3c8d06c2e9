"""The syntax of LLVM's pipelines: names with parameters in <...>, and managers with passes in (...)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from planish.core import ProgramError

_TOKEN = re.compile(r"\s*([^\s,()<>]+(?:<[^<>()]*>)?|[,()])\s*")

DEEPEST = 8
"""Managers within each other; LLVM's own nest four deep, as in module(cgscc(function(loop(...))))."""


@dataclass(frozen=True)
class PipelineItem:
    """A pass, or a manager with what stands in it.

    Args:
        text: the pass with its parameters, or the manager's name.
        inner: what the manager holds; None for a pass.
    """

    text: str
    inner: tuple[PipelineItem, ...] | None = None


def read_items(text: str) -> tuple[PipelineItem, ...]:
    """Split a pipeline into its items; a blank text has none.

    Raises:
        ProgramError: a bracket is not closed, or a name is missing; the message tells where.
    """
    if not text.strip():
        return ()
    reader = _Reader(text)
    items = reader.items()
    if reader.ahead():
        raise reader.error("a comma or the end")
    return items


class _Reader:
    """Reads a pipeline from left to right, one token ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._token, self._place = next(self._tokens)

    def _split(self) -> Iterator[tuple[str, int]]:
        place = 0
        while place < len(self._text):
            match = _TOKEN.match(self._text, place)
            if match is None:
                # The message is of the token at hand: here what cannot be split.
                self._token, self._place = self._text[place:], place
                raise self.error("a name, a comma or a bracket")
            yield match[1], match.start(1)
            place = match.end()
        while True:
            yield "", len(self._text)

    def ahead(self) -> str:
        """Give the next token; empty at the end."""
        return self._token

    def _take(self) -> str:
        taken = self._token
        self._token, self._place = next(self._tokens)
        return taken

    def items(self, depth: int = 0) -> tuple[PipelineItem, ...]:
        """Read items with commas between them, within so many managers."""
        found = [self._item(depth)]
        while self.ahead() == ",":
            self._take()
            found.append(self._item(depth))
        return tuple(found)

    def _item(self, depth: int) -> PipelineItem:
        if not self.ahead() or self.ahead() in ",()":
            raise self.error("the name of a pass")
        name = self._take()
        if self.ahead() != "(":
            return PipelineItem(name)
        # Without a limit, a text of brackets alone would exhaust Python's stack.
        if depth == DEEPEST:
            raise self.error(f"at most {DEEPEST} managers within each other")
        self._take()
        inner = self.items(depth + 1)
        if self.ahead() != ")":
            raise self.error("a closing bracket")
        self._take()
        return PipelineItem(name, inner)

    def error(self, expected: str) -> ProgramError:
        """Tell what should stand here."""
        found = f"'{self._token[:20]}'" if self._token else "its end"
        return ProgramError(
            f"pipeline, character {self._place + 1}: found {found}", f"Expected {expected} there."
        )
