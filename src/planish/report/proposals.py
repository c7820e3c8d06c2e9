"""What a policy proposed in a run: how probable each candidate was to it, and what came of it.

It is asked again when a run is shown: a run keeps its candidates, and not what the policy thought of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from planish.core import Level, PlanishError, Trial
from planish.report.curve import value_of
from planish.report.data import ReportData

SEARCHERS = ("policy", "priority", "samples")
"""Those that follow a policy. Not `feedback`: its candidates answer what came of those before, so how
probable they are of the program alone, which is what can be asked again, is another thing.
"""
SHOWN = 30
"""Trials, from the first on."""


@dataclass(frozen=True)
class Proposal:
    """A candidate of a policy.

    Args:
        trial: what it became.
        probability: that the policy writes it; 0 where it cannot.
        value: what was measured; None where it failed.
    """

    trial: Trial
    probability: float
    value: float | None


def proposals_of(story: ReportData, level: Level) -> Sequence[Proposal]:
    """Ask a run's policy about its first trials; none where no policy was followed, or it is gone.

    Args:
        story: the run.
        level: of its task.
    """
    if story.run.searcher not in SEARCHERS:
        return ()
    shown = story.trials[:SHOWN]
    try:
        found = _probabilities(story, level, shown)
    except PlanishError:  # the policy that the user named is gone, or the back end is
        return ()
    pairs = zip(shown, found, strict=True)
    return [Proposal(trial, p, value_of(trial, story.objective)) for trial, p in pairs]


def _probabilities(story: ReportData, level: Level, trials: Sequence[Trial]) -> list[float]:
    from planish.learn.policy import AUTO, chances, policy_named

    program = level.read(story.task.program, story.task.target)
    space = level.space(story.task.bind(program), story.run.space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the run has told them
        policy = policy_named(space, str(story.run.options.get("policy", AUTO)))
        return chances(policy, space, [trial.candidate for trial in trials])
