"""What a language model is told of its answer in a search: as much as it was trained with."""

from __future__ import annotations

from planish.core import CanCompile, Candidate, HasText, PlanishError
from planish.learn.language.code_quality import bleu, error_class
from planish.learn.language.feedback import Feedback, Kind, feedback_of
from planish.learn.language.prompts import Answer

USUAL: Kind = "fast"
"""What a model is told that was trained without feedback, or before its kind was kept."""


COUNTED = "instructions"
"""What a model tells of and is told, whatever it makes less."""


def feedback_in(
    space: HasText, candidate: Candidate, answer: Answer, cost: float | None, kind: Kind, objective: str
) -> Feedback:
    """Put together what is known of an answer.

    Args:
        space: of the program.
        candidate: the answer's list.
        answer: the model's.
        cost: of what the list makes of the program, by the objective; None where it failed.
        kind: what the model was trained with. All but "fast" has the list run once more, for its code.
        objective: what the cost counts. All but instructions has the list run once more, to count them.

    Raises:
        PlanishError: the space does not give code.
    """
    after = None if cost is None else int(cost)
    if kind == "fast" and objective == COUNTED:
        return feedback_of(answer, space.text, after)
    if not isinstance(space, CanCompile):
        what = (
            f"the policy learnt from {kind} feedback on {objective}, and {type(space).__name__} gives no code"
        )
        raise PlanishError(what, f"Train one: --feedback fast, --objective {COUNTED}.")
    if after is not None and objective != COUNTED:
        after = space.instructions(candidate)
    if kind == "fast":
        return feedback_of(answer, space.text, after)
    made = None if after is None else space.compiled(candidate)
    said = "" if answer.code is None else space.refused(answer.code)
    alike = 0.0 if answer.code is None or made is None else bleu(answer.code, made)
    return feedback_of(answer, space.text, after, made, error_class(said) if said else "", alike)
