"""What the columns of features mean."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FeatureSchema:
    """A table of features.

    What is learned is stored with it, and used only where it is the same.

    Args:
        name: which features these are, such as "loops/context".
        version: raised whenever a column's meaning changes, so that it never does in silence.
        names: of the columns, in order.
    """

    name: str
    version: int
    names: tuple[str, ...]

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.names)
