"""Verdict of a run, and how an undecided one goes on."""

from dataclasses import dataclass
from typing import Literal

from planish.store.records import RunStatus

Kind = Literal["better", "same", "worse", "undecided", "failed", "open", "nothing"]


@dataclass(frozen=True)
class Verdict:
    """The line, and what stands behind it.

    Args:
        kind: "undecided" where the comparison is too uncertain to tell, or did not happen; "open" while the
            search goes on; "nothing" where nothing was measured.
        headline: one line.
        grounds: sentences with the figures.
    """

    kind: Kind
    headline: str
    grounds: tuple[str, ...]


def continuation(status: RunStatus) -> str:
    """Return what the command that made a run does when it is given again."""
    return (
        "settles the comparison first" if status == "finished" else "goes on with the search, then compares"
    )
