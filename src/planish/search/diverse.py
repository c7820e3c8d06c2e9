"""Choosing a batch that is good and diverse: AutoTVM's equation 3, by greedy selection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planish.core import Candidate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def choose_diverse(
    candidates: Sequence[Candidate], scores: NDArray[np.float32], count: int, alpha: float
) -> list[int]:
    """Choose candidates one by one, each time the one that adds most to equation 3.

    That is less predicted cost, and `alpha` for each step that none of those chosen before has. It is
    submodular, so the greedy choice is at least 63 % as good as the best one.

    Args:
        candidates: the best few.
        scores: their predicted costs, in any unit that `alpha` is in.
        count: how many are chosen.
        alpha: what a new component is worth; 0 chooses by the scores alone.

    Returns:
        Their places, in the order in which they were chosen.
    """
    import numpy as np

    # Equation 3's components are the space's knobs; here they are steps, which all spaces have.
    number = {step: i for i, step in enumerate(dict.fromkeys(s for c in candidates for s in c.steps))}
    holds = np.zeros((len(candidates), len(number)), bool)
    for row, candidate in enumerate(candidates):
        holds[row, [number[step] for step in candidate.steps]] = True
    new, left = holds.sum(axis=1), np.ones(len(number), bool)
    gain = -np.asarray(scores, np.float64)
    chosen: list[int] = []
    for _ in range(min(count, len(candidates))):
        place = int(np.argmax(gain + alpha * new))
        # An entry of -inf is never the greatest again, so no place is chosen twice.
        chosen.append(place)
        gain[place] = -np.inf
        # Only what has just been covered is taken off: to count all anew would cost a pass for each choice.
        covered = holds[place] & left
        new = new - holds[:, covered].sum(axis=1)
        left &= ~covered
    return chosen
