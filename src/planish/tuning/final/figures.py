"""What is measured for those who read of the finalists: what their parts do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planish.core import Candidate, HasFigures
from planish.measure import seconds_left
from planish.tuning.final.final_state import FinalState
from planish.tuning.final.search_outcome import SearchOutcome


def measure_figures(level: HasFigures, search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Measure what is told of the winner, or of each member of a front, until the deadline."""
    del end
    task = search.task
    comparison = state.comparison(level.baseline(task))
    ranked = comparison.finalists if comparison else ()
    wanted = [each.candidate for each in (ranked if len(task.objectives) > 1 else ranked[:1])]
    figures: dict[Candidate, Mapping[str, Any]] = {}
    with search.start(level.evaluator(task)) as executor:
        for candidate in wanted:
            # The best first: where the time ends, it is the others of whom less is told.
            if seconds_left() > 0:
                figures[candidate] = level.figures(task, candidate, executor)
    return replace(state, figures=figures)
