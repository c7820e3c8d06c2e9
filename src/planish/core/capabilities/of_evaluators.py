"""What evaluators, and the specs that make them, may offer beyond evaluating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from planish.core.outcome import Outcome
from planish.core.protocols import Evaluator, EvaluatorSpec

if TYPE_CHECKING:
    from planish.sandbox import Cage, Limits  # named, never imported: core uses nothing of planish


@runtime_checkable
class CanAnchor(EvaluatorSpec, Protocol):
    """A spec whose evaluators measure relative to the baseline.

    Offered by the evaluators of `hlo` and `graph`; used by the loop, before anything else is measured.
    """

    def anchor(self, baseline: Outcome) -> None:
        """Take what the baseline was measured as, perhaps by an earlier run; it comes before all others."""
        ...


@runtime_checkable
class HasLimits(EvaluatorSpec, Protocol):
    """A spec whose evaluations need other limits of time and memory than the usual ones.

    Offered by the evaluators of `llvm`, `hlo` and `graph`; used by executors that have workers.
    """

    @property
    def limits(self) -> Limits | None:
        """How much; None for the usual ones."""
        ...


@runtime_checkable
class HasCage(EvaluatorSpec, Protocol):
    """A spec whose evaluators run what may do harm.

    Offered by the evaluators of `loops`, `llvm`, `hlo` and `graph`; used by executors that have workers,
    which are confined then.
    """

    @property
    def cage(self) -> Cage | None:
        """What they may do all the same; None where nothing has to be confined."""
        ...


@runtime_checkable
class HasNotes(Evaluator, Protocol):
    """An evaluator that has something to tell the user of how it measures.

    Offered by the evaluators of `llvm`, `hlo` and `graph`; used by executors, which hand it on.
    """

    @property
    def notes(self) -> Sequence[str]:
        """Sentences, without full stops; known once it is made."""
        ...
