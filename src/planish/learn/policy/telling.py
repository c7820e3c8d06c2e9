"""What a language model is told of its answer in a search: as much as it was trained with."""

from __future__ import annotations

from planish.core import CanCompile, Candidate, HasText, PlanishError
from planish.learn.language.code_quality import bleu, error_class
from planish.learn.language.feedback import Feedback, Kind, feedback_of
from planish.learn.language.prompts import Answer

USUAL: Kind = "fast"
"""What a model is told that was trained without feedback, or before its kind was kept."""


def feedback_in(
    space: HasText, candidate: Candidate, answer: Answer, cost: float | None, kind: Kind
) -> Feedback:
    """Put together what is known of an answer.

    Args:
        space: of the program.
        candidate: the answer's list.
        answer: the model's.
        cost: instructions of what the list makes of the program; None where it failed.
        kind: what the model was trained with. All but "fast" has the list run once more, for its code.

    Raises:
        PlanishError: the space does not give code.
    """
    after = None if cost is None else int(cost)
    if kind == "fast":
        return feedback_of(answer, space.text, after)
    if not isinstance(space, CanCompile):
        what = f"the policy learnt from {kind} feedback, and {type(space).__name__} gives no code"
        raise PlanishError(what, "Train one: --feedback fast.")
    made = None if after is None else space.compiled(candidate)
    said = "" if answer.code is None else space.refused(answer.code)
    alike = 0.0 if answer.code is None or made is None else bleu(answer.code, made)
    return feedback_of(answer, space.text, after, made, error_class(said) if said else "", alike)
