"""What the shell offers behind an option when the user presses TAB."""

from __future__ import annotations

import typer

COMPLETING = "_PLANISH_COMPLETE"
"""The variable by which a shell asks for completions."""
NEWEST = 50
"""Runs that are offered."""


def level_names(incomplete: str) -> list[str]:
    """Offer the levels that are installed."""
    from planish.levels import GROUP

    return _installed(GROUP, incomplete)


def searcher_names(incomplete: str) -> list[str]:
    """Offer the searchers that are installed."""
    from planish.search.factory import GROUP

    return _installed(GROUP, incomplete)


def run_ids(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Offer the newest runs of the store, each with what it searched; none where the store cannot be read."""
    from planish.core import PlanishError
    from planish.store import open_store

    try:
        with open_store(context.params.get("store"), read_only=True) as store:
            found = store.runs(limit=NEWEST)
            return [
                (run.id, f"{run.searcher}, {run.trials:,} trials, {run.status}")
                for run in found
                if run.id.startswith(incomplete)
            ]
    except PlanishError:
        return []


def _installed(group: str, incomplete: str) -> list[str]:
    from planish.core import registry

    return [name for name in registry.names(group) if name.startswith(incomplete)]
