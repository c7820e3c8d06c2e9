"""Greedy cover: the few lists that, each function taking its best, leave the least."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def greedy_cover(
    costs: NDArray[np.float64],
    baseline: NDArray[np.float64],
    size: int,
    efforts: NDArray[np.float64] | None = None,
) -> list[int]:
    """Choose lists one after the other, each the one that saves most beside those before it.

    With efforts it is the one that saves most by the square root of its effort: between the most for an
    evaluation and the most for a second.

    Args:
        costs: functions x lists; infinite where a list failed.
        baseline: functions; what each costs without any list of these.
        size: at most so many lists.
        efforts: of each list, above 0; None where all are alike.

    Returns:
        Places of the lists in the order of their choice; fewer than `size` where no more of them save.
    """
    import numpy as np

    least, chosen = baseline.astype(float), list[int]()
    weights = 1.0 if efforts is None else np.sqrt(efforts)
    # Greedy cover comes within 1 - 1/e of the best choice of as many, since what is saved is submodular.
    for _ in range(min(size, costs.shape[1])):
        saved = np.maximum(least[:, None] - costs, 0.0).sum(axis=0) / weights
        best = int(saved.argmax())
        if saved[best] <= 0:
            break
        chosen.append(best)
        least = np.minimum(least, costs[:, best])
    return chosen
