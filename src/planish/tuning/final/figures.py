"""What is measured for those who read of the finalists: what their parts do."""

from __future__ import annotations

from contextlib import closing

from planish.core import Candidate, HasFigures
from planish.executors import LocalExecutor
from planish.measure import seconds_left
from planish.tuning.final.outcome import SearchOutcome
from planish.tuning.final.state import FinalState


def measure_figures(search: SearchOutcome, state: FinalState) -> None:
    """Measure what is told of the winner, or of each member of a front, until the deadline."""
    level, task = search.level, search.task
    assert isinstance(level, HasFigures)
    ranked = state.ranked(task.objectives, level.baseline(task))
    several = len(task.objectives) > 1
    wanted: list[Candidate] = [each.candidate for each in (ranked if several else ranked[:1])]
    with closing(LocalExecutor(level.evaluator(task))) as executor:
        for candidate in wanted:
            if seconds_left() > 0:
                state.figures[candidate] = level.figures(task, candidate, executor)
