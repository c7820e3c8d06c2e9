"""What a level may add at the end of a run: scores on unseen data, a second opinion, another baseline.

A level has the methods of those protocols that make sense for it; nothing else is asked of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from planish.core.outcome import Outcome
from planish.core.protocols import EvaluatorFactory
from planish.core.step import Candidate
from planish.core.task import Task


@dataclass(frozen=True)
class Opinion:
    """What another way to run a candidate says of its answer.

    Args:
        agrees: None where it was not asked, or has no answer.
        difference: how far apart the answers are, as a share; None where that is not known.
        why: one line, where it does not agree.
    """

    agrees: bool | None = None
    difference: float | None = None
    why: str = ""


@dataclass(frozen=True)
class Effect:
    """What some of a candidate's steps do by themselves (GEVO-ML, section 6.1).

    Args:
        steps: their places in the candidate, from 0; one, or two.
        values: objective name to value / baseline's value where measuring it has noise; where it is exact,
            to value - baseline's value. Empty where these steps are not legal alone, or fail.
        additive: of two steps, objective name to whether the effect of both is, within the noise, what the
            effects of each make together: the product of ratios, or the sum of differences.
        why: one line, where there are no values.
    """

    steps: tuple[int, ...]
    values: Mapping[str, float] = field(default_factory=dict[str, float])
    additive: Mapping[str, bool] = field(default_factory=dict[str, bool])
    why: str = ""


@dataclass(frozen=True)
class Reference:
    """Something else to compare with at the end, besides the baseline.

    Args:
        name: for people: a file's name.
        candidate: what is measured.
        factory: makes its evaluator; None where the task's own does.
    """

    name: str
    candidate: Candidate
    factory: EvaluatorFactory | None = None


HELD_BACK = "validation"
"""The part of the examples that a search does not see, and that may decide between what it found."""


def held_back(objective: str, scores: Mapping[str, float]) -> float | None:
    """Give an objective's value on the examples that were held back; None where it was not scored on any."""
    return scores.get(f"{objective}_{HELD_BACK}")


@runtime_checkable
class CanScore(Protocol):
    """A level that has examples which no search sees.

    A score named after an objective and `HELD_BACK` is that objective on examples that may decide who is the
    best of a front; whatever else is scored is only reported.
    """

    def scores(self, task: Task, candidates: Sequence[Candidate]) -> Sequence[Outcome]:
        """Score candidates once the search is over, in workers; one outcome for each, in their order.

        Raises:
            PlanishError: the examples are missing, or do not fit.
        """
        ...


@runtime_checkable
class CanIdentify(Protocol):
    """A level that can tell, without measuring, whether two candidates make the same."""

    def identities(self, task: Task) -> AbstractContextManager[Callable[[Candidate], str]]:
        """Give what names a candidate by what it makes of a task's program; it is used within the block.

        Equal names mean that the task's objectives cannot tell the two apart.
        """
        ...


@runtime_checkable
class CanDoubt(Protocol):
    """A level that has another way to run a candidate."""

    def second_opinion(self, task: Task, candidates: Sequence[Candidate]) -> Sequence[Opinion]:
        """Run candidates in the other way and compare the answers; one opinion for each, in their order.

        Raises:
            TargetError: the other way is not installed.
        """
        ...


@runtime_checkable
class CanRefer(Protocol):
    """A level that may know another baseline."""

    def reference(self, task: Task) -> Reference | None:
        """Give what is measured beside the baseline at the end, to be told and not to be judged by.

        Raises:
            PlanishError: it cannot be read.
        """
        ...


@runtime_checkable
class CanCall(Protocol):
    """A level whose candidates can be called from Python; `Result` and `StoredResult` offer it."""

    def function(self, task: Task, candidate: Candidate) -> Callable[..., Any]:
        """Make what is called with the program's inputs, in their order, and gives its outputs.

        Raises:
            PlanishError: the machine lacks what the candidate needs.
        """
        ...


@runtime_checkable
class CanDecline(Protocol):
    """A level some of whose candidates cannot be exported: a library's call has no files."""

    def exportable(self, candidate: Candidate) -> bool:
        """Whether `export` writes it."""
        ...


@runtime_checkable
class CanDeliver(Protocol):
    """A level whose winners are files that people go on with."""

    def deliver(self, task: Task, candidate: Candidate, path: Path) -> Sequence[Path]:
        """Write what `planish tune` leaves in the folder where it is run, unless `--export` names another.

        Returns:
            The files.

        Raises:
            OSError: a file cannot be written.
        """
        ...
