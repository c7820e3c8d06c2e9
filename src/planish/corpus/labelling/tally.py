"""Counting what is over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from planish.corpus.labelling.label import Label
from planish.corpus.labelling.label_plan import LabelProgress


@dataclass
class Tally:
    """Counts the functions of a stage; fields as of `LabelProgress`."""

    stage: str
    total: int
    done: int = 0
    known: int = 0
    saved: int = 0
    baseline: int = 0
    refused: int = 0

    def know(self, items: int, labels: Iterable[Label]) -> None:
        """Count what was done before."""
        before = self.done
        for label in labels:
            self.add_label(label)
        self.done = before + items
        self.known += items

    def add_label(self, label: Label | None) -> None:
        """Count a function that is over; None where it has no label."""
        if label is None:
            self.done += 1
        else:
            self.add(label.saved, label.baseline, len(label.refused))

    def add(self, saved: int, baseline: int, refused: int) -> None:
        """Count a function that is over."""
        self.done += 1
        self.saved += saved
        self.baseline += baseline
        self.refused += refused

    @property
    def progress(self) -> LabelProgress:
        """Give the state as a listener takes it."""
        return LabelProgress(**vars(self))
