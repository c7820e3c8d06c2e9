"""What the model of a guided search knew, for people and as JSON."""

from __future__ import annotations

from typing import Any

from planish.cli.output import say, table
from planish.report.guidance import Guidance

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
