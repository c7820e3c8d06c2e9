"""Trials of other models as records of their classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from planish.core import Candidate, ProgramError
from planish.graph.architecture import recognise_file
from planish.graph.learned.effects import Record
from planish.graph.program import program_from


@dataclass(frozen=True)
class Tried:
    """What was tried on one model.

    Args:
        program: its canonical text.
        outcomes: candidates with their cost over the baseline's; None where they failed.
    """

    program: str
    outcomes: Sequence[tuple[Candidate, float | None]]


def records_of(tried: Tried) -> Iterator[Record]:
    """Give the records of a model; none where its file is gone, so that its class is unknown."""
    program = program_from(tried.program)
    classes = _classes(program.file, program.digest)
    for candidate, ratio in tried.outcomes if classes else ():
        yield Record(program.digest, classes, candidate, ratio)


@lru_cache(maxsize=256)
def _classes(file: Path, digest: str) -> tuple[str, ...]:
    """Recognise a model's file. What the digest names may have changed since, which its class survives."""
    del digest
    try:
        return recognise_file(file).classes
    except ProgramError:
        return ()
