"""Isolation: worker processes, what they may use and do, and how they end."""

from planish.isolation.cage import Cage
from planish.isolation.endings import ending_of, is_from_outside
from planish.isolation.guard import Answer
from planish.isolation.limits import Limits
from planish.isolation.losses import LostError, loss_notes
from planish.isolation.scratch import Scratch

__all__ = [
    "Answer",
    "Cage",
    "Limits",
    "LostError",
    "Scratch",
    "ending_of",
    "is_from_outside",
    "loss_notes",
]
