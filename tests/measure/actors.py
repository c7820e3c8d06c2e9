"""Factories that workers import by name."""

from dataclasses import dataclass

from planish.measure import Limits
from planish.testing.acting import Actor, Diary

HASTY = Limits(build=0.3)


class Telling(Actor):
    """An actor with something to say."""

    notes = ("it is late",)


@dataclass(frozen=True)
class Hasty(Diary):
    """A factory that asks for limits of its own."""

    limits: Limits = HASTY
