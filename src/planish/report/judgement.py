"""What a verdict is."""

from dataclasses import dataclass
from typing import Literal

AGAIN = "run the same command again: it settles the comparison first"

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
