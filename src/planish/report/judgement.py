"""What a verdict is."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["better", "same", "worse", "open", "nothing"]


@dataclass(frozen=True)
class Verdict:
    """The line, and what stands behind it.

    Args:
        kind: "open" where nothing was compared, "nothing" where nothing was measured.
        headline: one line.
        grounds: sentences with the figures.
    """

    kind: Kind
    headline: str
    grounds: tuple[str, ...]
