"""Trials of other models as records of their classes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from planish.core import Candidate, ProgramError, cache_folder
from planish.graph.architecture import recognise_file
from planish.graph.passes import Rewrite, Set, find_pass
from planish.graph.prior.class_lists import ClassList, learn_lists, learned_list
from planish.graph.prior.ridge import RidgeRow
from planish.graph.program import with_own_files


@dataclass(frozen=True)
class ModelTrials:
    """What was tried on one model.

    Args:
        program: its canonical text.
        outcomes: candidates with their cost over the baseline's; None where they failed.
    """

    program: str
    outcomes: Sequence[tuple[Candidate, float | None]]


def known_list(
    tried: Mapping[str, Sequence[tuple[Candidate, float | None]]], classes: Sequence[str]
) -> ClassList | None:
    """Learn from what was tried on other models what a network of some classes begins with.

    Args:
        tried: canonical text of a model to its outcomes, as `ModelTrials` has them.
        classes: the network's, the strongest first.

    Returns:
        What is known; None where no model of its classes was tried.
    """
    records = (
        record for text, outcomes in tried.items() for record in records_of(ModelTrials(text, outcomes))
    )
    return learned_list(learn_lists(records), classes)


def records_of(tried: ModelTrials) -> Iterator[RidgeRow]:
    """Give the records of a model; none where its file is gone or not this user's: its class is unknown."""
    program = with_own_files(tried.program)
    classes = _classes(Path(program.path), program.digest) if program.path else ()
    for candidate, ratio in tried.outcomes if classes else ():
        # Its gain may come from results that the next user does not accept.
        if not _was_asked_for(candidate):
            yield RidgeRow(program.digest, classes, candidate, ratio)


def _was_asked_for(candidate: Candidate) -> bool:
    """Whether it holds what one user's wish does not allow to another.

    That is a pass that changes results, or a setting of the session.
    """
    steps = candidate.steps
    return any(
        isinstance(step, Set) or (isinstance(step, Rewrite) and find_pass(step.name).is_intended)
        for step in steps
    )


@lru_cache(maxsize=256)
def _classes(file: Path, digest: str) -> tuple[str, ...]:
    """Recognise a model's file, once: its classes are kept in the user's folder of caches.

    What the digest names may have changed since, which its class survives.
    """
    kept = cache_folder("graph") / f"classes-{digest}-{version('planish')}.json"
    try:
        return tuple(json.loads(kept.read_text(encoding="utf-8")))
    except (OSError, ValueError):  # not there yet
        classes = _recognised(file)
    if classes:
        kept.write_text(json.dumps(classes), encoding="utf-8")
    return classes


def _recognised(file: Path) -> tuple[str, ...]:
    """Give the classes of a model's file; none where it is gone."""
    try:
        return recognise_file(file).classes
    except ProgramError:
        return ()
