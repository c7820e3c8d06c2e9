"""What the model of a guided search knew, and what a policy proposed, for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planish.cli.output import one_line, say, table
from planish.core import Objective
from planish.report.predictions import Guidance, Proposal
from planish.report.wording import amount, label

_SHOWN = 5


def show_guidance(guidance: Guidance) -> None:
    """Write how well each batch was predicted, and which features make the winner good."""
    say("\nmodel\n-----")
    rows = [
        [f"{batch.before:,}", f"{len(batch.values):,}", f"{batch.correlation:+.2f}"]
        for batch in guidance.batches
    ]
    heads = ["learnt from", "then measured", "rank correlation"]
    table(heads, rows, right=heads)
    good = [f"{name} ({worse:+.2f})" for name, worse in guidance.importance[:_SHOWN]]
    if good:
        say(f"the winner by its features, in deviations of predictions: {', '.join(good)}")


def guidance_document(guidance: Guidance | None) -> dict[str, Any]:
    """Give the same as JSON; nothing where no model guided the run."""
    if guidance is None:
        return {}
    batches = [
        {"before": each.before, "measured": len(each.values), "rank_correlation": each.correlation}
        for each in guidance.batches
    ]
    return {"model": {"batches": batches, "importance": dict(guidance.importance)}}


def show_proposals(proposals: Sequence[Proposal], objective: Objective) -> None:
    """Write how probable the first candidates were to the policy, and what came of them."""
    say("\npolicy\n------")
    rows = [
        [
            str(each.trial.index),
            f"{each.probability:.2%}",
            _outcome(each, objective),
            one_line(str(each.trial.candidate)),
        ]
        for each in proposals[:_SHOWN]
    ]
    heads = ["trial", "probability", label(objective), "candidate"]
    table(heads, rows, right=heads[:3])


def _outcome(proposal: Proposal, objective: Objective) -> str:
    return "failed" if proposal.value is None else amount(proposal.value, objective.unit)


def proposals_document(proposals: Sequence[Proposal]) -> dict[str, Any]:
    """Give the same as JSON; nothing where no policy was followed."""
    found = [
        {
            "trial": each.trial.index,
            "probability": each.probability,
            "value": each.value,
            "candidate": each.trial.candidate.text,
        }
        for each in proposals
    ]
    return {"policy": found} if found else {}
