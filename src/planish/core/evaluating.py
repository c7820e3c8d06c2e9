"""Evaluating one batch of candidates by an executor that is handed in."""

import math
from collections.abc import Generator, Sequence

from planish.core.protocols import Evaluation, Executor
from planish.core.step import Candidate


def evaluate(
    executor: Executor, candidates: Sequence[Candidate], deadline: float = math.inf
) -> Generator[Evaluation, None, None]:
    """Evaluate a batch; answers come as they finish, in any order, each with its place in the batch.

    To leave the iterator early gives up what is under way.

    Args:
        executor: has nothing under way.
        candidates: what is to be evaluated.
        deadline: when the batch ends without the answers that are still missing, by the monotonic clock.

    Raises:
        PlanishError: as `Executor.submit` and `Executor.answers`.
    """
    executor.submit(candidates, deadline)
    try:
        yield from executor.answers()
    finally:
        executor.cancel()
