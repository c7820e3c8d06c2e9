"""The step of the level, and candidates as lists of passes."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from planish.core import Candidate, Step


@dataclass(frozen=True)
class Pass(Step):
    """Run a pass.

    Args:
        name: the element's text in the catalogue: "sroa<modify-cfg>".
    """

    name: str

    def to_json(self) -> list[Any]:
        """Give `["Pass", {"name": name}]`; written out, since thousands are made each second."""
        return ["Pass", {"name": self.name}]

    def __str__(self) -> str:
        return self.name


@cache
def pass_step(text: str) -> Pass:
    """Give the step of a pass; one object for one text."""
    return Pass(text)


def candidate_of(texts: Iterable[str]) -> Candidate:
    """Give the candidate that runs these passes, in this order; `passes_of` is its inverse."""
    return Candidate(tuple(map(pass_step, texts)))


def passes_of(candidate: Candidate) -> tuple[str, ...]:
    """Give the passes of a candidate in their order.

    Raises:
        TypeError: a step is of another level.
    """
    return tuple(map(_text, candidate.steps))


def _text(step: Step) -> str:
    if not isinstance(step, Pass):
        raise TypeError(f"{step} is no pass")
    return step.name
