"""What is known of the passes for one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Relevance:
    """What is known of a catalogue's passes for one model.

    Args:
        alone: rewriting passes that change the model as it came.
        after: rewriting passes that do not, and change it after others: name to those others.
        failing: rewriting passes that fail on it: name to reason.
        runtime: the runtime's passes that change it, as it came or after a rewriting pass.
        without: passes that change nothing, of all kinds.
        untried: rewriting passes that there was no time for; they may matter.
        pairs: how many pairs of passes were looked at.
        unknown: how many were not, since the time was over.
        seconds: of a processor that it took.
        missing: transformers of the catalogue that the installed runtime does not have; it would ignore them.
        problems: what could not be found out, and why; what it concerns counts as what may matter.
    """

    alone: tuple[str, ...]
    after: Mapping[str, str] = field(default_factory=dict[str, str])
    failing: Mapping[str, str] = field(default_factory=dict[str, str])
    runtime: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    pairs: int = 0
    unknown: int = 0
    seconds: float = 0.0
    missing: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether there was time for everything, and an answer."""
        return not self.untried and not self.unknown and not self.problems

    @property
    def rewrites(self) -> tuple[str, ...]:
        """The rewriting passes that matter, those that matter alone first, and those that may."""
        return (*self.alone, *self.after, *self.untried)

    @property
    def kept(self) -> int:
        """How many passes matter."""
        return len(self.rewrites) + len(self.runtime)

    @property
    def known(self) -> int:
        """How many passes there are."""
        return self.kept + len(self.without) + len(self.failing)

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form; `from_json` is its inverse."""
        return dict(vars(self))

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Relevance:
        """Read the JSON form."""
        read: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
        return Relevance(**read)
